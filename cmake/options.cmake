# SPDX-License-Identifier: Apache-2.0
# Compile options of every target. Machine code is for baseline x86-64; kernels choose their instruction set at run time.

option(WEIGHBRIDGE_TESTS "build the tests" ON)
option(WEIGHBRIDGE_FUZZ "build the fuzz targets with libFuzzer (clang only)" OFF)
option(WEIGHBRIDGE_BENCH "build the benchmarks" OFF)
option(WEIGHBRIDGE_PYTHON "build the extension module of the Python package" OFF)
set(WEIGHBRIDGE_BUILT "" CACHE PATH "compile only the extension module, over the library and command of this build folder")
option(WEIGHBRIDGE_BUNDLED "compile zstd and zlib from source, and link neither OpenSSL nor a static C library" OFF)
option(BUILD_SHARED_LIBS "make a shared library in place of the archive" OFF)
option(WEIGHBRIDGE_STATIC "link the command statically: it starts in well under half the time" ON)
option(WEIGHBRIDGE_HARDENED "compile in the checks that make faults in memory safety hard to exploit" ON)
option(WEIGHBRIDGE_PCH "compile the standard headers once for all sources" OFF)
option(WEIGHBRIDGE_UNITY "compile the sources of a target together, in half the processor time" OFF)
option(WEIGHBRIDGE_COVERAGE "count which lines and branches run (clang only; tools/coverage.sh)" OFF)
set(WEIGHBRIDGE_SANITIZE "" CACHE STRING "sanitizers, as -fsanitize= takes them")

# New warnings of a newer compiler must not stop a user's build, so warnings are errors only with compilers that the project tests.
set(checked_with OFF)
if((CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.") OR
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^16\\."))
  set(checked_with ON)
endif()
option(WEIGHBRIDGE_WERROR "treat warnings as errors (default: with GCC 12 and clang 16)" ${checked_with})

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(BUILD_SHARED_LIBS)
  set(WEIGHBRIDGE_STATIC OFF)  # cmake/exports.map lists the exports
else()
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(WEIGHBRIDGE_CCACHE ccache)
  mark_as_advanced(WEIGHBRIDGE_CCACHE)
  if(WEIGHBRIDGE_CCACHE)
    # Relative paths let a second checkout use what the first one compiled. Precompiled headers contain the path of their checkout, so
    # ccache takes the checksum beside one (cmake/precompiled.cmake) for it; it requires this sloppiness to cache files that use one.
    set(cache CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true)
    if(WEIGHBRIDGE_PCH)
      list(APPEND cache CCACHE_PCH_EXTSUM=true CCACHE_SLOPPINESS=pch_defines,time_macros)
    endif()
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${cache} ${WEIGHBRIDGE_CCACHE})
  endif()
endif()

add_library(wb_options INTERFACE)
target_compile_options(wb_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  -Wold-style-cast -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns that an empty std::optional<std::string> is uninitialized (its bug 80635).
  target_compile_options(wb_options INTERFACE -Wno-maybe-uninitialized)
  target_compile_options(wb_options INTERFACE -Wno-restrict)  # GCC 12 sees overlaps in "text" + std::string (its bug 105651)
  if(WEIGHBRIDGE_UNITY)  # GCC takes a source that another one includes for a header
    target_compile_options(wb_options INTERFACE -Wno-subobject-linkage)
  endif()
endif()
if(WEIGHBRIDGE_WERROR)
  target_compile_options(wb_options INTERFACE -Werror)
endif()
# Keeps paths of the build machine out of releases.
target_compile_options(wb_options INTERFACE $<$<CONFIG:Release>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>)
# The library checks the indices of vectors, spans and optionals; the compiler protects return addresses, buffers on the stack, and
# (CET) the targets of jumps; the linker makes tables of addresses read-only. It costs 0.3 ms at each start
# and at most 2 % elsewhere (bench/NOTES.md).
if(WEIGHBRIDGE_HARDENED AND NOT EMSCRIPTEN)
  include(CheckCXXCompilerFlag)
  target_compile_definitions(wb_options INTERFACE _GLIBCXX_ASSERTIONS)
  if(WEIGHBRIDGE_BUNDLED)  # the same of libc++; zig defines it too
    target_compile_options(wb_options INTERFACE
      "SHELL:-U_LIBCPP_HARDENING_MODE -D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_FAST")
  endif()
  target_compile_options(wb_options INTERFACE -fstack-protector-strong -fstack-clash-protection)
  if(NOT WEIGHBRIDGE_SANITIZE)  # the sanitizers check the same
    target_compile_options(wb_options INTERFACE "$<$<CONFIG:Release>:SHELL:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3>")
  endif()
  check_cxx_compiler_flag(-fcf-protection=full WEIGHBRIDGE_COMPILER_HAS_CET)
  if(WEIGHBRIDGE_COMPILER_HAS_CET)
    target_compile_options(wb_options INTERFACE -fcf-protection=full)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # GCC 12 takes the assertions' own conditions for accesses out of bounds
    target_compile_options(wb_options INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()
if(WEIGHBRIDGE_SANITIZE)
  add_compile_options(-fsanitize=${WEIGHBRIDGE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WEIGHBRIDGE_SANITIZE})
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld WEIGHBRIDGE_HAS_LLD)
  if(WEIGHBRIDGE_HAS_LLD)  # a quarter of the time for programs of 70 MB
    # Some 60 programs of 100 MB each fill a small disk: debug information, a third of that, is compressed, and without -pie
    # they have no relocations. The thread sanitizer's place in memory needs it.
    add_link_options(-fuse-ld=lld LINKER:--compress-debug-sections=zlib)
    if(NOT WEIGHBRIDGE_SANITIZE MATCHES thread)
      add_link_options($<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    endif()
  endif()
  set(WEIGHBRIDGE_STATIC OFF)  # the sanitizers' runtimes need the dynamic C library
endif()
if(WEIGHBRIDGE_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate -fcoverage-mapping)
endif()
if(WEIGHBRIDGE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "WEIGHBRIDGE_FUZZ needs clang: use `cmake --preset fuzz`")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
