#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Corpora and lakes on Ray, and the engines that speak Arrow (build/venv-ray, 1.1 GB). Needs the wheel that `make wheel` built.
#   RAY_PYTHON   an interpreter that has what python/scale/requirements.txt names, instead of build/venv-ray; with pyspark too, Spark is tested
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${RAY_PYTHON:-$root/build/venv-ray/bin/python}
[ -n "${RAY_PYTHON-}" ] || tools/python-environments.sh python/scale/requirements.txt build/venv-ray
wheel=$(ls -t build/wheels/weighbridge-*-linux_*.whl | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target "$work/site" "$wheel"
export PYTHONPATH=$work/site WEIGHBRIDGE_ROOT=$root RAY_USAGE_STATS_ENABLED=0
cp -r python/tests python/scale "$work"  # so that nothing of the tree is imported
(cd "$work" && "$python" -m pytest -q -rs -p no:cacheprovider scale tests/test_ray.py tests/test_arrow.py "$@")
"$python" -m mypy --strict --config-file "$root/pyproject.toml" -p weighbridge
