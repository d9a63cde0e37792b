#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs one stage of `make test` or `make check`: `stage.sh NAME COMMAND...`. Prints the name of the stage, then its result and duration.
set -u
name=$1
shift
echo "== $name"
start=$(date +%s.%N)
"$@"
status=$?
seconds=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')
if [ $status -ne 0 ]; then
  echo "== $name FAILED after $seconds s (status $status)"
else
  echo "== $name: done in $seconds s"
fi
exit $status
