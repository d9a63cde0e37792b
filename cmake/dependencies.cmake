# SPDX-License-Identifier: Apache-2.0
# The libraries that weighbridge depends on, each as one target weighbridge::<name>: crypto, zstd, zlib, fmt. This file is also
# installed, so that find_package(weighbridge) finds them the same way. WEIGHBRIDGE_STATIC uses static archives. Debian's packages that are
# missing, and those that the includer put into the list weighbridge_missing, are named in one error.

include(CMakeFindDependencyMacro)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)

# weighbridge_dependency(NAME HEADER header LIBRARY name PACKAGE debian-package)
function(weighbridge_dependency name)
  cmake_parse_arguments(ARG "" "HEADER;LIBRARY;PACKAGE" "" ${ARGN})
  if(TARGET weighbridge::${name})
    return()
  endif()
  set(libraries ${ARG_LIBRARY})
  set(kind shared)
  if(WEIGHBRIDGE_STATIC)
    set(libraries lib${ARG_LIBRARY}.a ${ARG_LIBRARY})
    set(kind static)
  endif()
  find_path(WEIGHBRIDGE_${name}_INCLUDE NAMES ${ARG_HEADER})
  find_library(WEIGHBRIDGE_${name}_LIBRARY_${kind} NAMES ${libraries})
  mark_as_advanced(WEIGHBRIDGE_${name}_INCLUDE WEIGHBRIDGE_${name}_LIBRARY_${kind})
  if(NOT WEIGHBRIDGE_${name}_INCLUDE OR NOT WEIGHBRIDGE_${name}_LIBRARY_${kind})
    list(APPEND weighbridge_missing ${ARG_PACKAGE})
    set(weighbridge_missing ${weighbridge_missing} PARENT_SCOPE)
    return()
  endif()
  add_library(weighbridge::${name} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(weighbridge::${name} PROPERTIES
    IMPORTED_LOCATION ${WEIGHBRIDGE_${name}_LIBRARY_${kind}}
    INTERFACE_INCLUDE_DIRECTORIES ${WEIGHBRIDGE_${name}_INCLUDE})
  if(name STREQUAL "crypto")
    set_property(TARGET weighbridge::crypto PROPERTY INTERFACE_LINK_LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
  endif()
endfunction()

weighbridge_dependency(crypto HEADER openssl/evp.h LIBRARY crypto PACKAGE libssl-dev)
weighbridge_dependency(zstd HEADER zstd.h LIBRARY zstd PACKAGE libzstd-dev)
weighbridge_dependency(zlib HEADER zlib.h LIBRARY z PACKAGE zlib1g-dev)
weighbridge_dependency(fmt HEADER fmt/format.h LIBRARY fmt PACKAGE libfmt-dev)
if(weighbridge_missing)
  list(JOIN weighbridge_missing " " weighbridge_missing)
  message(FATAL_ERROR "weighbridge needs packages that are missing. Debian and Ubuntu: apt-get install ${weighbridge_missing}")
endif()
