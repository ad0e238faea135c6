# Build helpers shared by every room: one folder = one target, include roots on targets, warnings on.

find_program(PLIMSOLL_CCACHE ccache)
if(PLIMSOLL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PLIMSOLL_CCACHE})
endif()
find_program(PLIMSOLL_LLD NAMES ld.lld ld.lld-22 PATHS /usr/lib/llvm-22/bin)

# plimsoll_options(target): warnings, include roots and sanitizers of the project's own targets.
function(plimsoll_options target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(${target} SYSTEM PUBLIC ${PROJECT_BINARY_DIR}) # generated headers
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wno-unused-parameter -Wno-restrict) # -Wrestrict misfires in GCC 12 (PR105651)
  if(PLIMSOLL_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${PLIMSOLL_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${PLIMSOLL_SANITIZE})
  endif()
endfunction()

# plimsoll_library(name SOURCES... [LINK libs...] [DEPENDS targets...]): a static library for one folder.
function(plimsoll_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  plimsoll_options(${name})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# plimsoll_tool(name SOURCES... LINK libs...): an executable in build/bin.
function(plimsoll_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  plimsoll_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
endfunction()

# plimsoll_unit_test(name SOURCES... LINK libs...): a GoogleTest binary registered with ctest as one test.
function(plimsoll_unit_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  plimsoll_options(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE PLIMSOLL_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                             PLIMSOLL_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
endfunction()
