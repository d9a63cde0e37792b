#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs one stage of `make test` or `make check`: `stage.sh NAME COMMAND...`. Says which stage it is, and afterwards how it went and how long it took.
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
