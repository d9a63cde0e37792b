#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the source archive for Python's package index, of the files that git knows, or of all in a tree without git, and prints its
# path. `make-sdist.sh PYTHON`: an interpreter with scikit-build-core. The archive of a commit has its id (cmake/commit.cmake); one of
# uncommitted changes has none.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(realpath -s "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" != "$(pwd -P)" ]; then  # an unpacked archive, which may lie in another repository
  tar -c --exclude=./build . | tar -x -C "$work"
elif [ -z "$(git status --porcelain)" ]; then
  git archive HEAD | tar -x -C "$work"
else
  git ls-files --cached --others --exclude-standard -z | tar -c --null --files-from=- | tar -x -C "$work"
fi
mkdir -p build/wheels
rm -f build/wheels/weighbridge-*.tar.gz
into=$PWD/build/wheels
cd "$work"
name=$("$python" -c 'import sys; from scikit_build_core.build import build_sdist; print(build_sdist(sys.argv[1]))' "$into" | tail -1)
echo "build/wheels/$name"
