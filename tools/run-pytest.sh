#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `run-pytest.sh system|published PATH...`: runs Python tests, with what the system's packages bring, or with the published packages
# of build/venv; where those could not be had, with the system's: what needs them then skips, each with its reason.
# Further arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
export WEIGHBRIDGE="${WEIGHBRIDGE:-$PWD/build/release/weighbridge}"
case "${1-}" in
  system) pythons=(/usr/bin/python3 python3) ;;
  published) pythons=(build/venv/bin/python /usr/bin/python3 python3) ;;
  *) echo "usage: $0 system|published PATH..." >&2; exit 2 ;;
esac
shift
for python in "${pythons[@]}"; do
  if "$python" -c 'import pytest' 2>/dev/null; then
    flags=()
    help="$("$python" -m pytest --help)"
    # What passed leaves nothing: some of the files are gigabytes.
    [[ "$help" == *tmp_path_retention_policy* ]] && flags=(-o tmp_path_retention_count=1 -o tmp_path_retention_policy=failed)
    # Debian 12 has xdist 3.1, which does not steal work yet.
    [[ "$help" == *--dist* ]] && flags+=(-n "$(nproc)" --dist "$([[ "$help" == *worksteal* ]] && echo worksteal || echo load)")
    # A job in the background of a script ignores these, and so would the command that the tests interrupt.
    env --default-signal=INT,HUP "$python" -m pytest -q -rs -p no:cacheprovider ${flags[@]+"${flags[@]}"} "$@"
    exit
  fi
done
echo "pytest is missing: make setup-test installs it" >&2
exit 1
