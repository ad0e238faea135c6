# The HiGHS solver from its PyPI wheel (utils/fetch-highs.sh), as the target Plimsoll::Highs: C API only. The wheel's own
# CMake files name a folder that does not exist in it, hence this one. It is linked by absolute path, so that tools run
# from the build tree with no environment.
set(PLIMSOLL_HIGHS_VERSION 1.15.1)
if(DEFINED ENV{PLIMSOLL_HIGHS_DIR})
  set(plimsoll_highs_default "$ENV{PLIMSOLL_HIGHS_DIR}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(plimsoll_highs_default "$ENV{XDG_CACHE_HOME}/plimsoll/highs-${PLIMSOLL_HIGHS_VERSION}")
else()
  set(plimsoll_highs_default "$ENV{HOME}/.cache/plimsoll/highs-${PLIMSOLL_HIGHS_VERSION}")
endif()
set(PLIMSOLL_HIGHS_DIR "${plimsoll_highs_default}" CACHE PATH "Folder with include/highs and lib/libhighs.so of HiGHS ${PLIMSOLL_HIGHS_VERSION}")

foreach(part include/highs/interfaces/highs_c_api.h lib/libhighs.so)
  if(NOT EXISTS "${PLIMSOLL_HIGHS_DIR}/${part}")
    message(FATAL_ERROR "HiGHS ${PLIMSOLL_HIGHS_VERSION} not found: no ${PLIMSOLL_HIGHS_DIR}/${part}; run utils/setup.sh, "
                        "or set PLIMSOLL_HIGHS_DIR to where it is")
  endif()
endforeach()
file(STRINGS "${PLIMSOLL_HIGHS_DIR}/include/highs/HConfig.h" plimsoll_highs_version REGEX "HIGHS_VERSION_(MAJOR|MINOR|PATCH)")
string(REGEX REPLACE "[^0-9;]" "" plimsoll_highs_version "${plimsoll_highs_version}")
string(REPLACE ";" "." plimsoll_highs_version "${plimsoll_highs_version}")
if(NOT plimsoll_highs_version VERSION_EQUAL PLIMSOLL_HIGHS_VERSION)
  message(FATAL_ERROR "HiGHS ${plimsoll_highs_version} in ${PLIMSOLL_HIGHS_DIR}, expected ${PLIMSOLL_HIGHS_VERSION}; plans "
                      "are only reproducible with one version: run utils/setup.sh")
endif()

add_library(Plimsoll::Highs SHARED IMPORTED GLOBAL)
set_target_properties(Plimsoll::Highs PROPERTIES
  IMPORTED_LOCATION "${PLIMSOLL_HIGHS_DIR}/lib/libhighs.so"
  INTERFACE_INCLUDE_DIRECTORIES "${PLIMSOLL_HIGHS_DIR}/include/highs"
  INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${PLIMSOLL_HIGHS_DIR}/include/highs")
