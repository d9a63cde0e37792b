# SPDX-License-Identifier: Apache-2.0
# A toolchain file: clang and libc++ of the package `ziglang`, for Linux with glibc 2.17 on WEIGHBRIDGE_ZIG_MACHINE (x86_64, aarch64).
# WEIGHBRIDGE_ZIG is the path of its program `zig`. libc++ is linked into what is made; tools/make-wheels.sh is its user.

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WEIGHBRIDGE_ZIG WEIGHBRIDGE_ZIG_MACHINE)
foreach(needed IN ITEMS WEIGHBRIDGE_ZIG WEIGHBRIDGE_ZIG_MACHINE)
  if(NOT ${needed})
    message(FATAL_ERROR "cmake/zig.cmake needs ${needed}")
  endif()
endforeach()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${WEIGHBRIDGE_ZIG_MACHINE})
set(target --target=${WEIGHBRIDGE_ZIG_MACHINE}-linux-gnu.2.17)
set(CMAKE_C_COMPILER ${WEIGHBRIDGE_ZIG} cc ${target})
set(CMAKE_CXX_COMPILER ${WEIGHBRIDGE_ZIG} c++ ${target})
set(CMAKE_C_FLAGS_INIT -g0)  # zig writes debug information unless told not to
set(CMAKE_CXX_FLAGS_INIT -g0)

# CMake takes these as one program without arguments.
set(wrappers ${CMAKE_CURRENT_LIST_DIR}/../build/zig)
foreach(tool IN ITEMS ar ranlib)
  string(TOUPPER ${tool} name)
  if(NOT EXISTS ${wrappers}/${tool})
    file(WRITE ${wrappers}/${tool} "#!/bin/sh\nexec '${WEIGHBRIDGE_ZIG}' ${tool} \"$@\"\n")
    file(CHMOD ${wrappers}/${tool} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  endif()
  set(CMAKE_${name} ${wrappers}/${tool} CACHE FILEPATH "")
endforeach()
set(CMAKE_STRIP "" CACHE FILEPATH "")  # the linker strips, for any machine
foreach(kind IN ITEMS EXE MODULE SHARED)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT -s)
endforeach()
