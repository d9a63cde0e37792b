#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests programs that must not compile: each .cc here compiles as it is, but not with any one of its #ifdef PLANTED_...

usage: run.py COMPILER [FLAG ...]
"""
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
REFUSED = re.compile(r"deleted|private")


def compile_one(command: list[str], source: Path, planted: str | None) -> str | None:
    """What is wrong, or None."""
    define = [f"-D{planted}"] if planted else []
    run = subprocess.run([*command, *define, str(source)], capture_output=True, text=True, check=False)
    if planted is None:
        return None if run.returncode == 0 else f"{source.name} does not compile:\n{run.stderr}"
    if run.returncode == 0:
        return f"{source.name} compiles with {planted}"
    errors = [line for line in run.stderr.splitlines() if " error: " in line]
    if not errors or not all(REFUSED.search(line) for line in errors):
        return f"{source.name} with {planted} fails for another reason:\n{run.stderr}"
    return None


def main() -> int:
    command = [*sys.argv[1:], "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}"]
    jobs = []
    for source in sorted(HERE.glob("*.cc")):
        planted = re.findall(r"^#ifdef (PLANTED_\w+)$", source.read_text(), re.MULTILINE)
        if not planted:
            print(f"{source.name} has no planted error")
            return 1
        jobs += [(source, name) for name in [None, *planted]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [w for w in pool.map(lambda job: compile_one(command, *job), jobs) if w]
    print("\n".join(wrong) if wrong else f"{len(jobs)} compilations, each as it should be")
    return 1 if wrong or not jobs else 0


if __name__ == "__main__":
    sys.exit(main())
