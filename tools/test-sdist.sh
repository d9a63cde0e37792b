#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `test-sdist.sh TOOLS`: compiles a wheel from the source archive of build/wheels, as `pip install` of it would, and runs it. TOOLS is
# an environment made from tests/interop/requirements-python.txt. Takes as long as a build of the library.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/$1
archive=$(ls -t build/wheels/weighbridge-*.tar.gz | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tools/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work" "$archive"
python3 tests/package/wheel.py "$work"/weighbridge-*.whl
"$tools/bin/python" -m venv "$work/alone"
"$work/alone/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$work"/weighbridge-*.whl
"$work/alone/bin/weighbridge" --version
"$work/alone/bin/python" -c 'import weighbridge as wb; print("weighbridge", wb.__version__, "from", wb.__file__)'
