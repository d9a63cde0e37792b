#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the npm package's tests under Node and the page's tests in Chromium, against the native command. Tests that need a browser, the
# command, real files or the MiniLM are skipped with the reason if these are missing. Arguments go to `node --test`.
set -euo pipefail
cd "$(dirname "$0")/.."
export WEIGHBRIDGE="${WEIGHBRIDGE:-$PWD/build/release/weighbridge}"
if [ -z "${WEIGHBRIDGE_TEST_DATA-}" ] && [ -d ../shared/data ]; then
  export WEIGHBRIDGE_TEST_DATA="$PWD/../shared/data"
fi
status=0
for tests in web/api/test web/tests; do
  echo "$tests"
  node --test --test-reporter=spec "$@" "$tests"/*.test.mjs || status=1
done
exit $status
