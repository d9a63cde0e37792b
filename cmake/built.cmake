# SPDX-License-Identifier: Apache-2.0
# The library and the command of another build folder, WEIGHBRIDGE_BUILT, under the names of the targets that would compile them. So the
# wheels for several versions of Python need one build of the library.

set(built ${WEIGHBRIDGE_BUILT})
if(NOT IS_ABSOLUTE "${built}")
  set(built ${PROJECT_SOURCE_DIR}/${built})
endif()
foreach(file IN ITEMS libweighbridge.a weighbridge)
  if(NOT EXISTS ${built}/${file})
    message(FATAL_ERROR "${built} has no ${file}: build the targets weighbridge and weighbridge_library there first")
  endif()
endforeach()
add_library(weighbridge_library STATIC IMPORTED GLOBAL)
set_target_properties(weighbridge_library PROPERTIES IMPORTED_LOCATION ${built}/libweighbridge.a
  INTERFACE_INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/include)
target_compile_features(weighbridge_library INTERFACE cxx_std_20)
target_link_libraries(weighbridge_library INTERFACE
  weighbridge::zstd weighbridge::zlib weighbridge::crypto Threads::Threads wb_fmt)
add_library(weighbridge::weighbridge ALIAS weighbridge_library)
add_executable(weighbridge IMPORTED GLOBAL)
set_target_properties(weighbridge PROPERTIES IMPORTED_LOCATION ${built}/weighbridge)
