#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every cited reading has an item or a row in the README of a format: "reading M8" and "readings S6 and S11" in text, and the
column `from` of each rules.def; and that no reading occurs twice.

Checks itself in the same run: planted faults must be reported. Usage: readings.py [ROOT]
"""
import pathlib
import re
import subprocess
import sys

ONE = r"[A-Z]\d{1,2}\b"
ITEM = re.compile(rf"^- \*\*({ONE})\.\*\* ", re.M)
ROW = re.compile(rf"^\| ({ONE}) \| ", re.M)
# A list may continue on the next line of a comment; "S5 to S12" includes those between.
AND = r"(?:,?\s+(?:///?\s+)?(?:and|or|to)\s+(?:///?\s+)?|,\s+(?:///?\s+)?)"
CITED = re.compile(rf"\b[Rr]eadings?\s+(?:///?\s+)?({ONE}(?:{AND}{ONE})*)")
RULE = re.compile(rf'^WB_(?:\w+_)?RULE\((?:[^",]*,\s*)"[^"]*",\s*(?:\w+,\s*)+"({ONE})"', re.M)


def cited(path, text):
    """Each citation and its line number."""
    for match in CITED.finditer(text):
        words = match[1]
        names = set(re.findall(ONE, words))
        for letter, first, last in re.findall(r"([A-Z])(\d+)\s+to\s+\1(\d+)", words):
            names |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
        yield from ((name, text.count("\n", 0, match.start()) + 1) for name in sorted(names))
    if path.endswith("rules.def"):
        yield from ((match[1], text.count("\n", 0, match.start()) + 1) for match in RULE.finditer(text))


def check(files):
    items = [name for path, text in files if path.endswith("/README.md") for name in ITEM.findall(text) + ROW.findall(text)]
    for name in sorted({name for name in items if items.count(name) > 1}):
        yield f"READMEs have {name} twice"
    for path, text in files:
        for name, line in cited(path, text):
            if name not in items:
                yield f"{path}:{line} cites the reading {name}, which no README has"


# Planted files, and the expected reports.
PLANTED = [
    ("src/a.cc", "// As reading M99 has it.\n", "a.cc:1 cites the reading M99,"),
    ("docs/a.md", "one\n(readings M4, S97 and S98)\n", "a.md:2 cites the reading S98,"),
    ("include/a.h", "/// readings M4,\n/// Z96\n", "a.h:1 cites the reading Z96,"),
    ("src/a.md", "Readings G98 to G99 hold.\n", "a.md:1 cites the reading G99,"),
    ("src/README.md", "| Q1 | a question |\nReadings Q1 and Q2 hold.\n", "README.md:2 cites the reading Q2,"),
    ("src/rules.def", '\nWB_RULE(kBool, "zt/bool", tensor, error, "Y95",\n        "a bool")\n', "rules.def:2 cites the reading Y95,"),
]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
                            check=True, capture_output=True).stdout.decode().split("\0")
    endings = (".cc", ".h", ".inc", ".def", ".md", ".py", ".ts", ".mjs")
    files = [(path, (root / path).read_text()) for path in listed
             if path.endswith(endings) and path != "tests/repository/readings.py" and (root / path).is_file()]
    found = list(check(files))
    for wrong in found:
        print(wrong)
    missed = [words for path, text, words in PLANTED if not any(words in wrong for wrong in check([*files, (path, text)]))]
    if "READMEs have M8 twice" not in list(check([*files, ("src/README.md", "- **M8.** again\n")])):
        missed.append("a reading twice")
    for words in missed:
        print(f"readings.py did not report what was planted for '{words}'")
    count = sum(len(list(cited(path, text))) for path, text in files)
    print(f"readings: {len(found)} violations among {count} citations; {len(PLANTED) + 1 - len(missed)} of {len(PLANTED) + 1} planted ones reported")
    return 1 if found or missed else 0


if __name__ == "__main__":
    sys.exit(main())
