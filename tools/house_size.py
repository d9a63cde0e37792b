#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of code of each room: no blank lines, no comments, no tests, no corpus cases, no generated tables.

usage: house_size.py [ROOT] [--max N] [--thin N]
The exit status is 1 if there are more than --max lines of native code, or more than --thin headers of src with less than 22.
Native code is every C and C++ file (and .inc, .def) outside tests, corpus, fuzz, bench, tools and examples. Platforms are
counted apart: os_*.cc and kernels for one kind of processor (names with neon, avx, sse, wasm, arm).
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

NATIVE = (".cc", ".h", ".inc", ".def", ".c", ".hpp", ".cpp", ".ipp")
OTHER = (".py", ".ts", ".css", ".html", ".go", ".rs")
SKIPPED = re.compile(r"(_test\.(cc|c)|(^|/)cases\.cc|_generated\.h|/tests?/|^(tests|corpus|fuzz|bench|tools|examples|docs|cmake)/"
                     r"|^python/(tests|scale|ecosystem)/|/dist/)")
PLATFORM = re.compile(r"(^|/)(os_[a-z0-9]+\.cc|[a-z0-9_]*(neon|avx|sse|wasm|arm|sve)[a-z0-9_]*\.(cc|inc|h))$")
STRINGS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')
THIN = 22


def code_lines(path, text):
    if path.endswith(".py"):
        text = re.sub(r'^\s*(?:[rRbBuU]{0,2})("""|\'\'\')(?:.|\n)*?\1\s*$', "", text, flags=re.M)
        return sum(1 for line in text.split("\n") if line.strip() and not line.strip().startswith("#"))
    text = re.sub(r"/\*(?:.|\n)*?\*/", "", STRINGS.sub('""', text))
    return sum(1 for line in text.split("\n") if re.sub(r"//.*", "", line).strip())


def room_of(path):
    parts = path.split("/")
    depth = 3 if parts[:2] in (["src", "formats"], ["src", "runtime"]) else 2 if parts[0] in ("src", "python", "web") else 1
    return "/".join(parts[:depth])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", nargs="?", default=".", type=pathlib.Path)
    parser.add_argument("--max", type=int)
    parser.add_argument("--thin", type=int)
    args = parser.parse_args()
    listed = subprocess.run(["git", "-C", args.root, "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    lines, files = collections.Counter(), collections.Counter()
    native = platforms = thin = 0
    for path in listed.split("\0"):
        file = args.root / path
        if not path.endswith(NATIVE + OTHER) or SKIPPED.search(path) or not file.is_file():
            continue
        count = code_lines(path, file.read_text(encoding="utf-8", errors="replace"))
        lines[room_of(path)] += count
        files[room_of(path)] += 1
        if path.endswith(NATIVE):
            if PLATFORM.search(path):
                platforms += count
            else:
                native += count
            thin += path.startswith("src/") and path.endswith(".h") and count < THIN
    for room in sorted(lines):
        print(f"{lines[room]:7,}  {files[room]:4} files  {room}")
    print(f"{native:7,}  native code; {platforms:,} more for platforms; {thin} headers of src below {THIN} lines of code")
    return args.max is not None and native > args.max or args.thin is not None and thin > args.thin


if __name__ == "__main__":
    sys.exit(main())
