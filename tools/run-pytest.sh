#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `run-pytest.sh system|published PATH...`: runs Python tests with the system's packages, or with the published packages of build/venv.
# If that environment is missing, it uses the system's packages, and tests that need others are skipped with the reason. Further
# arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
export WEIGHBRIDGE="${WEIGHBRIDGE:-$PWD/build/release/weighbridge}"
# The key that marks journals, which is otherwise made in the home of whoever runs the tests.
export XDG_STATE_HOME="${XDG_STATE_HOME:-$PWD/build/test-state}"
mkdir -p "$XDG_STATE_HOME"
case "${1-}" in
  system) pythons=(/usr/bin/python3 python3) ;;
  published) pythons=(build/venv/bin/python /usr/bin/python3 python3) ;;
  *) echo "usage: $0 system|published PATH..." >&2; exit 2 ;;
esac
shift
for python in "${pythons[@]}"; do
  if "$python" -c 'import pytest' 2>/dev/null; then
    tools/pytest.sh "$python" "$@"
    exit
  fi
done
echo "pytest is missing: make setup FOR=test installs it" >&2
exit 1
