#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the command weighbridge for Linux on x86-64: fetches the list of digests and the file from where they are published, compares the
# SHA-256, and only then puts the file in place. `make dist` fills in the address; the copy in the repository has none.
#   sh install.sh [FOLDER]     FOLDER gets the command (default: ~/.local/bin)
set -eu
address=''

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

fetch() { # NAME FILE
  case $address in
    https://* | http://127.0.0.1[:/]* | http://localhost[:/]*) ;;
    *) fail "not an https address: $address" ;;
  esac
  if command -v curl >/dev/null; then
    curl --fail --silent --show-error --location --proto '=https,http' --proto-redir '=https' --output "$2" "$address/$1"
  elif command -v wget >/dev/null; then
    wget --quiet --output-document="$2" "$address/$1"
  else
    fail "curl or wget is needed"
  fi || fail "$address/$1 cannot be fetched"
}

# In a function, so that half of this file, read from a pipe, does nothing.
main() {
  [ -n "$address" ] || fail "this copy has no address: nothing is published at it. Build the command: make build"
  system="$(uname -s) $(uname -m)"
  [ "$system" = "Linux x86_64" ] || fail "there is no static command for $system; docs/installing.md says what runs where"
  into=${1:-$HOME/.local/bin}
  mkdir -p "$into"
  work=$(mktemp -d "$into/.weighbridge.XXXXXX") # in the same file system, so that the last step is a rename
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  fetch SHA256SUMS "$work/SHA256SUMS"
  line=$(grep -E '^[0-9a-f]{64}  weighbridge-[0-9.]+-linux-x86_64$' "$work/SHA256SUMS") || fail "SHA256SUMS lists no command for Linux x86-64"
  expected=${line%% *} name=${line##* }
  fetch "$name" "$work/weighbridge"
  found=$(sha256sum "$work/weighbridge")
  found=${found%% *}
  [ "$found" = "$expected" ] || fail "$name has the SHA-256 $found, and SHA256SUMS says $expected: nothing was installed"
  chmod 755 "$work/weighbridge"
  mv -f "$work/weighbridge" "$into/weighbridge"
  echo "$into/weighbridge: $name, SHA-256 $found"
  case ":$PATH:" in
    *":$into:"*) ;;
    *) echo "$into is not in your PATH" ;;
  esac
}

main "$@"
