#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lays zstd's source, as one C file, into build/web/zstd: the WebAssembly build compiles it, since Debian has zstd for the machine itself
# only. It is the amalgamation that the Python package zstandard is distributed with, its archive checked by digest.
set -euo pipefail
cd "$(dirname "$0")/.."

package=zstandard version=0.23.0
digest=b2d8c62d08e7255f68f7a740bae85b3c9b8e5466baa9cbf7f57f1cde0ac6bc09
target=build/web/zstd
[ -f "$target/zstd.c" ] && exit 0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
echo "$package==$version --hash=sha256:$digest" >"$work/requirements.txt"
"$work/venv/bin/pip" download --quiet --disable-pip-version-check --require-hashes --no-deps --no-binary :all: \
  --dest "$work" --requirement "$work/requirements.txt" || {
  echo "The source of zstd ($package $version) could not be fetched from the Python package index" >&2
  exit 1
}
tar -xzf "$work/$package-$version.tar.gz" -C "$work"
mkdir -p build/web
rm -rf "$target"
mv "$work/$package-$version/zstd" "$target"
