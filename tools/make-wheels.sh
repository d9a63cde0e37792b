#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the released wheels: build/wheels/released. `make-wheels.sh [MACHINE...]`: x86_64 and aarch64 by default. The package ziglang
# compiles them for glibc 2.17 (cmake/zig.cmake), the library once for each machine and the extension module for each of the interpreters
# 3.10, 3.11 and 3.12, of which only the headers are used; that of 3.12 is for all later ones too. auditwheel checks each.
set -euo pipefail
cd "$(dirname "$0")/.."
machines=("$@")
[ ${#machines[@]} -gt 0 ] || machines=(x86_64 aarch64)
tools/fetch-sources.sh
tools/python-environments.sh python/requirements-wheels.txt build/venv-wheels
zig=$(build/venv-wheels/bin/python -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).with_name("zig"))')
for version in 3.10 3.11 3.12; do
  python=$(tools/find-python.sh $version) || { echo "The released wheels need Python $version, for its headers" >&2; exit 1; }
  tools/python-environments.sh tests/interop/requirements-python.txt build/venv-python-$version "$python"
done

for machine in "${machines[@]}"; do
  built=build/zig-$machine
  toolchain=(-DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/zig.cmake" -DWEIGHBRIDGE_ZIG="$zig" -DWEIGHBRIDGE_ZIG_MACHINE="$machine"
             -DWEIGHBRIDGE_BUNDLED=ON)
  [ -f "$built/build.ninja" ] || cmake --preset release -B "$built" -DWEIGHBRIDGE_TESTS=OFF -DWEIGHBRIDGE_PCH=OFF "${toolchain[@]}"
  cmake --build "$built" -j "${JOBS:-$(nproc)}" --target weighbridge weighbridge_library
  made=build/wheels/zig-$machine
  rm -rf "$made"
  for version in 3.10 3.11 3.12; do
    BUILT=$built WHEELS=$made tools/make-wheel.sh build/venv-python-$version/bin/python "${toolchain[@]/#-D/cmake.define.}" >/dev/null
  done
  build/venv-wheels/bin/python -m wheel tags --remove --platform-tag "manylinux_2_17_$machine.manylinux2014_$machine" "$made"/*.whl
  for wheel in "$made"/*.whl; do
    audit=$(build/venv-wheels/bin/auditwheel show "$wheel")
    tag=$(grep -o '"manylinux_[0-9a-z_]*"' <<<"$audit" | head -1)
    echo "auditwheel: $(basename "$wheel") is ${tag:-for this machine alone}"
    [ "$tag" = "\"manylinux_2_17_$machine\"" ] || { echo "$audit" >&2; exit 1; }
  done
  python3 tests/package/wheel.py "$made"/*.whl
  if [ "$machine" = "$(uname -m)" ]; then
    for version in 3.10 3.11 3.12; do
      tools/test-python.sh build/venv-python-$version "$(ls "$made"/*-cp${version/./}-*.whl)"
    done
  fi
  mkdir -p build/wheels/released
  rm -f build/wheels/released/*"_$machine.whl"
  mv "$made"/*.whl build/wheels/released/
  rm -rf "$made"
done
ls -l build/wheels/released
