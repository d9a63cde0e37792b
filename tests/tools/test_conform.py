# SPDX-License-Identifier: Apache-2.0
"""Tests corpus/conform.py by readers with planted faults: each fault is reported, and the next file is read all the same. The published packages
are tests/interop/test_conformance.py's."""
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "corpus/conform.py"
PAGE = (ROOT / "docs/conformance.md").read_text()
INDEX = [line.split("\t") for line in (ROOT / "corpus/index.tsv").read_text().splitlines()]


def conform(reader, *flags, status=1):
    done = subprocess.run([sys.executable, PROGRAM, "--against", reader, "--python", sys.executable, "--json", *flags], capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)[0] if done.stdout else done.stderr


@pytest.fixture(scope="module", autouse=True)
def pip():
    pytest.importorskip("pip", reason="pip, whose version the planted readers state, is missing")


def test_a_reader_that_accepts_everything_differs_on_each_invalid_file():
    result = conform("planted-accepts")
    invalid = [line[0] for line in INDEX if line[0].startswith("npy/") and line[1] == "invalid"]
    assert [each["file"] for each in result["differs"]] == invalid and {each["how"] for each in result["differs"]} == {"accepts"}
    assert len(invalid) > 20


def test_a_reader_that_refuses_everything_differs_on_each_valid_file():
    result = conform("planted-refuses")
    valid = [line[0] for line in INDEX if line[0].startswith("npy/") and line[1] in ("valid", "warning")]
    assert [each["file"] for each in result["differs"]] == valid
    assert {each["said"] for each in result["differs"]} == {"ValueError: FILE is refused"}  # no path of this machine


@pytest.mark.parametrize("reader, how, said, seconds", [("planted-hangs", "hangs", "more than 0.2 s", "0.2"), ("planted-ends", "ends", "SIGSEGV", "5"),
                                                        ("planted-memory", "memory", "", "5")])
def test_a_reader_that_hangs_ends_or_takes_all_memory_is_started_again(reader, how, said, seconds):
    result = conform(reader, "--files", "2", "--seconds", seconds)
    assert [(each["how"], each["said"]) for each in result["differs"]] == [(how, said)] * result["files"] and result["files"] >= 2


def test_an_unknown_reader_and_a_missing_package_are_said():
    assert "no reader is named abacus" in conform("abacus", status=2)
    done = subprocess.run([sys.executable, PROGRAM, "--against", "onnx", "--python", "/nowhere/python"], capture_output=True, text=True)
    assert done.returncode == 3 and "no interpreter here has the package onnx" in done.stderr


def test_the_index_names_every_file_and_says_what_it_is():
    assert INDEX[0] == ["file", "verdict", "rule", "from", "says", "also", "beside"]
    listed = {line[0] for line in INDEX[1:]} | {f"{line[0].split('/')[0]}/{line[6]}" for line in INDEX[1:] if line[6]}
    there = {str(path.relative_to(ROOT / "corpus")) for path in (ROOT / "corpus").glob("*/*")}
    assert listed == there
    for file, verdict, rule, source, says, *_ in INDEX[1:]:
        assert (verdict == "valid") == (rule == ""), file
        assert verdict in ("valid", "warning", "unsupported", "invalid") and (not rule or (source and says)), file


def test_the_page_counts_what_its_sections_list():
    rows = re.findall(r"^\| \[[\w.-]+ [\w.+]+\]\(#([\w-]+)\) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.M)
    assert len(rows) == len(re.findall(r"^## ", PAGE, re.M)) == 9
    for reader, *numbers in rows:
        files, agrees, text, reading, refused, worse = map(int, numbers)
        part = next(part for part in re.split(r"^## ", PAGE, flags=re.M)[1:] if part.split("\n")[0].replace(".", "") == reader)
        assert files - agrees == text + reading + refused + worse, reader
        assert sum(int(count) for count in re.findall(r"\| (\d+) of \d+ \|$", part, re.M)) == text + reading, reader
        assert len(re.findall(r"^\| `\w+/[^`]+` \| (?:`[^`]+`)? \| .* \|$", part.partition("Refuses what")[2].partition("Ends, hangs")[0], re.M)) == refused
        assert f"{files} files" in part
