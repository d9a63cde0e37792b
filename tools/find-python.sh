#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `find-python.sh 3.12`: prints the path of that version of Python, from the PATH or of pyenv; fails if there is none.
for candidate in $(type -ap "python$1") "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
  # A name on the PATH may be a shim that only explains what is missing.
  if [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)" = "$1" ]; then
    exec "$candidate" -c 'import sys; print(sys.executable)'
  fi
done
exit 1
