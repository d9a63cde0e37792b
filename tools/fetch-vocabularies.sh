#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the vocabularies that llama.cpp is tested with, and texts with their tokens, from the source archive of a Python package,
# pinned by version and SHA-256, into build/demo/gguf, and the source of GGML's quantizers into its folder ggml. Does nothing if they
# are there. Exits with 1 and a message if the package index cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
package='llama-cpp-python==0.3.36'
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
mkdir -p build/demo
cd build/demo
if [ -f "gguf/$sha256" ] && [ -d gguf/ggml ]; then
  exit 0
fi
python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then  # a separate package in Debian; a virtual environment has its own
  python=venv/bin/python
  if ! { [ -x "$python" ] || python3 -m venv venv >pip.log 2>&1; }; then
    echo "There is no pip for python3, so the vocabularies of llama.cpp are left out."
    exit 1
  fi
fi
echo "Fetching the vocabularies of llama.cpp (77 MB, the source of the Python package $package)"
rm -rf source gguf gguf.part
if ! "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-python --retries 1 --timeout 15 \
     --dest source "$package" 2>pip.log; then
  echo "The Python package index cannot be reached, so they are left out (see build/demo/pip.log)."
  exit 1
fi
archive=$(echo source/*.tar.gz)
echo "$sha256  $archive" | sha256sum --check --status || { echo "the archive of $package has another SHA-256 than $sha256" >&2; exit 1; }
mkdir gguf.part
tar xzf "$archive" -C gguf.part --strip-components=4 --wildcards '*/vendor/llama.cpp/models/ggml-vocab-*'
tar xzf "$archive" -C gguf.part --strip-components=3 --wildcards '*/vendor/llama.cpp/ggml/include/*.h' \
    '*/vendor/llama.cpp/ggml/src/ggml-*.h' '*/vendor/llama.cpp/ggml/src/ggml-quants.c'
touch "gguf.part/$sha256"
mv gguf.part gguf
rm -rf source
