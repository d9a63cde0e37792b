#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the charts and tables of docs/performance.md are what bench/report.py generates from the published results.

Checks itself in the same run: a changed figure in the results, and a chart without results, must be reported. Usage: performance.py"""
import copy
import pathlib
import shutil
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True
import report  # noqa: E402


def planted(results):
    """How many of the two planted differences are not reported."""
    changed = copy.deepcopy(results)
    row = next(row for told in changed.values() for row in told["rows"] if row["peers"])
    row["ours"]["median"] *= 2
    next(iter(row["peers"].values()))["ratio"] *= 2
    found = report.differences(ROOT, changed)
    missed = int(not (report.PAGE in found and any(path.endswith(".svg") for path in found)))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copytree(ROOT / report.CHARTS, root / report.CHARTS)
        shutil.copy(ROOT / report.PAGE, root / report.PAGE)
        (root / report.CHARTS / "planted.svg").write_text("<svg/>\n")
        missed += int(f"{report.CHARTS}/planted.svg" not in report.differences(root))
    return missed


def main():
    results = report.load(ROOT / report.RESULTS)
    if not results:
        print(f"{report.RESULTS} holds no results")
        return 1
    found = report.differences(ROOT, results)
    for path in found:
        print(f"{path}: not what the published results make it: run bench/report.py and commit what changes")
    missed = planted(results)
    print(f"performance: {len(found)} differences; {2 - missed} of 2 planted ones reported")
    return 1 if found or missed else 0


if __name__ == "__main__":
    sys.exit(main())
