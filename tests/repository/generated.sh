#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `generated.sh GENERATOR SCRATCH FOLDER`: every file that GENERATOR writes must be in FOLDER, byte for byte.
set -euo pipefail
generator=$1 scratch=$2 folder=$3

differences() {
  local status=0 count=0
  while IFS= read -r -d '' file; do
    count=$((count + 1))
    diff -u "$folder/$file" "$file" || status=1
  done < <(find . -type f -printf '%P\0')
  [ "$count" -gt 0 ] && return $status
}

rm -rf "$scratch"
mkdir -p "$scratch"
"$generator" "$scratch"
cd "$scratch"
if ! differences; then
  echo "generated files differ: run \`make docs\` and commit what changes"
  exit 1
fi
echo "planted" >>"$(find . -type f | head -n 1)"
if differences >/dev/null; then
  echo "a planted difference went unnoticed"
  exit 1
fi
