#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheel of build/wheels into an environment of its own, first alone, then with NumPy, and runs the package's tests there.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=build/venv-python/bin
wheel=$(ls -t build/wheels/weighbridge-*.whl | head -1)
alone=build/venv-wheel
rm -rf "$alone"
"$tools/python" -m venv "$alone"
"$alone/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$wheel"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r python/tests "$work/tests"  # so that nothing of the tree is imported
export WEIGHBRIDGE_ROOT="$PWD" WEIGHBRIDGE_TEST_DATA="${WEIGHBRIDGE_TEST_DATA:-$PWD/../shared/data}"
root=$PWD
cd "$work"
"$root/$alone/bin/weighbridge" --version
"$root/$alone/bin/python" -m weighbridge --version >/dev/null
"$root/$alone/bin/python" - <<'PYTHON'
import weighbridge as wb
wb.save("a.zt", {"w": b"four"}, {"k": 1})
with wb.open("a.zt") as m:
    assert m["w"].tobytes() == b"four" and m.metadata == {"k": 1}
assert wb.verify("a.zt") and wb.hash("a.zt") == wb.open("a.zt").hash()
PYTHON
# The packages of the other environment, and the installed wheel.
site=$("$root/$alone/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
PYTHONPATH=$site "$root/$tools/python" -m pytest -q -rs -p no:cacheprovider tests "$@"
PYTHONPATH=$site "$root/$tools/python" -m mypy --strict --config-file "$root/pyproject.toml" -p weighbridge
