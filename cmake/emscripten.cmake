# SPDX-License-Identifier: Apache-2.0
# What differs when Emscripten compiles the library to WebAssembly (presets web and web-plain): the libraries are those of
# bundled.cmake, and there is one thread, so that pages do not need the HTTP headers for shared memory.

option(WEIGHBRIDGE_WASM_SIMD "use the 128-bit vectors of WebAssembly" ON)
set(WEIGHBRIDGE_BUNDLED ON)
add_compile_options(-fwasm-exceptions
  "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${PROJECT_SOURCE_DIR}/web/core/standard_library.h>")
add_link_options(-fwasm-exceptions)
if(WEIGHBRIDGE_WASM_SIMD)
  add_compile_options(-msimd128)
endif()
