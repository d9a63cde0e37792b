#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures which lines and branches of the library the tests run: builds everything with clang's counters, runs the unit and corpus
tests, the fuzzers' seeds and the tests of the command, and adds up the counts by layer.

usage: coverage.py [--no-run] [--uncovered PREFIX] [--page]

--no-run        use the counts of the last run
--uncovered P   list each line and branch below src/P that no test runs
--page          write the table into docs/reliability.md, with the commit

Counts lines of code and branches of conditions (llvm-cov) in the library, not in the tests."""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys

import sections

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/coverage"
LAYERS = ["base", "io", "wire", "codecs", "core", "formats", "registry", "convert", "tokenizers", "diff", "doctor", "manifest", "edit"]
# The command's tests, including those of failing disks, but not those that kill the program, which then writes no counts.
PYTEST = ["tests/cli", "tests/interop", "tests/robustness/test_kill.py", "tests/robustness/test_bounds.py",
          "tests/robustness/test_turns.py", "-n", str(os.cpu_count()), "-k", "not killed and not system_call"]
NOT_THE_LIBRARY = re.compile(r"(_test|/cases|/testing|_generated)\.(cc|h)$")


def tool(name):
    return f"/usr/lib/llvm-16/bin/{name}"


def run_tests():
    """Builds the programs, runs each of their tests, and merges the counts."""
    subprocess.run(["cmake", "--preset", "coverage"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "-j", str(os.cpu_count())], check=True,
                   env=os.environ | {"LLVM_PROFILE_FILE": "/dev/null"})
    profiles = BUILD / "profiles"
    subprocess.run(["rm", "-rf", profiles], check=True)
    environment = os.environ | {"LLVM_PROFILE_FILE": str(profiles / "%4m.profraw")}  # programs add their counts in place
    for program in programs():
        if program.name == "weighbridge":
            continue
        inputs = seeds(program.name.removeprefix("replay_")) if program.name.startswith("replay_") else []
        done = subprocess.run([program, *inputs], cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{program.name} failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
        print(f"ran {program.name}", flush=True)
    done = subprocess.run(["build/venv/bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *PYTEST], cwd=ROOT,
                          env=environment | {"WEIGHBRIDGE": str(BUILD / "weighbridge")}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"pytest failed:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    print(done.stdout.splitlines()[-1], flush=True)
    raw = sorted(str(path) for path in profiles.glob("*.profraw"))
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", *raw, "-o", BUILD / "merged.profdata"], check=True)


def programs():
    """The command, and every program of tests and of seeds."""
    # llvm-cov uses the first record of a header's function, even of a program that never calls it. Replays call least, so they go last.
    found = [path for path in BUILD.rglob("*") if re.fullmatch("weighbridge|replay_.*|.*_test", path.name) and path.is_file()
             and os.access(path, os.X_OK)]
    return sorted(found, key=lambda path: (path.name.startswith("replay_"), path))


def seeds(name):
    own = ROOT / "fuzz/seeds" / name
    return [own if own.is_dir() else ROOT / "corpus"]


def counts():
    """llvm-cov's export of the library's files: file -> its record."""
    first, *more = programs()
    objects = [word for program in more for word in ("-object", str(program))]
    out = subprocess.run([tool("llvm-cov"), "export", str(first), *objects, f"-instr-profile={BUILD / 'merged.profdata'}",
                          "-skip-functions", "-skip-expansions"], check=True, capture_output=True, text=True).stdout
    found = {}
    for record in json.loads(out)["data"][0]["files"]:
        name = os.path.relpath(record["filename"], ROOT)
        if name.startswith("src/") and not NOT_THE_LIBRARY.search(name) and name.split("/")[1] in LAYERS:
            found[name] = record
    return found


def table(found):
    totals = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, record in found.items():
        summary = record["summary"]
        for key in (name.split("/")[1], "all of these"):
            for i, (kind, field) in enumerate((("lines", "covered"), ("lines", "count"), ("branches", "covered"), ("branches", "count"))):
                totals[key][i] += summary[kind][field]
    rows = []
    for key in [*LAYERS, "all of these"]:
        covered, lines, taken, branches = totals[key]
        rows.append([key, f"{lines:,}", percent(covered, lines), f"{branches:,}", percent(taken, branches)])
    return sections.table(["layer", "lines", "run by tests", "branches", "taken by tests"], rows, range(1, 5)) + f"\nOf {sections.measured()}.\n"


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def uncovered(found, prefix):
    for name, record in sorted(found.items()):
        if not name.startswith("src/" + prefix):
            continue
        text = (ROOT / name).read_text().splitlines()
        missed = collections.defaultdict(list)
        for at, column, count, counted, entry, gap in record["segments"]:
            if counted and entry and not gap and count == 0:
                missed[at].append("not run")
        for at, column, _, _, yes, no, *_ in record["branches"]:
            if yes == 0 or no == 0:
                missed[at].append(f"never {'true' if yes == 0 else 'false'} at column {column}")
        for line, what in sorted(missed.items()):
            print(f"{name}:{line}: {'; '.join(sorted(set(what)))}: {text[line - 1].strip()[:90]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-run", action="store_true")
    parser.add_argument("--uncovered", metavar="PREFIX")
    parser.add_argument("--page", action="store_true")
    o = parser.parse_args()
    if not o.no_run:
        run_tests()
    found = counts()
    if o.uncovered is not None:
        uncovered(found, o.uncovered)
    print(table(found))
    if o.page:
        sections.write("docs/reliability.md", "tools/coverage.py", {"coverage": table(found)})


if __name__ == "__main__":
    main()
