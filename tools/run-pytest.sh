#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the Python tests below tests/ with the interop environment, or, where that could not be made, with the system's pytest:
# the tests that need the published packages then skip, each with its reason. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
export WEIGHBRIDGE="${WEIGHBRIDGE:-$PWD/build/release/weighbridge}"
for python in build/venv/bin/python python3 /usr/bin/python3; do
  if "$python" -c 'import pytest' 2>/dev/null; then
    flags=()
    # What passed leaves nothing: some of the files are gigabytes.
    "$python" -c 'import xdist' 2>/dev/null &&
      flags=(-n "$(nproc)" --dist worksteal -o tmp_path_retention_count=1 -o tmp_path_retention_policy=failed)
    # A job in the background of a script ignores these, and so would the command that the tests interrupt.
    env --default-signal=INT,HUP "$python" -m pytest -q -rs -p no:cacheprovider ${flags[@]+"${flags[@]}"} tests "$@"
    exit
  fi
done
echo "pytest is missing: make setup-test installs it" >&2
exit 1
