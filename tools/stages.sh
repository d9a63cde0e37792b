#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the stages of `make test`, `make check` and `make check-long`: `stages.sh TITLE COMMAND [TITLE COMMAND...]`. Stops at the first that fails,
# with its exit status. Prints the title of each stage, then its result and duration, and at the end a table of them all.
set -u
table=
summary() { printf '\n== Stages\n%s%9.1f s  in all\n' "$table" "$(seconds "$begin")"; }
seconds() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }'; }

begin=$(date +%s.%N)
while [ $# -gt 1 ]; do
  title=$1 command=$2
  shift 2
  echo "== $title"
  start=$(date +%s.%N)
  bash -c "$command"
  status=$?
  took=$(seconds "$start")
  printf -v table '%s%9.1f s  %s\n' "$table" "$took" "$title$([ $status -eq 0 ] || echo ": FAILED")"
  if [ $status -ne 0 ]; then
    summary
    echo "== $title FAILED after $took s (status $status)"
    exit $status
  fi
  echo "== $title: done in $took s"
done
summary
