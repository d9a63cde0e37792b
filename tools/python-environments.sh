#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Python environments of the interop tests: tests/interop/requirements.txt becomes build/venv, requirements-NAME.txt
# becomes build/venv-NAME. An environment is rebuilt only if its file has changed. If the package index cannot be reached, this prints a
# message and succeeds; tests that need an environment are then skipped, with the reason.
#   python-environments.sh              all of them
#   python-environments.sh FILE FOLDER [PYTHON]   one, of that interpreter; fails if it cannot be made
set -uo pipefail
cd "$(dirname "$0")/.."

make_environment() {  # requirements file, folder, interpreter
  local file=$1 folder=$2 python=${3:-python3} stamp
  stamp=$(sha256sum <"$file"; "$python" --version)
  if [ "$(cat "$folder/.made-from" 2>/dev/null)" = "$stamp" ]; then
    return 0
  fi
  echo "Making $folder from $file"
  rm -rf "$folder"
  "$python" -m venv "$folder" &&
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 -r "$file" &&
    printf '%s\n' "$stamp" >"$folder/.made-from"
}

mkdir -p build
if [ $# -gt 0 ]; then
  make_environment "$@"
  exit
fi
shopt -s nullglob
for file in tests/interop/requirements*.txt; do
  name=$(basename "$file" .txt)
  if ! make_environment "$file" "build/venv${name#requirements}"; then
    rm -rf "build/venv${name#requirements}"
    echo "WARNING: $file could not be installed (see above): the tests that need it will be skipped." >&2
  fi
done
