#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ctest and prints totals: `run_ctest.py PRESET [ctest argument...]`.

One ctest entry is a whole program, so ctest itself counts programs. This script counts the tests inside, repeats each reason for a
skipped test, and fails if a program ended without a result although ctest accepted its exit status. The tests' temporary files are kept
in memory if TMPDIR does not say otherwise and there is room: the tests wait for each file to be on the disk, which took half their time.
"""
import collections
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml

OUTPUT = "GTEST_OUTPUT=xml:"
MEMORY = "/dev/shm"
ROOM = 4 << 30


def result_files(preset, arguments):
    """name -> result file, for each entry that is a GoogleTest program."""
    listed = subprocess.run(["ctest", "--preset", preset, *arguments, "--show-only=json-v1"], stdout=subprocess.PIPE, check=True)
    files = {}
    for test in json.loads(listed.stdout)["tests"]:
        for each in test["properties"]:
            if each["name"] == "ENVIRONMENT":
                files.update((test["name"], pathlib.Path(line[len(OUTPUT):])) for line in each["value"] if line.startswith(OUTPUT))
    return files


def temporary_files():
    """A context whose value is the folder for the tests' temporary files."""
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM:
        folder = tempfile.TemporaryDirectory(dir=MEMORY, prefix="weighbridge-")
        os.chmod(folder.name, 0o755)  # some tests become another user
        return folder
    return contextlib.nullcontext(tempfile.gettempdir())


def main():
    preset, arguments = sys.argv[1], sys.argv[2:]
    files = result_files(preset, arguments)
    for path in files.values():
        path.unlink(missing_ok=True)
    with temporary_files() as folder:
        status = subprocess.run(["ctest", "--preset", preset, *arguments], check=False, env={**os.environ, "TMPDIR": folder}).returncode
    counts, skipped, silent = collections.Counter(), collections.Counter(), []
    for name, path in files.items():
        try:
            cases = list(xml.parse(path).getroot().iter("testcase"))
        except (OSError, xml.ParseError):
            silent.append(name)
            continue
        for case in cases:
            if case.get("status") != "run":
                counts["disabled"] += 1
            elif case.find("failure") is not None:
                counts["failed"] += 1
            elif (reason := case.find("skipped")) is not None:
                counts["skipped"] += 1
                skipped[f"{name}: " + " ".join(reason.get("message", "without a reason").split("\n")[1:]).strip()] += 1
            else:
                counts["passed"] += 1
    for reason, times in sorted(skipped.items()):
        print(f"skipped {times}: {reason}")
    if silent:
        print(f"without a result: {', '.join(silent)}")
    print(f"{preset}: {counts['passed']} tests passed in {len(files)} programs, {counts['failed']} failed, {counts['skipped']} skipped"
          + (f", {counts['disabled']} disabled" if counts["disabled"] else ""))
    return status or (1 if silent or counts["failed"] else 0)


if __name__ == "__main__":
    sys.exit(main())
