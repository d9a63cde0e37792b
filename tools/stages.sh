#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the stages of `make test`, `make check` and `make check-long`: `stages.sh GOAL TITLE COMMAND [TITLE COMMAND...]`. Stops at the first that fails,
# with its exit status. Prints the title of each stage, then its result and duration, and at the end a table of them all. Adds a line for each stage to
# build/stages.tsv, which tools/minutes.py reads: goal, title, seconds, seconds of all processors, date, commit, exit status.
set -u
table=
record=build/stages.tsv
seconds() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", b - a }'; }
now() { date +%s.%N; }
# The processor time of all commands so far: `times` prints it as 0m1.234s, that of the children in its second line. It runs in this shell, since
# a subshell's children are its own.
processors() { times >"$sums"; worked=$(tail -n 1 "$sums" | tr ms '  ' | awk '{ print 60 * ($1 + $3) + $2 + $4 }'); }
summary() { printf '\n== Stages of %s\n%s%9.1f s  in all\n' "$goal" "$table" "$(seconds "$begin" "$(now)")"; }

goal=$1
shift
sums=$(mktemp)
trap 'rm -f "$sums"' EXIT
mkdir -p "${record%/*}"
commit=$(git rev-parse --short HEAD 2>/dev/null)
begin=$(now)
while [ $# -gt 1 ]; do
  title=$1 command=$2
  shift 2
  echo "== $title"
  processors
  start=$(now) before=$worked
  bash -c "$command"
  status=$?
  took=$(seconds "$start" "$(now)")
  processors
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$goal" "$title" "$took" "$(seconds "$before" "$worked")" "$(date +%F)" "$commit" "$status" >>"$record"
  printf -v table '%s%9.1f s  %s\n' "$table" "$took" "$title$([ $status -eq 0 ] || echo ": FAILED")"
  if [ $status -ne 0 ]; then
    summary
    echo "== $title FAILED after $took s (status $status)"
    exit $status
  fi
  echo "== $title: done in $took s"
done
summary
