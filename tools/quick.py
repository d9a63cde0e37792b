#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and tests what a change can break: the house rules, then the tests of the rooms of src/ that changed and of the rooms above them
(tests/layering/layers.txt), the corpus and the command's tests if they can notice. `make quick`; SINCE=REV: all that changed since REV.

The tests of a room are the ctest entries below its folder. Of tests/cli it runs the files that name a changed room, or all of them if the change is
not in one format, and of the corpus test the cases of the changed formats."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/layering"))
from check import Order, layer_of  # noqa: E402

BUILD = ROOT / "build/release"
RULES = ["tests/layering/check.py", "tests/repository/check.py", "tests/repository/pages.py", "tests/repository/readings.py"]


def output(*command):
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def changed_files(since):
    return sorted({*output("git", "diff", "--name-only", since).split("\n"),
                   *output("git", "ls-files", "--others", "--exclude-standard").split("\n")} - {""})


def header_room(order, path):
    """The room that a public header belongs to."""
    return order.headers.get(pathlib.PurePath(path).name)


def rooms_of(order, files):
    """The rooms of src/ that the files belong to."""
    rooms = set()
    for path in files:
        if path.startswith("src/"):
            rooms.add(layer_of(path[len("src/"):], order))
        elif path.startswith("include/") and (room := header_room(order, path)):
            rooms.add(room)
    return rooms - {""}


def rooms_above(order, rooms, every):
    return {room for room in every if room in rooms or any(order.may_include(room, changed) for changed in rooms)}


def entries():
    """name -> folder of its program below the build folder, for each entry of ctest that is a program of ours."""
    found = {}
    for test in json.loads(output("ctest", "--preset", "test", "--show-only=json-v1"))["tests"]:
        command = pathlib.Path(test.get("command", ["/"])[0])
        if BUILD in command.parents:
            found[test["name"]] = command.parent.relative_to(BUILD).as_posix()
    return found


def run(title, *command, **more):
    begin = time.monotonic()
    print(f"== {title}", flush=True)
    status = subprocess.run(command, cwd=ROOT, check=False, **more).returncode
    print(f"== {title}: {'done' if status == 0 else 'FAILED'} in {time.monotonic() - begin:.1f} s", flush=True)
    if status:
        sys.exit(status)


def main():
    order = Order((ROOT / "tests/layering/layers.txt").read_text())
    files = changed_files(os.environ.get("SINCE") or "HEAD")
    rooms = rooms_of(order, files)
    print(f"{len(files)} files changed; rooms: {', '.join(sorted(rooms)) or 'none of src/'}")
    sources = [path for path in files if path.endswith((".cc", ".h")) and (ROOT / path).is_file()]
    if sources:
        run("layout of the sources", "clang-format-16", "--dry-run", "--Werror", *sources)
    for rule in RULES:
        run(rule, sys.executable, rule)
    if not rooms and not any(path.startswith(("cli/", "tests/", "include/", "corpus/", "cmake/", "CMake")) for path in files):
        return
    if not (BUILD / "build.ninja").is_file():
        run("configure", "cmake", "--preset", "release")
    programs = entries()
    every = {folder[len("src/"):] for folder in programs.values() if folder.startswith("src/")}
    above = rooms_above(order, rooms, every)
    chosen = [name for name, folder in programs.items() if folder[len("src/"):] in above]
    corpus = "registry" in above
    targets = [*chosen, *(["corpus_test"] if corpus else []), "weighbridge"]
    run(f"build {len(targets)} programs", "cmake", "--build", "build/release", "--target", *targets)
    if chosen:
        run("tests of " + ", ".join(sorted(above)), sys.executable, "tools/run_ctest.py", "test", "-j", str(os.cpu_count()), "-R",
            "^(" + "|".join(map(re.escape, chosen)) + ")$")
    if corpus:
        run("corpus", "build/release/tests/corpus/corpus_test", "--gtest_brief=1", "--gtest_filter=-*Mutation*:*Malformed*")
    formats = {room.split("/")[1] for room in rooms if room.startswith("formats/")}
    tests = ["tests/cli"]
    if formats and all(room.startswith("formats/") for room in rooms):
        words = re.compile("|".join(formats | {"test_verify"}))
        tests = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests/cli").glob("test_*.py"))
                 if words.search(path.stem) or words.search(path.read_text())]
    run("tests of the command", "tools/run-pytest.sh", "system", *tests)


if __name__ == "__main__":
    main()
