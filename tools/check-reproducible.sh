#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Proves that a commit makes the same bytes wherever it is built: two builds of HEAD, in folders of different names and depths, the second without
# the compiler cache; then the command, the archives, the manual, the bill of materials, what `make dist` makes of them, the wheel, the source
# archive and the browser's modules are compared. Prints each with its SHA-256, and fails if one differs.
#   check-reproducible.sh [--cached] [command] [packages] [wheel] [web]
# Without names it does all four; what cannot be built here is named, and left out. --cached uses the compiler cache for both, which proves less (a
# second compiler run could differ) and takes a tenth of the time.
set -euo pipefail
cd "$(dirname "$0")/.."
cached=no
[ "${1-}" = --cached ] && { cached=yes; shift; }
parts=("$@")
[ ${#parts[@]} -gt 0 ] || parts=(command packages wheel web)
jobs=${JOBS:-$(nproc)}
python=$PWD/build/venv-python/bin/python
root=$PWD/build/reproducible
first=$root/a
second=$root/another/folder-with-a-longer-name
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
commit=$(git rev-parse HEAD)  # a commit made meanwhile changes nothing
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
rm -rf "$root"

has() { [[ " ${parts[*]} " == *" $1 "* ]]; }

# build FOLDER: everything that was asked for, from the files of that commit
build() {
  local at=$1
  mkdir -p "$at"
  local log=$at.log  # outside, so that it is in no archive
  git archive "$commit" | tar -x -C "$at"
  local launcher=()
  # An empty launcher turns the cache off; the second build also runs in another order, with other file times.
  [ "$at" = "$first" ] || [ $cached = yes ] || launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=)
  (
    cd "$at"
    cmake --preset release -DWEIGHBRIDGE_TESTS=OFF "${launcher[@]}" >"$log"
    cmake --build build/release -j "$jobs" --target weighbridge weighbridge_library weighbridge_chain pages >>"$log"
    if has packages; then
      (umask 022 && cd build/release && cpack -B packages >>"$log")  # as `make package` does
      tools/dist.py --built command archive deb sbom >>"$log"
    fi
    if has wheel; then
      tools/make-wheel.sh "$python" "cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=$([ ${#launcher[@]} -gt 0 ] || command -v ccache)" >>"$log"
      tools/make-sdist.sh "$python" >>"$log"
    fi
    if has web; then
      for preset in web web-plain; do cmake --preset $preset "${launcher[@]}" >>"$log"; done
      for kind in simd plain; do cmake --build build/web/$kind -j "$jobs" --target weighbridge_core >>"$log"; done
    fi
  )
}

if has wheel && [ ! -x "$python" ]; then
  echo "left out: the wheel (build/venv-python is missing: make wheel makes it)"
  parts=("${parts[@]/wheel/}")
fi
if has web && ! command -v emcc >/dev/null; then
  echo "left out: the browser's modules (Emscripten is missing: make web installs it)"
  parts=("${parts[@]/web/}")
fi
build "$first"
sleep 1
umask 077  # must not be seen in packages
build "$second"

status=0
compared=0
shopt -s nullglob globstar
cd "$first"
for file in build/release/weighbridge build/release/lib*.a build/release/pages/**/* build/dist/* build/wheels/* \
            build/web/*/web/core/weighbridge.{js,wasm}; do
  [ -f "$file" ] || continue
  [[ $file == *.stamp ]] && continue
  compared=$((compared + 1))
  if cmp -s "$file" "$second/$file"; then
    printf 'equal    %s  %s\n' "$(sha256sum <"$file" | cut -c1-64)" "$file"
  else
    printf 'DIFFERS  %s\n' "$file"
    status=1
  fi
done
if [ $compared -lt 3 ]; then
  echo "nothing was built to compare" >&2
  exit 1
fi
# A comparison that cannot fail proves nothing: a byte that was changed must be seen.
cp build/release/weighbridge "$root/planted"
printf 'x' | dd of="$root/planted" bs=1 seek=4096 conv=notrunc status=none
if cmp -s build/release/weighbridge "$root/planted"; then
  echo "the comparison did not see a changed byte" >&2
  exit 1
fi
exit $status
