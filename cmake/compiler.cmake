# SPDX-License-Identifier: Apache-2.0
# Before project(), which stops at the first program that is missing and says nothing of packages: without a compiler or a build program, one error
# names everything that a build needs.
if(CMAKE_TOOLCHAIN_FILE)
  return()
endif()
find_program(WEIGHBRIDGE_COMPILER NAMES $ENV{CXX} c++ g++ clang++ CC icpx)
set(builder make)
if(CMAKE_GENERATOR MATCHES "Ninja")
  set(builder ninja ninja-build samu)
endif()
find_program(WEIGHBRIDGE_BUILDER NAMES ${builder})
mark_as_advanced(WEIGHBRIDGE_COMPILER WEIGHBRIDGE_BUILDER)
if(NOT (WEIGHBRIDGE_COMPILER OR CMAKE_CXX_COMPILER) OR NOT (WEIGHBRIDGE_BUILDER OR CMAKE_MAKE_PROGRAM))
  file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../tools/install-packages.sh packages REGEX "^build=")
  string(REGEX REPLACE "build=\\((.*)\\)" "\\1" packages "${packages}")
  message(FATAL_ERROR "weighbridge needs a C++20 compiler and ${CMAKE_GENERATOR}, and one of them is missing. Debian and Ubuntu: apt-get install ${packages}")
endif()
