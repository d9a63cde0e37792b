#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `test-python-core.sh BUILD`: compiles the extension module over the library of a build folder and runs the tests of the Python package that
# need no other package. nanobind and pytest come from the package index; if it cannot be reached, this says so and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."
built=$1
environment=build/venv-core
if ! tools/python-environments.sh python/requirements-core.txt $environment; then
  echo "WARNING: nanobind could not be installed (see above): the Python package is not tested." >&2
  exit 0
fi
python=$PWD/$environment/bin/python
cmake -S . -B build/python-core -G Ninja -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1" -DWEIGHBRIDGE_PYTHON=ON \
  -DWEIGHBRIDGE_TESTS=OFF -DWEIGHBRIDGE_STATIC=OFF -DWEIGHBRIDGE_BUILT="$built" -DPython_EXECUTABLE="$python" >/dev/null
cmake --build build/python-core --target weighbridge_python
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r python/weighbridge python/tests "$work"
rm -f "$work"/weighbridge/_core*.so
cp build/python-core/python/_core*.so "$work/weighbridge"
cd "$work"
WEIGHBRIDGE_ROOT=$root PYTHONPATH=$work "$root/tools/pytest.sh" "$python" tests
