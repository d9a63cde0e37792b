#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `pytest.sh PYTHON ARGUMENT...`: runs pytest with that interpreter in the current folder, the tests side by side if pytest-xdist is there.
set -euo pipefail
python=$1
shift
flags=()
help="$("$python" -m pytest --help)"
# Keeps no files of passed tests, because some are gigabytes.
[[ "$help" == *tmp_path_retention_policy* ]] && flags=(-o tmp_path_retention_count=1 -o tmp_path_retention_policy=failed)
# Debian 12 has xdist 3.1, which does not steal work yet.
[[ "$help" == *--dist* ]] && flags+=(-n "$(nproc)" --dist "$([[ "$help" == *worksteal* ]] && echo worksteal || echo load)")
# A background job of a script ignores these signals, and the command that the tests interrupt would inherit that.
exec env --default-signal=INT,HUP "$python" -m pytest -q -rs -p no:cacheprovider ${flags[@]+"${flags[@]}"} "$@"
