# SPDX-License-Identifier: Apache-2.0
# Tests which commit cmake/commit.cmake finds for a tree without a checkout. Usage: cmake -DSOURCE=... -DWORK=... -P commit.cmake

# expect(COMMIT DATE CONTENT): the result for an archive whose cmake/commit.txt contains CONTENT.
function(expect commit date content)
  set(PROJECT_SOURCE_DIR ${WORK})
  file(WRITE ${WORK}/cmake/commit.txt "${content}\n")
  include(${SOURCE}/cmake/commit.cmake)
  if(NOT WEIGHBRIDGE_COMMIT STREQUAL commit OR NOT WEIGHBRIDGE_DATE STREQUAL date)
    message(FATAL_ERROR "'${content}' is taken for '${WEIGHBRIDGE_COMMIT}' of '${WEIGHBRIDGE_DATE}'")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
string(REPEAT 0123456789 4 commit)
expect(${commit} 2026-01-31 "${commit} 2026-01-31")
file(READ ${SOURCE}/cmake/commit.txt as_committed)
if(as_committed MATCHES "Format")  # not itself an archive
  expect(unknown "" "${as_committed}")
endif()
expect(unknown "" "0123456 2026-01-31")
expect(unknown "" "")
