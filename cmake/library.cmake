# SPDX-License-Identifier: Apache-2.0
# The installed libraries, with the public headers only. libweighbridge.a has the objects of every layer but the chain, and
# libweighbridge_chain.a those of the chain, which depend on them. With BUILD_SHARED_LIBS all are one shared library, because the chain
# uses symbols that a shared library does not export. Before 1.0 the ABI is stable within a minor version, so that is the SOVERSION.
# The command links these targets, and so sees what any user of the library sees.

get_property(layers GLOBAL PROPERTY WEIGHBRIDGE_LAYERS)
set(objects)
if(NOT BUILD_SHARED_LIBS)
  list(REMOVE_ITEM layers wb_chain)
endif()
foreach(layer IN LISTS layers)
  list(APPEND objects $<TARGET_OBJECTS:${layer}>)
endforeach()
add_library(weighbridge_library ${objects})
add_library(weighbridge::weighbridge ALIAS weighbridge_library)
set_target_properties(weighbridge_library PROPERTIES OUTPUT_NAME weighbridge EXPORT_NAME weighbridge LINKER_LANGUAGE CXX)
target_compile_features(weighbridge_library INTERFACE cxx_std_20)
target_include_directories(weighbridge_library INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
if(BUILD_SHARED_LIBS)
  set_target_properties(weighbridge_library PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(weighbridge_library PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_libraries(weighbridge_library PRIVATE weighbridge::zstd weighbridge::zlib weighbridge::crypto Threads::Threads wb_fmt)
else()
  target_link_libraries(weighbridge_library INTERFACE
    weighbridge::zstd weighbridge::zlib weighbridge::crypto Threads::Threads
    $<BUILD_INTERFACE:wb_fmt> $<INSTALL_INTERFACE:weighbridge::fmt>)
endif()

if(BUILD_SHARED_LIBS)
  add_library(weighbridge_chain INTERFACE)
  target_link_libraries(weighbridge_chain INTERFACE weighbridge_library)
else()
  add_library(weighbridge_chain STATIC $<TARGET_OBJECTS:wb_chain>)
  set_target_properties(weighbridge_chain PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(weighbridge_chain PUBLIC weighbridge_library)
endif()
add_library(weighbridge::chain ALIAS weighbridge_chain)
set_target_properties(weighbridge_chain PROPERTIES EXPORT_NAME chain)

# weighbridge_command(TARGET): links a program to the library as in a release, and puts it in the root of the build folder.
# -static because most calls spend their time on starting: 1.2 ms, against 1.6 ms with a shared C library and 3.0 ms with all
# libraries shared (measured with a program that calls fmt, OpenSSL and zstd). -static-pie, which is loaded at another address each
# time, costs 0.3 ms of that gain, by tables of addresses that it must fill in; those of functions that nothing calls are left out
# (--gc-sections). The program never calls dlopen or name lookup, which the linker would warn about.
include(CheckLinkerFlag)
function(weighbridge_command target)
  target_link_libraries(${target} PRIVATE weighbridge_library wb_options)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
    INSTALL_RPATH "$<$<BOOL:${BUILD_SHARED_LIBS}>:$ORIGIN/../lib>")
  if(WEIGHBRIDGE_STATIC AND NOT WEIGHBRIDGE_BUNDLED)
    check_linker_flag(CXX "LINKER:--no-warnings" WEIGHBRIDGE_LINKER_CAN_BE_QUIET)
    target_link_options(${target} PRIVATE -static-pie LINKER:--gc-sections $<$<BOOL:${WEIGHBRIDGE_LINKER_CAN_BE_QUIET}>:LINKER:--no-warnings>)
  endif()
endfunction()
