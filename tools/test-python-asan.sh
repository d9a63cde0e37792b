#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the extension module with the address sanitizer and runs the Python package's tests on it: ten thousand openings, views that outlive
# their models, hostile metadata. The interpreter itself is not instrumented, so its library is loaded first, and its leaks do not count.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/build/venv-python/bin/python
cmake -S . -B build/python-asan -G Ninja -DWEIGHBRIDGE_PYTHON=ON -DWEIGHBRIDGE_TESTS=OFF -DWEIGHBRIDGE_STATIC=OFF \
  -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -DWEIGHBRIDGE_SANITIZE=address -DPython_EXECUTABLE="$python"
cmake --build build/python-asan --target weighbridge_python
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r python/weighbridge python/tests "$work"
rm -f "$work"/weighbridge/_core*.so
cp build/python-asan/python/_core*.so "$work/weighbridge"
cd "$work"
# A large quarantine of freed memory would look like a leak.
LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libstdc++.so.6)" \
  ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8:thread_local_quarantine_size_kb=64 PYTHONPATH=$work WEIGHBRIDGE_ROOT=$root \
  WEIGHBRIDGE_TEST_DATA="${WEIGHBRIDGE_TEST_DATA:-$root/../shared/data}" \
  "$python" -m pytest -q -rs -p no:cacheprovider -p no:faulthandler tests --ignore tests/test_types.py "$@"
