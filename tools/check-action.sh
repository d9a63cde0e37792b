#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The step of action.yml: runs `weighbridge check` as the variables say that the action sets. A finding that breaks the policy is an
# annotation of the run too; the exit status is that of the command.
set -uo pipefail
fail() {
  echo "::error title=weighbridge check::$1"
  exit 2
}
command -v "$WEIGHBRIDGE" >/dev/null || fail "$WEIGHBRIDGE is not on the PATH: install weighbridge in a step before this one"
paths=()
while IFS= read -r line; do
  read -r line <<<"$line"  # without the blanks around it
  [ -n "$line" ] || continue
  if [ -e "$line" ]; then
    paths+=("$line")
  else
    mapfile -t matched < <(compgen -G "$line")
    [ ${#matched[@]} -gt 0 ] || fail "nothing matches $line"
    paths+=("${matched[@]}")
  fi
done <<<"$CHECK_PATHS"
[ ${#paths[@]} -gt 0 ] || fail "paths names no file"
arguments=(--policy "${CHECK_POLICY:-download}" --color never)
[ -z "${CHECK_MANIFEST-}" ] || arguments+=(--manifest "$CHECK_MANIFEST")
[ -z "${CHECK_SARIF-}" ] || arguments+=(--sarif --output "$CHECK_SARIF" --overwrite)
"$WEIGHBRIDGE" check "${arguments[@]}" -- "${paths[@]}" | while IFS= read -r line; do
  printf '%s\n' "$line"
  [[ $line != *": error: "* ]] || printf '::error title=weighbridge check::%s\n' "${line//%/%25}"
done
exit "${PIPESTATUS[0]}"
