# SPDX-License-Identifier: Apache-2.0
# Installs the build BUILD below WORK, then configures, builds and runs the consumer project against it. Usage: cmake -D... -P.

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(REPLACE ";" " " command "${ARGN}")
    message(FATAL_ERROR "${command}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
file(GLOB_RECURSE headers RELATIVE ${WORK}/prefix/include ${WORK}/prefix/include/*)
foreach(header IN LISTS headers)
  if(NOT header MATCHES "^weighbridge/[a-z0-9_]+\\.h$")
    message(FATAL_ERROR "installed, but no public header: ${header}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${WORK}/build -G Ninja -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build)
run(${WORK}/build/consumer)
if(NOT output STREQUAL "ok\n")
  message(FATAL_ERROR "the consumer said '${output}'")
endif()

if(EXISTS ${WORK}/prefix/bin/weighbridge)
  run(${WORK}/prefix/bin/weighbridge --version)
  if(NOT output MATCHES "${VERSION}")
    message(FATAL_ERROR "weighbridge --version said '${output}', not ${VERSION}")
  endif()
endif()
