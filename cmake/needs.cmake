# SPDX-License-Identifier: Apache-2.0
# What only building needs: each row has what is looked for (a header, or a package of CMake and its components), Debian's package, and when it
# is needed. What is missing goes into the list weighbridge_missing, to which dependencies.cmake adds the libraries; it names all in one error.
set(weighbridge_missing)
set(weighbridge_needs
  "FastFloat                        libfast-float-dev   ON"
  "xxhash.h                         libxxhash-dev       ON"
  "GTest                            libgtest-dev        WEIGHBRIDGE_TESTS"
  "rapidcheck.h                     librapidcheck-dev   WEIGHBRIDGE_TESTS"
  "nlohmann_json                    nlohmann-json3-dev  WEIGHBRIDGE_TESTS"
  "Python3:Interpreter              python3             WEIGHBRIDGE_TESTS"
  "benchmark                        libbenchmark-dev    WEIGHBRIDGE_BENCH"
  "Python:Interpreter:Development.Module  python3-dev   WEIGHBRIDGE_PYTHON")
foreach(row IN LISTS weighbridge_needs)
  string(REGEX MATCHALL "[^ ]+" row "${row}")
  list(POP_FRONT row what package when)
  if(NOT ${when})
    continue()
  endif()
  if(what MATCHES "(.*)\\.h$")
    string(TOUPPER WEIGHBRIDGE_${CMAKE_MATCH_1}_INCLUDE found)
    find_path(${found} ${what})
    mark_as_advanced(${found})
  else()
    string(REPLACE ":" ";" parts ${what})
    list(POP_FRONT parts what)
    find_package(${what} QUIET COMPONENTS ${parts})
    set(found ${what}_FOUND)
  endif()
  if(NOT ${found})
    list(APPEND weighbridge_missing ${package})
  endif()
endforeach()
