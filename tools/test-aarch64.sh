#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs what `make wheels` made for aarch64 under Debian's qemu-user, in Debian's own packages for arm64: the corpus test, the test of
# the kernels, the command, and the wheel for Python 3.11 with the package's tests. Takes minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install-packages.sh aarch64
built=build/zig-aarch64
system=$PWD/build/aarch64
if [ ! -x "$system/usr/bin/python3.11" ]; then
  mmdebstrap --quiet --arch=arm64 --variant=extract --include=python3-minimal,python3.11,python3-numpy,python3-pytest bookworm "$system"
fi
# Where NumPy's libraries are before the links that installing them would make.
libraries=/usr/lib/aarch64-linux-gnu
run=(qemu-aarch64 -L "$system" -E "LD_LIBRARY_PATH=$libraries/blas:$libraries/lapack")

cmake "$built" -DWEIGHBRIDGE_TESTS=ON >/dev/null
cmake --build "$built" -j "${JOBS:-$(nproc)}" --target corpus_test runtime_kernels_test weighbridge
"${run[@]}" "$built/weighbridge" --version
# Without the mutations: they take long, and measure memory, of which the emulator reports its own.
"${run[@]}" "$built/tests/corpus/corpus_test" --gtest_brief=1 --gtest_filter='-*Mutations*'
"${run[@]}" "$built/src/runtime/kernels/runtime_kernels_test" --gtest_brief=1

wheel=$(ls build/wheels/released/weighbridge-*-cp311-*_aarch64.whl)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m zipfile -e "$wheel" "$work/site"
export WEIGHBRIDGE_ROOT="$PWD" WEIGHBRIDGE_TEST_DATA="${WEIGHBRIDGE_TEST_DATA:-$PWD/../shared/data}"
export PYTHONPATH="$work/site:$system/usr/lib/python3/dist-packages" PYTHONDONTWRITEBYTECODE=1
cp -r python/tests "$work/tests"
cd "$work"
chmod +x site/weighbridge-*.data/scripts/weighbridge
"${run[@]}" site/weighbridge-*.data/scripts/weighbridge --version >/dev/null
# The emulator starts no further programs of that processor, and does not keep threads apart after fork.
"${run[@]}" "$system/usr/bin/python3.11" -m pytest -q -rs -p no:cacheprovider -k "not ctrl_c and not importing and not fork" \
  tests/test_{core,numpy,runtimes,safetensors,stubs}.py "$@"
