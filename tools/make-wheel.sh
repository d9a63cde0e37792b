#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make-wheel.sh PYTHON [SETTING=VALUE...]`: makes the wheel for one interpreter over the library and the command of a build folder, and
# prints its path. The interpreter's environment has scikit-build-core and nanobind, to which the settings go. BUILT is the build folder
# (default: build/release), WHEELS the folder for the wheel (default: build/wheels).
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
into=${WHEELS:-build/wheels}
built=${BUILT:-build/release}
settings=("build-dir=build/wheel/$(basename "$built")/{wheel_tag}" "cmake.define.WEIGHBRIDGE_BUILT=$built" "$@")
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation "${settings[@]/#/--config-settings=}" \
  --wheel-dir "$made" . >&2
mkdir -p "$into"
wheel=$(basename "$made"/*.whl)
rm -f "$into"/weighbridge-*-"${wheel#*-*-}"  # of another version
mv "$made/$wheel" "$into/"
echo "$into/$wheel"
