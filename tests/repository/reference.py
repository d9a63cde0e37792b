#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every public name is documented in the API reference: docs/Doxyfile over the public headers gives no warning.

Checks itself in the same run: each undocumented name planted in a copy must be reported. Usage: reference.py
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLANTED = {
    "a function": ("void nameless();", "nameless"),
    "a class": ("class Nameless {\n public:\n  int known() const;  ///< a word\n};", "Nameless"),
    "a member function": ("/// A class.\nclass Known {\n public:\n  int nameless() const;\n};", "nameless"),
    "a field": ("/// A struct.\nstruct Known {\n  int nameless = 0;\n};", "nameless"),
    "the second of two fields": ("/// A struct.\nstruct Known {\n  int known = 0, nameless = 0;  ///< one word for both\n};",
                                 "known"),
    "an enumeration": ("enum class Nameless { one };", "Nameless"),
    "a constant": ("inline constexpr int kNameless = 1;", "kNameless"),
    "a parameter that is not there": ("/// A function.\n/// \\param nameless nothing\nvoid known(int);", "nameless"),
}


def warnings(top):
    """Doxygen's warnings about the headers below `top`, one per line, and its exit status."""
    done = subprocess.run(["doxygen", "docs/Doxyfile"], cwd=top, capture_output=True, text=True,
                          env=os.environ | {"WEIGHBRIDGE_VERSION": "0"})
    said = [line for line in done.stderr.splitlines() if re.search(r"(?:warning|error): ", line)]
    assert (done.returncode != 0) == bool(said), f"doxygen ended with {done.returncode}: {done.stderr}"
    return said


def main():
    if not shutil.which("doxygen"):
        print("reference: doxygen is not here: tools/install-packages.sh reference installs it")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        (top / "docs").mkdir()
        (top / "build").mkdir()
        for name in ["docs/Doxyfile", "docs/library.md"]:
            shutil.copy(ROOT / name, top / name)
        shutil.copytree(ROOT / "include", top / "include")
        found = warnings(top)
        for line in found:
            print(line.replace(f"{top}/", ""))
        # One run for all planted names: doxygen reads each header separately, and names the header in each line.
        for number, (text, _) in enumerate(PLANTED.values()):
            page = top / f"include/weighbridge/planted{number}.h"
            page.write_text(f"/// \\file\n/// Planted.\n#pragma once\n/// A namespace.\nnamespace planted{number} {{\n{text}\n}}\n")
        said = warnings(top)
        unreported = [what for number, (what, (_, name)) in enumerate(PLANTED.items())
                      if not any(f"planted{number}.h" in line and name in line for line in said)]
    for what in unreported:
        print(f"reference.py: what was planted as '{what}' has no word and was not reported")
    print(f"reference: {len(found)} names without a word; {len(PLANTED) - len(unreported)} of {len(PLANTED)} planted ones reported")
    return 1 if found or unreported else 0


if __name__ == "__main__":
    sys.exit(main())
