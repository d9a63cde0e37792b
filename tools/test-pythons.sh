#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheel for each of Python 3.10 to 3.13 that is on this machine (on the PATH, or pyenv's) and runs the package's tests with it.
# From 3.12 on there is one wheel, which is made once. Says which versions are missing; fails if all are.
set -uo pipefail
cd "$(dirname "$0")/.."

tested=() missing=() failed=() stable=""
for version in 3.10 3.11 3.12 3.13; do
  if ! python=$(tools/find-python.sh $version); then
    missing+=($version)
    continue
  fi
  tools=build/venv-python-$version
  echo "Python $version: $python"
  if ! tools/python-environments.sh tests/interop/requirements-python.txt "$tools" "$python"; then
    failed+=($version)
    continue
  fi
  wheel=$stable
  [ -n "$wheel" ] || wheel=$(WHEELS=build/wheels/pythons tools/make-wheel.sh "$tools/bin/python") || { failed+=($version); continue; }
  [[ $wheel == *-abi3-* ]] && stable=$wheel
  if tools/test-python.sh "$tools" "$wheel"; then
    tested+=($version)
  else
    failed+=($version)
  fi
done
[ ${#missing[@]} -eq 0 ] || echo "Not tested, because this machine does not have them: Python ${missing[*]}"
[ ${#failed[@]} -eq 0 ] || echo "Failed: Python ${failed[*]}" >&2
echo "The package's tests passed with Python ${tested[*]:-(none)}"
[ ${#failed[@]} -eq 0 ] && [ ${#tested[@]} -gt 0 ]
