#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs every benchmark: functions of the library, then whole processes in turns with the peers that are there. Arguments go to
# bench/processes.py; peers are looked for in $PATH and below $PEERS, those that are Python packages with $PEER_PYTHON (numpy,
# llama-cpp-python, gguf, onnx, onnxruntime, tokenizers).
set -euo pipefail
cd "$(dirname "$0")/.."
library=build/bench/bench/library_bench
"$library" --benchmark_min_time=0.5
python=python3
[ -x build/venv/bin/python ] && python=build/venv/bin/python
"$python" bench/processes.py build/bench-data --ours build/bench/weighbridge --roofs "$library" --peers "${PEERS-}" --json build/bench/processes.json "$@"
"$python" bench/pairs.py build/bench-data --ours build/bench/weighbridge --samples build/bench/bench/sample_files --roofs "$library" --json build/bench/pairs.json
"$python" bench/generate.py --ours build/bench/bench/generate_rates ${PEER_PYTHON:+--peer "$PEER_PYTHON"}
if [ -f build/demo/minilm.safetensors ]; then
  "$python" bench/embed.py build/demo/minilm.safetensors --ours build/bench/bench/embed_bench ${PEER_PYTHON:+--peer "$PEER_PYTHON"}
fi
