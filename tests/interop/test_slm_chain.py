# SPDX-License-Identifier: Apache-2.0
"""Runs the walk of docs/slm/walk.md: each command of its console blocks, in order, in one folder, must print the page's lines,
digests included. A second walk must leave the same bytes in every file."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from interop_tools import COMMAND, ROOT, TEST_DATA

INPUTS = ["stories260K.bin", "tok512.bin"]


def walk():
    """(command, its output on the page), in order."""
    steps = []
    for block in re.findall(r"^```console\n(.*?)^```$", (ROOT / "docs/slm/walk.md").read_text(), re.S | re.M):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append([line[2:], []])
            elif line.startswith("> "):
                steps[-1][0] += "\n" + line[2:]
            else:
                steps[-1][1].append(line)
    return steps


def run(folder):
    for name in INPUTS:
        if not (TEST_DATA / "llama" / name).exists():
            pytest.skip(f"{name} is missing from the test data")
        shutil.copy(TEST_DATA / "llama" / name, folder)
    (folder / "bin").mkdir()
    (folder / "bin/weighbridge").symlink_to(pathlib.Path(COMMAND).resolve())
    environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}", "LC_ALL": "C"}
    environment.pop("SOURCE_DATE_EPOCH", None)
    for command, expected in walk():
        done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120, text=True)
        shown = done.stdout.splitlines() + ([f"[status {done.returncode}]"] if done.returncode else [])
        yield command, expected, shown


def test_the_walk_gives_what_the_page_shows(tmp_path):
    steps = 0
    for command, expected, shown in run(tmp_path):
        assert shown == expected, command
        steps += command.startswith("weighbridge")
    assert steps > 30, "the page has lost its commands"


def test_two_walks_leave_the_same_bytes(tmp_path):
    files = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        for _ in run(folder):
            pass
        shutil.rmtree(folder / "bin")
        files.append({path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()})
    assert files[0].keys() == files[1].keys() and len(files[0]) > 60
    for path, content in files[0].items():
        assert content == files[1][path], path
