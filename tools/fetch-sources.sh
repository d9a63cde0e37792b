#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Puts the sources of zstd (one C file) and zlib into build/sources. The WebAssembly build and the released wheels compile them
# (cmake/bundled.cmake). They come from Python packages that bundle them; the archives are checked by digest.
set -euo pipefail
cd "$(dirname "$0")/.."

# fetch NAME PACKAGE VERSION DIGEST FOLDER: the folder of that package's source archive becomes build/sources/NAME.
fetch() {
  local name=$1 package=$2 version=$3 digest=$4 folder=$5 target=build/sources/$1
  [ -d "$target" ] && return
  [ -d "$work/venv" ] || python3 -m venv "$work/venv"
  echo "$package==$version --hash=sha256:$digest" >"$work/requirements.txt"
  "$work/venv/bin/pip" download --quiet --disable-pip-version-check --require-hashes --no-deps --no-binary "$package" \
    --dest "$work" --requirement "$work/requirements.txt" || {
    echo "The source of $name ($package $version) could not be fetched from the Python package index" >&2
    exit 1
  }
  tar -xzf "$work/$package-$version.tar.gz" -C "$work"
  mkdir -p build/sources
  mv "$work/$package-$version/$folder" "$target"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fetch zstd zstandard 0.23.0 b2d8c62d08e7255f68f7a740bae85b3c9b8e5466baa9cbf7f57f1cde0ac6bc09 zstd
fetch zlib numcodecs 0.13.1 a3cf37881df0898f3a9c0d4477df88133fe85185bffe57ba31bcc2fa207709bc c-blosc/internal-complibs/zlib-1.3.1
