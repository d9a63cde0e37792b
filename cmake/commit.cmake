# SPDX-License-Identifier: Apache-2.0
# Sets WEIGHBRIDGE_COMMIT (40 digits or "unknown") and WEIGHBRIDGE_DATE (the commit's day, as 2026-01-31, or empty). They come from
# cmake/commit.txt, which `git archive` fills in, or from git, which is asked again after each commit.

set(WEIGHBRIDGE_COMMIT unknown)
set(WEIGHBRIDGE_DATE "")
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/commit.txt archived LIMIT_COUNT 1)
if(NOT archived MATCHES "^[0-9a-f]+ ")
  set(archived "")
  find_package(Git QUIET)
  if(GIT_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)  # an unpacked archive may be inside another project's checkout
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} log -1 --format=%H\ %cs
      OUTPUT_VARIABLE archived OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    execute_process(COMMAND ${GIT_EXECUTABLE} -C ${PROJECT_SOURCE_DIR} rev-parse --git-path logs/HEAD
      OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    get_filename_component(log "${log}" ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    if(EXISTS ${log} AND NOT IS_DIRECTORY ${log})
      set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
    endif()
  endif()
endif()
if(archived MATCHES "^([0-9a-f]+) ([0-9-]+)$")
  string(LENGTH ${CMAKE_MATCH_1} digits)
  if(digits EQUAL 40)
    set(WEIGHBRIDGE_COMMIT ${CMAKE_MATCH_1})
    set(WEIGHBRIDGE_DATE ${CMAKE_MATCH_2})
  endif()
endif()
