# SPDX-License-Identifier: Apache-2.0
"""Tests the verb hash: both versions of the content digest, and --check."""
import hashlib
import re
import subprocess

import pytest

from conftest import ROOT, safetensors, validated, weighbridge

# The output of weighbridge 0.1 for files of the corpus, with names and without.
VERSION_1 = {
    "slm/valid-mixed.slm": ("545ebb737f5c3cdddb18e81d6cbc89a05c4c99765028adabed083552b4625f16",
                            "9c0d8f889b2b1e7371f364fc9bc0ad03cc44e3fe33fae2f25e241a76a1b5dff8"),
    "slm/valid-q8_0.slm": ("1366a6ea660220b8a7f78aa28883576acf59d978c0c41ff9cd62fe9fe7e0e8ec",
                           "aa29534cad0d75c61d7355cd2973865d3587ed887a86bbfff4dfe6a51a2c22b3"),
    "slm/valid-q4_0.slm": ("4b66e8751fe88cab6084f4f4b8276d7c5b5887dfd2948f933adcd8720e907b5a",
                           "1981cdd309e82f9946ae4a392657fa1c1d2576480c1f83db28632fff6e2db5f1"),
    "zt/valid-quantized.zt": ("7d615d6190b71370e019eecc87e1718e1cf66da038434983572ca4f5c4b5ce5d",
                              "2517c9359df680382f7fa08c074cc524ad946806360217c8b0fef6a9d86b6ae9"),
    "zt/valid-coo.zt": ("31f8f36db1252a63688c9b75f7fea6aa42b8c296745c664819676f00b73edd3b",
                        "cae1aad422dae899e6135fe3df33d2cae50f60d03162b1a099b5f12d1391ddb5"),
    "stb/valid-dtypes.stb": ("3b17c2b0d0d8386bec88b29610f9b4c6e9d4bca16df417c944a50e72085c848d",
                             "f9b6d251691d9c3264cb9677374dcf24f0e0b8d4d1d65fa040b46ee878ef4cd6"),
    "safetensors/valid-every-dtype.safetensors": ("532c0ee49a2fb993c17f201dc25a00e62b0283bbf8e815c4c9e8c01e2dd8cbde",
                                                  "cc046404a10d630e7fe7d5743175ef5cdd3edfa4cdec69b660d8349a688bd674"),
    "embd/valid-every-dtype.weights": ("aa7746692a6f126bff0adf8a115aa488bfec859e45b05300bf0a31d0c9af5bc5",
                                       "3a172ca44ced708db7c630ce3611fb68887a58cf1ce0100fa0cbce66e7ad2c29"),
}


@pytest.mark.parametrize("name", VERSION_1)
def test_version_1_is_what_it_was(name):
    path = ROOT / "corpus" / name
    with_names, without = VERSION_1[name]
    assert weighbridge("hash", "-q", "--digest-version", "1", path).stdout == f"{with_names}  {path}\n"
    assert weighbridge("hash", "-q", "--digest-version=1", "--no-names", path).stdout == f"{without}  {path}\n"
    for now in weighbridge("hash", "-q", path).stdout, weighbridge("hash", "-q", "--digest-version", "2", path).stdout:
        assert re.fullmatch(r"wb2:[0-9a-f]{64}  .*\n", now) and with_names not in now
    assert weighbridge("hash", "-qc", "-", input=f"{with_names}  {path}\n").stdout == ""


@pytest.mark.parametrize("name", ["slm/valid-mixed.slm", "zt/valid-quantized.zt"])
def test_blocks_have_one_digest_in_every_container(name, tmp_path):
    path = ROOT / "corpus" / name
    weighbridge("convert", path, tmp_path / "m.zt", "--encoding", "zstd", "--quiet")
    for version in "1", "2":
        one, two = (weighbridge("hash", "-q", "--digest-version", version, p).stdout.split()[0] for p in (path, tmp_path / "m.zt"))
        assert one == two


@pytest.fixture
def files(tmp_path):
    paths = []
    for i, name in enumerate(["a.safetensors", "b with blanks.safetensors", "c\nd\\e\té\u200b.safetensors"]):
        paths.append(tmp_path / name)
        paths[-1].write_bytes(safetensors({"w": ("U8", [2], bytes([i, 7]))}))
    return paths


@pytest.mark.parametrize("flags", [[], ["--no-names"], ["--sha256"]], ids=lambda flags: "".join(flags) or "content")
def test_check_reads_what_hash_prints(files, tmp_path, flags):
    made = weighbridge("hash", *flags, *files).stdout
    listed = tmp_path / "list.txt"
    listed.write_text("# digests\n\n" + made)
    done = weighbridge("hash", "--check", *flags, listed)
    assert [line.rsplit(": ", 1)[1] for line in done.stdout.splitlines()] == ["OK"] * 3 and done.stderr == ""
    assert weighbridge("hash", "--check", *flags, "-", input=made.replace("\n", "\r\n")).stdout == done.stdout
    assert weighbridge("hash", "--check", "--quiet", *flags, listed).stdout == ""

    files[1].write_bytes(safetensors({"w": ("U8", [2], bytes([9, 9]))}))
    done = weighbridge("hash", "--check", *flags, listed, status=1)
    assert done.stdout.splitlines()[1] == f"{files[1]}: FAILED" and done.stdout.count(": OK\n") == 2
    assert done.stderr == f"weighbridge: {listed}: 1 file of 3 FAILED\n"
    assert weighbridge("hash", "--check", "--quiet", *flags, listed, status=1).stdout == f"{files[1]}: FAILED\n"
    told = validated(weighbridge("hash", "--check", "--json", *flags, listed, status=1).stdout, "hash")["files"]
    assert [one["ok"] for one in told] == [True, False, True] and told[1]["digest"] != told[1]["found"]


def test_check_takes_both_versions_and_what_sha256sum_prints(files):
    one = files[0]
    lines = weighbridge("hash", "--digest-version", "1", one).stdout + weighbridge("hash", one).stdout
    assert weighbridge("hash", "--check", "-", input=lines).stdout == f"{one}: OK\n" * 2
    plain = subprocess.run(["sha256sum", "-b", one], capture_output=True, text=True, check=True).stdout
    assert plain.split()[0] == hashlib.sha256(one.read_bytes()).hexdigest()
    assert weighbridge("hash", "--check", "--sha256", "-", input=plain).stdout == f"{one}: OK\n"
    # A digest of one version does not match the other version.
    assert weighbridge("hash", "--check", "-", input=plain, status=1).stdout == f"{one}: FAILED\n"
    swapped = "wb2:" + lines
    assert weighbridge("hash", "--check", "-", input=swapped, status=1).stdout == f"{one}: FAILED\n{one}: OK\n"


def test_check_recognizes_a_digest_of_another_kind(files, tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("no model\n")
    listed = subprocess.run(["sha256sum", files[0], files[1], note], capture_output=True, text=True, check=True).stdout
    done = weighbridge("hash", "--check", "-", input=listed, status=1)
    assert done.stdout == "".join(f"{path}: FAILED\n" for path in (files[0], files[1], note))
    assert "standard input: 3 digests are the SHA-256 of the file: check the list with hash --check --sha256" in done.stderr
    assert weighbridge("hash", "--check", "--sha256", "-", input=listed).stdout.count(": OK\n") == 3

    for version in "1", "2":
        named, unnamed = (weighbridge("hash", "--digest-version", version, *flags, files[0]).stdout for flags in ([], ["--no-names"]))
        assert "1 digest is of the tensors without their names: check the list with --no-names" in weighbridge(
            "hash", "--check", "-", input=unnamed, status=1).stderr
        assert "1 digest is of the tensors with their names: check the list without --no-names" in weighbridge(
            "hash", "--check", "--no-names", "-", input=named, status=1).stderr
    other = weighbridge("hash", "--check", "-", input=f"{'0' * 64}  {files[0]}\n", status=1)
    assert other.stderr == "weighbridge: standard input: 1 file of 1 FAILED\n"


def test_check_says_what_it_could_not_check(files, broken, tmp_path):
    good = weighbridge("hash", files[0]).stdout
    absent = tmp_path / "absent.safetensors"
    digest = good.split()[0]
    done = weighbridge("hash", "--check", "-", input=good + f"{digest}  {absent}\n{digest}  {broken}\n", status=4)
    assert done.stdout == f"{files[0]}: OK\n{absent}: FAILED to open or read\n{broken}: FAILED\n"
    assert "standard input: 2 files of 3 FAILED" in done.stderr and str(absent) in done.stderr
    told = validated(weighbridge("hash", "--check", "--json", "-", input=good + f"{digest}  {absent}\n", status=4).stdout, "hash")["files"]
    assert told[0]["ok"] is True and told[1]["findings"]

    for wrong in [digest, f"{digest} {files[0]}", f"{digest}  ", digest[:-1] + f"  {files[0]}", f"wb3:{digest[4:]}  {files[0]}",
                  digest.upper() + f"  {files[0]}", f"{digest}\t {files[0]}", f"{digest}  a\\qb", f"{digest}  a\\", f"{digest}  \\x4",
                  f"{digest}  \\u{{110000}}", "\x00"]:
        done = weighbridge("hash", "--check", "-", input=good + wrong + "\n" + wrong + "\n", status=1)
        assert done.stdout == f"{files[0]}: OK\n", wrong
        assert done.stderr.endswith("standard input: 2 lines are not a digest, two spaces and a path; the first is line 2\n"), wrong
    assert "line is not" in weighbridge("hash", "--check", "--sha256", "-", input=good, status=1).stderr  # wb2: is no SHA-256
    assert "there is no digest to check" in weighbridge("hash", "--check", "-", input="# nothing\n", status=1).stderr
    weighbridge("hash", "--check", absent, status=4)


def test_flags_that_ask_for_different_things(sample):
    for flags in (["--check", "--digest-version", "1"], ["--sha256", "--digest-version", "1"], ["--sha256", "--no-names"], ["--digest-version", "3"],
                  ["--digest-version", "0"]):
        weighbridge("hash", *flags, sample, status=2)


def test_json_says_the_version(sample):
    told = [validated(weighbridge("hash", "--json", *flags, sample).stdout, "hash")["files"][0] for flags in ([], ["--digest-version", "1"], ["--sha256"])]
    assert [one["version"] for one in told] == [2, 1, None]
    assert [one["digest"].startswith("wb2:") for one in told] == [True, False, False]


def test_lists_of_sha256sum_are_read_as_it_writes_them(tmp_path):
    """It begins a line with a backslash if it has escaped the path, and reads upper-case digits."""
    path = tmp_path / "back\\slash.safetensors"
    path.write_bytes(safetensors({}))
    line = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout
    assert line.startswith("\\")
    (tmp_path / "list").write_text(line)
    weighbridge("hash", "--check", "--sha256", tmp_path / "list")
    digits, rest = line[1:].split(" ", 1)
    (tmp_path / "list").write_text(f"\\{digits.upper()} {rest}")
    weighbridge("hash", "--check", "--sha256", tmp_path / "list")


def test_a_line_that_names_no_file_is_one_that_cannot_be_read(tmp_path):
    """The command line was blamed, with status 2."""
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", "/dev/null/x", tmp_path / "none"):
        (tmp_path / "list").write_text(f"wb2:{'0' * 64}  {path}\n")
        assert "FAILED to open or read" in weighbridge("hash", "--check", tmp_path / "list", status=4).stdout
