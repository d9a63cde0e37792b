# SPDX-License-Identifier: Apache-2.0
# One layer of src/ is one static library, wb_<layer>; the installed library has the same objects. Tests of a layer are *_test.cc
# beside its sources. They form one program, <layer>_test, which links what the layer links and nothing above it.

include(cmake/precompiled.cmake)

# Set after the bundled libraries, whose sources do not go together. Sources with options of their own stay alone.
set(CMAKE_UNITY_BUILD ${WEIGHBRIDGE_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)

# Test code is compiled with less optimization (with the sanitizers none, which takes clang a quarter of the time), and fuzzers do not
# count which of its lines run. What is tested is compiled as the preset says; but of a template that both use, the program has the
# copy of the test.
set(level -O1)
if(WEIGHBRIDGE_SANITIZE)
  set(level -O0)
endif()
add_library(wb_test_options INTERFACE)
target_compile_options(wb_test_options INTERFACE ${level} $<$<BOOL:${WEIGHBRIDGE_FUZZ}>:-fno-sanitize=fuzzer-no-link>)

# weighbridge_long_tests(source...): tests that run so long that it pays to optimize them for the sanitizers too. Name them first among
# the sources of their program, which has that file's copies of templates.
function(weighbridge_long_tests)
  if(WEIGHBRIDGE_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O1)
  endif()
endfunction()

# All test programs that start threads, for the thread sanitizer.
add_custom_target(tests_with_threads)

# weighbridge_layer(NAME SOURCES ... DEPENDS layer... LIBRARIES external... CASES source... TESTS ... TEST_LIBRARIES ... [THREADS])
# CASES build a format's corpus in code, as the library wb_<layer>_cases: for tests and fuzzers only, never installed; all of them
# are in the property WEIGHBRIDGE_CASES. THREADS: the layer starts threads, or supports concurrent use.
function(weighbridge_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "THREADS" "" "SOURCES;DEPENDS;LIBRARIES;CASES;TESTS;TEST_LIBRARIES")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weighbridge_layer(${name}): cannot place '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND wb_)
  add_library(wb_${name} STATIC ${ARG_SOURCES})
  target_include_directories(wb_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(wb_${name} PUBLIC wb_options ${ARG_DEPENDS} PRIVATE ${ARG_LIBRARIES})
  weighbridge_precompiled(wb_${name} sources)
  set_property(GLOBAL APPEND PROPERTY WEIGHBRIDGE_LAYERS wb_${name})
  set(cases)
  if(ARG_CASES AND WEIGHBRIDGE_TESTS)
    set(cases wb_${name}_cases)
    add_library(${cases} STATIC ${ARG_CASES})
    target_include_directories(${cases} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${cases} PUBLIC wb_${name} PRIVATE ${ARG_LIBRARIES} wb_test_options GTest::gtest)
    weighbridge_precompiled(${cases} tests)
    set_property(GLOBAL APPEND PROPERTY WEIGHBRIDGE_CASES ${cases})
  endif()
  if(WEIGHBRIDGE_TESTS AND ARG_TESTS)
    set(labels unit)
    if(ARG_THREADS)
      list(APPEND labels threads)
      add_dependencies(tests_with_threads ${name}_test)
    endif()
    weighbridge_test(${name}_test SOURCES ${ARG_TESTS} LIBRARIES ${cases} wb_${name} ${ARG_TEST_LIBRARIES} LABELS ${labels})
  endif()
endfunction()

# weighbridge_test(NAME SOURCES ... LIBRARIES ... LABELS ... COST n): a GoogleTest program and one ctest entry, whose result file
# tools/run_ctest.py counts. ctest starts the most expensive tests first.
function(weighbridge_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "COST" "SOURCES;LIBRARIES;LABELS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weighbridge_test(${name}): cannot place '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} wb_options wb_test_options
    GTest::gtest GTest::gtest_main)
  weighbridge_precompiled(${name} tests)
  if(NOT ARG_COST)
    set(ARG_COST 1)  # an empty value would shift the properties that follow
  endif()
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 1200 COST ${ARG_COST} LABELS "${ARG_LABELS}"
    ENVIRONMENT "GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml;XDG_STATE_HOME=${PROJECT_BINARY_DIR}/test-state")
endfunction()
