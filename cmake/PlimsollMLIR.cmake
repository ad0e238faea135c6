# MLIR/LLVM 22 from Debian: the package config refuses a version request, so the version is checked here.
find_package(MLIR REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "found LLVM ${LLVM_VERSION_MAJOR}, expected 22; install libmlir-22-dev and llvm-22-dev")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# plimsoll_mlir_options(target): LLVM's headers, flags and shared libraries on one target.
function(plimsoll_mlir_options target)
  target_include_directories(${target} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_options(${target} PRIVATE -fno-exceptions)
  target_link_libraries(${target} PUBLIC MLIR LLVM)
endfunction()

# plimsoll_mlir_library(name SOURCES... [LINK libs...] [DEPENDS targets...]): a compiler-half library.
function(plimsoll_mlir_library name)
  plimsoll_library(${name} ${ARGN})
  plimsoll_mlir_options(${name})
endfunction()

# plimsoll_tablegen(output args...): runs mlir-tblgen on the folder's LLVM_TARGET_DEFINITIONS with the repo root included.
macro(plimsoll_tablegen output)
  mlir_tablegen(${output} ${ARGN} EXTRA_INCLUDES ${PROJECT_SOURCE_DIR} ${MLIR_INCLUDE_DIRS})
endmacro()
