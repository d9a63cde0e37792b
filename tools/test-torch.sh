#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What needs PyTorch (5.4 GB, build/venv-torch): the package's own tests with it, safetensors' own tests, unchanged, out of its source archives
# with weighbridge in its place, and transformers, huggingface_hub and sentence-transformers likewise. Needs the extension that `make wheel` built.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=$root/build/venv-torch/bin/python
tools/python-environments.sh python/ecosystem/requirements.txt build/venv-torch
wheel=$(ls -t build/wheels/weighbridge-*-linux_*.whl | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --target "$work/site" "$wheel"
export PYTHONPATH=$work/site WEIGHBRIDGE_ROOT=$root WEIGHBRIDGE_TEST_DATA="${WEIGHBRIDGE_TEST_DATA:-$root/../shared/data}"
cp -r python/tests python/ecosystem "$work"

echo "== the package's own tests"
(cd "$work" && "$python" -m pytest -q -rs -p no:cacheprovider tests/test_torch.py tests/test_safetensors.py)
echo "== transformers, huggingface_hub, sentence-transformers"
(cd "$work" && "$python" -m pytest -q -rs -p no:cacheprovider ecosystem)
# Those for the frameworks that are installed.
tests=$(printf 'test_%s.py ' simple handle threadable pread_backend pt_comparison pt_model multithreaded)
for version in 0.8.0 0.9.0rc1; do
  echo "== safetensors' own tests, $version"
  archive=build/sources/safetensors-$version.tar.gz
  [ -f "$archive" ] || "$python" -m pip download --quiet --disable-pip-version-check --pre --no-binary safetensors --no-deps --no-build-isolation \
    --dest build/sources "safetensors==$version"
  mkdir -p "$work/$version/tests/data"
  tar -xzf "$archive" -C "$work/$version" --strip-components 4 --wildcards '*/bindings/python/tests/*.py'
  cp python/ecosystem/conftest.py "$work/$version"
  (cd "$work/$version" && "$python" -m pytest -q -rs -p no:cacheprovider $tests)
done
