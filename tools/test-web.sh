#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the npm package's tests under Node and the page's tests in Chromium, against the native command; with WEIGHBRIDGE_BROWSER=firefox
# only the page's, in Firefox. PAGE_TESTS=keyboard runs only that file of the page's. Tests that need a browser, the command, real files or
# the MiniLM are skipped with the reason if these are missing. Arguments go to `node --test`.
set -euo pipefail
cd "$(dirname "$0")/.."
export WEIGHBRIDGE="${WEIGHBRIDGE:-$PWD/build/release/weighbridge}"
if [ -z "${WEIGHBRIDGE_TEST_DATA-}" ] && [ -d ../shared/data ]; then
  export WEIGHBRIDGE_TEST_DATA="$PWD/../shared/data"
fi
status=0
if [ "${WEIGHBRIDGE_BROWSER:-chromium}" = chromium ]; then
  # web/tests/bundlers.test.mjs builds a project with it, and is skipped without it.
  [ -d build/vite ] || npm install --silent --ignore-scripts --no-save --prefix build/vite vite@8.4.0 || true
  echo "web/api/test"
  node --test --test-reporter=spec "$@" web/api/test/*.test.mjs || status=1
fi
echo "web/tests, in ${WEIGHBRIDGE_BROWSER:-chromium}"
node --test --test-reporter=spec "$@" web/tests/${PAGE_TESTS:-*}.test.mjs || status=1
exit $status
