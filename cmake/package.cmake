# SPDX-License-Identifier: Apache-2.0
# `make package` makes a .tar.gz that runs wherever it is unpacked, and two Debian packages, weighbridge and libweighbridge-dev, from
# an installed tree. package_debian.cmake makes the changes that Debian requires.

set(WEIGHBRIDGE_MAINTAINER "weighbridge maintainers <weighbridge@localhost>" CACHE STRING "who the Debian packages say makes them")

set(CPACK_GENERATOR TGZ)
find_program(WEIGHBRIDGE_DPKG dpkg)
mark_as_advanced(WEIGHBRIDGE_DPKG)
if(WEIGHBRIDGE_DPKG)
  list(APPEND CPACK_GENERATOR DEB)
endif()
string(TOLOWER "weighbridge-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" CPACK_PACKAGE_FILE_NAME)
set(CPACK_PACKAGE_NAME weighbridge)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_COMPONENTS_ALL command development)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER ${WEIGHBRIDGE_MAINTAINER})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME weighbridge)
set(CPACK_DEBIAN_COMMAND_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_COMMAND_DESCRIPTION "${PROJECT_DESCRIPTION}.
It runs no code from them, never drops data silently, embeds texts, and runs
small language models.")
if(NOT WEIGHBRIDGE_STATIC)
  set(CPACK_DEBIAN_COMMAND_PACKAGE_SHLIBDEPS ON)  # a static command depends on nothing
endif()

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libweighbridge-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION "The C++20 library behind the command weighbridge, its headers, and what CMake
and pkg-config need to find them. Before version 1.0 a new minor version may
change the API.")
if(BUILD_SHARED_LIBS)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "weighbridge (= ${PROJECT_VERSION}-1)")
else()
  # The archive calls the fmt that it was compiled with, whose symbols contain its major version.
  get_target_property(fmt_include weighbridge::fmt INTERFACE_INCLUDE_DIRECTORIES)
  file(STRINGS ${fmt_include}/fmt/core.h fmt_version REGEX "#define FMT_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" fmt_version "${fmt_version}")
  math(EXPR fmt_major "${fmt_version} / 10000")
  math(EXPR fmt_next "${fmt_major} + 1")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "libfmt-dev (>= ${fmt_major}), libfmt-dev (<< ${fmt_next}), libzstd-dev, zlib1g-dev, libssl-dev (>= 3)")
endif()

set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_debian.cmake)
set(CPACK_WEIGHBRIDGE_SOURCE ${PROJECT_SOURCE_DIR})
set(CPACK_WEIGHBRIDGE_STATIC ${WEIGHBRIDGE_STATIC})
set(CPACK_WEIGHBRIDGE_DATE "${WEIGHBRIDGE_DATE}")
include(CPack)
