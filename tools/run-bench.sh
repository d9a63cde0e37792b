#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the benchmarks and runs them in turns with the installed peers, one JSON file each: `run-bench.sh [--quick] [NAME...]` (default: all).
# A missing peer or input is left out, with a message. Environment variables:
#   PEERS                 a folder with the commands zt and amn (features cli, gguf, awq, gptq, bnb and nvfp4), if they are not in PATH
#   PEER_PYTHON           a python3 with the peers' packages; each of these replaces it for some packages:
#   SAFETENSORS_PYTHON    safetensors, numpy (else build/venv)          TOKENIZERS_PYTHON   tokenizers (else build/venv)
#   LLAMA_PYTHON          llama-cpp-python, gguf, numpy                 ONNX_PYTHON         onnx, onnxruntime, tokenizers, numpy
#   PACKAGE_PYTHON        this package, safetensors, numpy, and torch and sentence-transformers for their rows
#   RAY_PYTHON            this package with [ray], and sentence-transformers, onnx, onnxruntime and tokenizers for their rows
#   SENTENCE_PYTHON       sentence-transformers                         OPENVINO_PYTHON     openvino, nncf, tokenizers, numpy
#   MODEL2VEC_PYTHON      model2vec
#   STATIC_MODEL          a folder that model2vec saved (else one is made of all-MiniLM-L6-v2)
#   NETRON                a folder with netron's modules
#   GGML                  libggml-base.so (else that of llama-cpp-python in LLAMA_PYTHON)
#   LLAMA_CPP             a folder with convert_hf_to_gguf.py and llama-quantize, for CONVERTER_PYTHON, which has torch and transformers
#   SLIME                 a checkout of slime, for SLIME_PYTHON, which has torch, safetensors, zstandard and xxhash
#   WEIGHBRIDGE_TEST_DATA texts, vocabulary and checkpoint (else ../shared/data)
#   BENCH_TURNS           turns of every benchmark, instead of its own number; --quick is one short turn of each
#   BENCH_BUILD, BENCH_DATA, BENCH_RESULTS   build/bench, build/bench-data (about 9 GB, kept) and build/bench/results
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BENCH_BUILD:-build/bench} data=${BENCH_DATA:-build/bench-data} results=${BENCH_RESULTS:-build/bench/results}
ours=$build/installed/weighbridge programs=$build/bench
test_data=${WEIGHBRIDGE_TEST_DATA:-../shared/data} minilm=build/demo/minilm.safetensors folder=build/demo/all-MiniLM-L6-v2
python=python3
[ -x build/venv/bin/python ] && python=build/venv/bin/python

turns=${BENCH_TURNS-} quick=()
if [ "${1-}" = --quick ]; then
  shift
  turns=1 quick=(--seconds 0.2)
fi
names=("$@")
all=(containers hashes gguf quantized models growth pairs functions tokenize embed generate package scale web)
[ ${#names[@]} -gt 0 ] || names=("${all[@]}")
in_turns=(${turns:+-n "$turns"})
processes=("$data" --ours "$ours" --roofs "$programs/library_bench" "${in_turns[@]}")

existing() { [ ! -e "$2" ] || printf '%s\n%s\n' "$1" "$2"; }  # an option, if its file exists

peers_of_processes=(--peers "${PEERS-}" --python "${SAFETENSORS_PYTHON:-$python}")
run_containers() { "$python" bench/processes.py "${processes[@]}" "${peers_of_processes[@]}" "$@"; }
run_hashes() { "$python" bench/hashes.py "${processes[@]}" "$@"; }
run_gguf() {
  local more
  mapfile -t more < <(existing --vocabulary build/demo/gguf/ggml-vocab-gemma-4.gguf)
  "$python" bench/gguf.py "${processes[@]}" --peers "${PEERS-}" --python "${LLAMA_PYTHON:-$python}" "${more[@]}" "$@"
}
run_quantized() {
  "$python" bench/quantized.py "${processes[@]}" --recipes "$programs/recipes_bench" --peers "${PEERS-}" "$@"
}
run_models() {
  local ggml=${GGML-}
  [ -n "$ggml" ] || ggml=$("${LLAMA_PYTHON:-$python}" -c 'import llama_cpp; print(llama_cpp.__path__[0])' 2>/dev/null)/lib/libggml-base.so
  [ -f "$ggml" ] || ggml=
  "$python" bench/models.py "${processes[@]}" --quantizers "$programs/quantizers_bench" --ggml "$ggml" --llama-cpp "${LLAMA_CPP-}" \
    --llama-python "${CONVERTER_PYTHON:-${PEER_PYTHON:-$python}}" --slime "${SLIME-}" --slime-python "${SLIME_PYTHON:-${PEER_PYTHON:-$python}}" \
    --python "${SAFETENSORS_PYTHON:-$python}" "$@"
}
run_growth() { "$python" bench/growth.py "${processes[@]}" "${peers_of_processes[@]}" "$@"; }
run_pairs() { "$python" bench/pairs.py "${processes[@]}" --samples "$programs/sample_files" "$@"; }
run_functions() {
  "$python" bench/functions.py --library "$programs/library_bench" --embed "$programs/embed_bench" --cli "$ours" "${in_turns[@]}" \
    "${quick[@]}" "$@"
}
run_tokenize() {
  local vocab=$test_data/wordpiece/bert-base-uncased-vocab.txt text=$test_data/stsb/stsb-en-test.csv
  if [ ! -f "$vocab" ] || [ ! -f "$text" ]; then
    echo "left out: tokenize: its vocabulary or its text is not in the test data"
    return
  fi
  WEIGHBRIDGE_TEST_DATA=$test_data "${TOKENIZERS_PYTHON:-${PEER_PYTHON:-$python}}" bench/tokenize_peers.py \
    --ours "$programs/tokenize_bench" --cli "$ours" --vocab "$vocab" --text "$text" "${in_turns[@]}" "$@"
}
run_embed() {
  if [ ! -f "$minilm" ]; then
    echo "left out: embed: $minilm is not there (tools/fetch-minilm.sh)"
    return
  fi
  local more
  mapfile -t more < <(existing --vocab "$folder/vocab.txt"; existing --texts "$test_data/stsb/stsb-en-test.csv"
                      existing --golden "$test_data/minilm/golden.json"; existing --model-folder "$folder")
  mkdir -p "$data"
  "$python" bench/embed.py "$minilm" --ours "$programs/embed_bench" --cli "$ours" --peer "${ONNX_PYTHON:-${PEER_PYTHON-}}" \
    --openvino "${OPENVINO_PYTHON:-${PEER_PYTHON-}}" --sentence-transformers "${SENTENCE_PYTHON:-${PEER_PYTHON-}}" \
    --static "${STATIC_MODEL:-$data/model2vec}" --model2vec "${MODEL2VEC_PYTHON:-${PEER_PYTHON-}}" \
    "${more[@]}" "${in_turns[@]}" "${quick[@]}" "$@"
}
run_generate() {
  "$python" bench/generate.py --ours "$programs/generate_rates" --cli "$ours" --folder "$data" \
    --peer "${LLAMA_PYTHON:-${PEER_PYTHON-}}" "${in_turns[@]}" "${quick[@]}" "$@"
}
run_package() {
  if [ -z "${PACKAGE_PYTHON-}" ]; then
    echo "left out: package: no interpreter with the Python package was given (PACKAGE_PYTHON)"
    return
  fi
  local more
  mapfile -t more < <(existing --texts "$test_data/stsb/stsb-en-test.csv"; existing --model "$folder")
  "$PACKAGE_PYTHON" bench/package.py "$data" --cli "$ours" "${more[@]}" "${in_turns[@]}" "$@"
}
run_scale() {
  if [ -z "${RAY_PYTHON-}" ] || [ ! -d "$folder" ]; then
    echo "left out: scale: no interpreter with weighbridge[ray] was given (RAY_PYTHON), or $folder is not there"
    return
  fi
  local more
  mapfile -t more < <(existing --texts "$test_data/stsb/stsb-en-test.csv")
  "$RAY_PYTHON" bench/scale.py "$data/scale" --cli "$ours" --model "$folder" "${more[@]}" "${in_turns[@]}" "$@"
}
run_web() {
  if ! command -v node >/dev/null || [ ! -d build/web ] || [ ! -f web/api/dist/index.js ]; then
    echo "left out: web: node is missing, or the package is not built (make web)"
    return
  fi
  WEIGHBRIDGE_TEST_DATA=$test_data node bench/web.mjs --ours "$ours" ${turns:+--rounds "$turns"} ${NETRON:+--netron "$NETRON"} "$@"
}

for name in "${names[@]}"; do
  case " ${all[*]} " in
    *" $name "*) ;;
    *) echo "usage: $0 [--quick] [NAME...]; names are: ${all[*]}" >&2; exit 2 ;;
  esac
done
if [ -z "${BENCH_BUILD-}" ]; then cmake --preset bench; fi
cmake --build "$build" -j "$(nproc)"  # else programs that are older than their source would be timed, without a word
install -D "$build/weighbridge" "$ours"  # as users have it: the file as the linker leaves it starts 0.45 ms slower than a copy
mkdir -p "$results"
failed=()
for name in "${names[@]}"; do
  began=$SECONDS
  echo "== $name"
  "run_$name" --json "$results/$name.json" || failed+=("$name")
  echo "== $name: $((SECONDS - began)) s"
done
echo "results: $results/*.json; \`make bench REPORT=1\` puts them into bench/NOTES.md, docs/performance.md, README.md and docs/charts"
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
