#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the charts and tables of README.md, docs/performance.md and bench/NOTES.md are what bench/report.py generates from the published results.

Checks itself in the same run: a changed figure in the results, and a chart without results, must be reported. Results of another kind of
machine must stand beside the published ones, not in their place. Usage: performance.py"""
import copy
import json
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
    row = next(row for name in report.RATIOS for told in changed.get(name, {}).values() for row in told["rows"] if row["peers"])
    row["ours"]["median"] *= 2
    next(iter(row["peers"].values()))["ratio"] *= 2
    found = report.differences(ROOT, changed)
    missed = int(not (report.PAGES[2] in found and any(path.endswith(".svg") for path in found)))
    with tempfile.TemporaryDirectory() as folder:
        root = copied(folder)
        (root / report.CHARTS / "planted.svg").write_text("<svg/>\n")
        missed += int(f"{report.CHARTS}/planted.svg" not in report.differences(root))
    return missed


def copied(folder):
    root = pathlib.Path(folder)
    shutil.copytree(ROOT / report.CHARTS, root / report.CHARTS)
    for page in report.PAGES:
        (root / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, root / page)
    return root


def replaced(results):
    """What is wrong after each published result was taken once more, as that of another kind of machine."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as source:
        root, source = copied(folder), pathlib.Path(source)
        for name, runs in results.items():
            told = copy.deepcopy(next(iter(runs.values())))
            told["machine"]["kind"] = "Another with AVX9"
            (source / f"{name}.json").write_text(json.dumps(told))
        report.take(root, source)
        report.write(root)
        there = report.load(root / report.RESULTS)
        wrong = [f"{name}: the result of another kind of machine replaced a published one" for name, runs in results.items()
                 if {kind: told for kind, told in there[name].items() if kind != "Another with AVX9"} != runs]
        page = (root / report.PAGES[2]).read_text(encoding="utf-8")
        return wrong + [f"{name}: no table names the other kind of machine" for name, match in
                        ((match[2], match[3]) for match in report.SECTION.finditer(page) if match[2] in {*results, "roofs"})
                        if "| Another with AVX9 |" not in match]


def main():
    results = report.load(ROOT / report.RESULTS)
    if not results:
        print(f"{report.RESULTS} holds no results")
        return 1
    found = report.differences(ROOT, results)
    for path in found:
        print(f"{path}: not what the published results make it: run bench/report.py and commit what changes")
    missed, wrong = planted(results), replaced(results)
    print("\n".join([*wrong, f"performance: {len(found)} differences; {2 - missed} of 2 planted ones reported"]))
    return 1 if found or missed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
