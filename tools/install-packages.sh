#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian or Ubuntu packages that weighbridge needs for a purpose:
# `install-packages.sh build|demo|python|test|check|tidy|bench|web|firefox|wheels|aarch64|reference|docs-site`. Prints them before sudo or apt-get runs, and never
# prompts without a terminal; does nothing if all are installed. On other systems it only lists what is needed.
# `install-packages.sh --say PURPOSE` only prints the packages, what each is for, and which of them are missing.
set -euo pipefail
only_say=
if [ "${1-}" = --say ]; then only_say=yes; shift; fi

# What a package is for; the names of the others say it.
declare -A reason=(
  [g++]="compiles" [cmake]="configures the build" [ninja-build]="runs the build" [pkg-config]="finds the libraries"
  [libzstd-dev]="zstd: tensors of .zt files" [zlib1g-dev]="deflate: .npz, .pt, Keras" [libssl-dev]="SHA-256, and signatures of manifests"
  [libxxhash-dev]="XXH3: what is written is read back and compared" [libfmt-dev]="formats texts" [libfast-float-dev]="reads numbers"
  [python3]="runs scripts" [python3-venv]="environments for Python packages"
  [python3-dev]="headers for the Python package" [ccache]="keeps compiled files" [clang-format-16]="checks how sources are laid out"
  [libgtest-dev]="the unit tests" [librapidcheck-dev]="tests with random cases" [nlohmann-json3-dev]="tests of JSON" [git]="lists the files to check"
  [python3-pytest]="the tests of the command" [python3-pytest-xdist]="runs them side by side" [python3-jsonschema]="checks what --json prints"
  [python3-numpy]="compares arrays in tests" [unicode-data]="tables of Unicode in tests" [clang-16]="sanitizers and fuzzing"
  [libclang-rt-16-dev]="sanitizers and fuzzing" [lld-16]="links their programs in a quarter of the time" [llvm-16]="coverage" [strace]="watches system calls in tests" [mandoc]="checks the manual"
  [mmdebstrap]="a clean system to install packages in" [doxygen]="the C++ reference" [clang-tidy-16]="more warnings" [emscripten]="compiles for browsers"
  [node-acorn]="the optimizer of Emscripten" [chromium]="tests of the page" [firefox-esr]="tests of the page" [nodejs]="runs the npm package" [npm]="fetches what builds the page"
  [libbenchmark-dev]="times functions" [qemu-user]="runs programs of other processors"
)
print_packages() {
  local package
  for package; do printf '  %-22s %s\n' "$package" "${reason[$package]-}"; done
}

build=(g++ cmake ninja-build pkg-config libzstd-dev zlib1g-dev libssl-dev libxxhash-dev libfmt-dev libfast-float-dev)
python=("${build[@]}" python3 python3-venv python3-dev)
demo=("${python[@]}")
# The packages for a first run, and those for the other checks.
test=("${python[@]}" ccache clang-format-16 libgtest-dev librapidcheck-dev nlohmann-json3-dev git python3 python3-pytest python3-pytest-xdist
      python3-jsonschema python3-numpy unicode-data)
check=("${test[@]}" clang-16 libclang-rt-16-dev lld-16 llvm-16 python3-venv strace mandoc mmdebstrap doxygen libbenchmark-dev)
tidy=("${test[@]}" clang-16 clang-tidy-16)
# Emscripten's optimizer needs Debian's acorn; node and npm may come from elsewhere, and are installed only if missing.
web=("${build[@]}" emscripten node-acorn python3 python3-venv chromium)
command -v node >/dev/null || web+=(nodejs)
command -v npm >/dev/null || web+=(npm)
firefox=(firefox-esr)
bench=("${build[@]}" libbenchmark-dev python3 python3-venv)
wheels=("${python[@]}")
aarch64=("${wheels[@]}" libgtest-dev qemu-user mmdebstrap)
reference=(doxygen)
docs_site=(python3 python3-venv)

case "${1-}" in
  build) wanted=("${build[@]}") ;;
  demo) wanted=("${demo[@]}") ;;
  python) wanted=("${python[@]}") ;;
  test) wanted=("${test[@]}") ;;
  check) wanted=("${check[@]}") ;;
  tidy) wanted=("${tidy[@]}") ;;
  bench) wanted=("${bench[@]}") ;;
  web) wanted=("${web[@]}") ;;
  firefox) wanted=("${firefox[@]}") ;;
  wheels) wanted=("${wheels[@]}") ;;
  aarch64) wanted=("${aarch64[@]}") ;;
  reference) wanted=("${reference[@]}") ;;
  docs-site) wanted=("${docs_site[@]}") ;;
  *) echo "usage: $0 [--say] build|demo|python|test|check|tidy|bench|web|firefox|wheels|aarch64|reference|docs-site" >&2; exit 2 ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "This is no Debian or Ubuntu: please see to it yourself that these packages' contents are here: ${wanted[*]}" >&2
  exit 0
fi

if [ "$1" = firefox ] && grep -qx 'ID=ubuntu' /etc/os-release; then
  echo "Ubuntu has no package firefox-esr, and its Firefox is a snap, which cannot read the profiles of tests:" \
    "tests in Firefox are skipped, unless WEIGHBRIDGE_FIREFOX names the firefox of Mozilla's archive"
  exit 0
fi

missing_packages() {
  local installed
  installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
  for package in "${wanted[@]}"; do
    grep -qxF -- "$package" <<<"$installed" || echo "$package"
  done
}

mapfile -t missing < <(missing_packages)
if [ -n "$only_say" ]; then
  mapfile -t installed < <(printf '%s\n' "${wanted[@]}" | grep -vxF -f <(printf '%s\n' "${missing[@]-}") || true)
  if [ ${#installed[@]} -gt 0 ]; then
    echo "Debian packages that it uses and that are installed:"
    print_packages "${installed[@]}"
  fi
  if [ ${#missing[@]} -gt 0 ]; then
    echo "Debian packages that it will install:"
    print_packages "${missing[@]}"
  else
    echo "No Debian package has to be installed."
  fi
  exit 0
fi
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "These packages are missing, and installing them takes root: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

printf 'Installing these packages with %s (Ctrl-C stops it):\n' "${as_root[*]:+${as_root[*]} }apt-get"
print_packages "${missing[@]}"
# sudo asks for a password on a terminal only.
if [ ${#as_root[@]} -gt 0 ] && ! { [ -t 0 ] && [ -t 2 ]; }; then
  as_root=(sudo -n)
  if ! sudo -n true 2>/dev/null; then
    echo "sudo needs a password, and there is no terminal to ask on. Install them yourself: sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for attempt in 1 2 3; do
  if "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq >"$log" 2>&1 &&
     "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
       -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "${missing[@]}" >>"$log" 2>&1; then
    exit 0
  fi
  [ "$attempt" -eq 3 ] || { echo "apt-get failed, trying again" >&2; sleep $((attempt * 5)); }
done
cat "$log" >&2
echo "apt-get could not install: ${missing[*]}" >&2
exit 1
