#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What needs PyTorch (5.4 GB, build/venv-torch): the package's own tests with it, safetensors' own tests, unchanged, out of its source archives
# with weighbridge in its place, and transformers, huggingface_hub and sentence-transformers likewise. Needs the wheel that `make wheel` built.
#   TORCH_PYTHON   an interpreter that has what python/ecosystem/requirements.txt names, instead of build/venv-torch
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${TORCH_PYTHON:-$root/build/venv-torch/bin/python}
[ -n "${TORCH_PYTHON-}" ] || tools/python-environments.sh python/ecosystem/requirements.txt build/venv-torch
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
while read -r version digest; do
  echo "== safetensors' own tests, $version"
  archive=build/sources/safetensors-$version.tar.gz
  if [ ! -f "$archive" ]; then
    echo "safetensors==$version --hash=sha256:$digest" >"$work/requirements.txt"
    # pip asks maturin for the metadata, by the name of its command.
    PATH="$(dirname "$python"):$PATH" "$python" -m pip download --quiet --disable-pip-version-check --pre --require-hashes --no-binary safetensors --no-deps --no-build-isolation \
      --dest build/sources --requirement "$work/requirements.txt"
  fi
  mkdir -p "$work/$version/tests/data"
  tar -xzf "$archive" -C "$work/$version" --strip-components 4 --wildcards '*/bindings/python/tests/*.py'
  cp python/ecosystem/conftest.py "$work/$version"
  (cd "$work/$version" && "$python" -m pytest -q -rs -p no:cacheprovider $tests </dev/null)
done <<'VERSIONS'
0.8.0 fabaf3e0f18a6618d9b36560682562157f77c2b71fcffc7b432be2baed9d753d
0.9.0rc1 8a70d139a45d71557e116339f5115afe88af2d80b08701c31ce0478d5bfc8d93
VERSIONS
