#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs one libFuzzer program: `run.sh clean|planted PROGRAM SECONDS SEEDS...`. A clean run must find nothing in that time. A planted
# run must find its bug in that time by itself: no seed may trigger it. The inputs that a run learns stay beside the program; a failing
# input is named. With WEIGHBRIDGE_FUZZ_FORMAT, which complexity.cc reads, they are kept apart for each format.
set -uo pipefail
expectation=$1 program=$2 seconds=$3
shift 3
name=$program${WEIGHBRIDGE_FUZZ_FORMAT:+.$WEIGHBRIDGE_FUZZ_FORMAT}
if [ "$expectation" = planted ]; then
  export WEIGHBRIDGE_PLANTED_BUG=1
  name+=.planted
  rm -rf "$name.corpus"  # the last run may have learned the bug
fi
learned=$name.corpus
mkdir -p "$learned"
log=$name.log
if [ "$expectation" = planted ] && ! "$program" -runs=0 "$@" >"$log" 2>&1; then
  grep -m 5 -E 'planted bug|ERROR|error' "$log"
  echo "a seed shows the planted bug before the fuzzer starts"
  exit 1
fi
# Few mutations at once: most files with five changes fail at the first one.
"$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 -mutate_depth=2 -print_final_stats=1 \
  -artifact_prefix="$name." "$learned" "$@" >"$log" 2>&1
status=$?
sed -n 's/^stat::number_of_executed_units: */inputs tried: /p' "$log"
case $expectation in
  clean)
    [ $status -eq 0 ] || { tail -60 "$log"; exit 1; }
    ;;
  planted)
    if [ $status -eq 0 ] || ! grep -qE 'planted bug' "$log"; then
      tail -20 "$log"
      echo "the planted bug was not found in $seconds s"
      exit 1
    fi
    ;;
esac
