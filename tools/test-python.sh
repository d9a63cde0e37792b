#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `test-python.sh TOOLS WHEEL`: installs a wheel into an environment of its own and runs it there alone; then runs the package's tests
# with the packages of TOOLS, an environment of the same interpreter, made from tests/interop/requirements-python.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$PWD/$1/bin
wheel=$2
shift 2
python3 tests/package/wheel.py "$wheel"
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
alone=$work/alone
"$tools/python" -m venv "$alone"
"$alone/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$wheel"
cp -r python/tests "$work/tests"  # so that nothing of the tree is imported
export WEIGHBRIDGE_ROOT="$PWD" WEIGHBRIDGE_TEST_DATA="${WEIGHBRIDGE_TEST_DATA:-$PWD/../shared/data}"
cd "$work"
"$alone/bin/weighbridge" --version
"$alone/bin/python" -m weighbridge --version >/dev/null
# The README's first lines, where no other package is.
"$alone/bin/python" - "$root/README.md" <<'PYTHON'
import array
import re
import sys

import weighbridge as wb

wb.save("model.safetensors", {"w": array.array("f", range(100))})
exec(re.search(r"^```python\n(.*?)^```", open(sys.argv[1]).read(), re.M | re.S)[1])
PYTHON
# The packages of the other environment, and the installed wheel.
site=$("$alone/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
export PYTHONPATH=$site
PATH=$alone/bin:$PATH "$root/tools/pytest.sh" "$tools/python" tests "$@"
# NumPy's types of Python 3.10 are older ones.
if "$tools/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  "$tools/python" -m mypy --strict --config-file "$root/pyproject.toml" -p weighbridge
fi
