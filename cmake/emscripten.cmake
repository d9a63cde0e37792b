# SPDX-License-Identifier: Apache-2.0
# Replaces cmake/dependencies.cmake when Emscripten compiles the library to WebAssembly (presets web and web-plain). Header-only
# libraries are Debian's; zstd and zlib are compiled from source, which tools/fetch-sources.sh fetches; SHA-256 and the CRCs are the
# library's portable ones. One thread, so that pages do not need the HTTP headers for shared memory.

set(WEIGHBRIDGE_ZSTD_SOURCE ${PROJECT_SOURCE_DIR}/build/web/zstd CACHE PATH "folder with zstd.c and zstd.h")
set(WEIGHBRIDGE_ZLIB_SOURCE ${PROJECT_SOURCE_DIR}/build/web/zlib CACHE PATH "folder with zlib.h and its sources")
option(WEIGHBRIDGE_WASM_SIMD "use the 128-bit vectors of WebAssembly" ON)
foreach(source IN ITEMS ${WEIGHBRIDGE_ZSTD_SOURCE}/zstd.c ${WEIGHBRIDGE_ZLIB_SOURCE}/zlib.h)
  if(NOT EXISTS ${source})
    message(FATAL_ERROR "${source} is not there: run tools/fetch-sources.sh, or `make web`")
  endif()
endforeach()

# Adding the system's whole include folder would hide Emscripten's own headers.
set(headers ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${headers})
foreach(header IN ITEMS fmt fast_float xxhash.h)
  if(NOT EXISTS /usr/include/${header})
    message(FATAL_ERROR "/usr/include/${header} is not there: run tools/install-packages.sh web")
  endif()
  file(CREATE_LINK /usr/include/${header} ${headers}/${header} SYMBOLIC)
endforeach()
set(WEIGHBRIDGE_XXHASH_INCLUDE ${headers} CACHE PATH "" FORCE)

add_compile_options(-fwasm-exceptions "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${PROJECT_SOURCE_DIR}/web/core/standard_library.h>"
  -isystem ${headers})
add_link_options(-fwasm-exceptions)
add_compile_definitions(WEIGHBRIDGE_PORTABLE_CHECKSUMS)
if(WEIGHBRIDGE_WASM_SIMD)
  add_compile_options(-msimd128)
endif()

add_library(Threads::Threads INTERFACE IMPORTED GLOBAL)
add_library(weighbridge::crypto INTERFACE IMPORTED GLOBAL)
add_library(weighbridge::fmt INTERFACE IMPORTED GLOBAL)
add_library(FastFloat::fast_float INTERFACE IMPORTED GLOBAL)
enable_language(C)
add_library(wb_zstd STATIC ${WEIGHBRIDGE_ZSTD_SOURCE}/zstd.c)
target_include_directories(wb_zstd SYSTEM INTERFACE ${WEIGHBRIDGE_ZSTD_SOURCE})
target_compile_options(wb_zstd PRIVATE -w -O3)
set_target_properties(wb_zstd PROPERTIES COMPILE_DEFINITIONS "ZSTD_DISABLE_ASM=1")
add_library(weighbridge::zstd ALIAS wb_zstd)
set(zlib_sources adler32.c crc32.c deflate.c inffast.c inflate.c inftrees.c trees.c zutil.c)
list(TRANSFORM zlib_sources PREPEND ${WEIGHBRIDGE_ZLIB_SOURCE}/)
add_library(wb_zlib STATIC ${zlib_sources})
target_include_directories(wb_zlib SYSTEM INTERFACE ${WEIGHBRIDGE_ZLIB_SOURCE})
target_compile_options(wb_zlib PRIVATE -w -O3)
add_library(weighbridge::zlib ALIAS wb_zlib)
