# SPDX-License-Identifier: Apache-2.0
"""doctor by its jobs: a download that does not open, one that stopped, a cache to prove."""
import gzip
import hashlib
import os
import subprocess

import pytest

from conftest import COMMAND, safetensors, validated, weighbridge


@pytest.fixture
def whole(tmp_path):
    """Two tensors of 50,000 bytes without a zero."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"a": ("U8", [50000], b"\x01" * 50000), "b": ("U8", [50000], b"\x02" * 50000)}))
    return path


def diagnosis(path, status=1):
    return validated(weighbridge("doctor", "--json", path, status=status).stdout, "doctor")["files"][0]


def test_a_sound_file(whole):
    out = weighbridge("doctor", whole).stdout
    assert out.startswith(f"{whole}: sound: safetensors file, nothing is wrong with it\n") and "what to do" not in out
    assert diagnosis(whole, 0)["condition"] == "sound"


def test_my_download_stopped(whole, tmp_path):
    content = whole.read_bytes()
    whole.write_bytes(content[:-30000])
    found = diagnosis(whole)
    assert (found["condition"], found["tensors"], found["whole"], found["damaged"]) == ("incomplete", 2, 1, ["b"])
    assert found["full_size"] == len(content) and found["size"] == len(content) - 30000
    # The range, as curl takes it: its bytes make the file whole.
    begin, end = map(int, weighbridge("doctor", whole, "--resume-from").stdout.split("-"))
    assert (begin, end) == (len(content) - 30000, len(content) - 1)
    out = weighbridge("doctor", whole, status=1).stdout
    assert f"curl -L -C - -o {whole} URL" in out and "--salvage" in out
    kept = tmp_path / "kept.safetensors"
    weighbridge("doctor", whole, "--salvage", kept)
    assert kept.read_bytes().endswith(b"\x01" * 50000)
    weighbridge("doctor", whole, "--salvage", kept, status=2)
    weighbridge("doctor", whole, "--salvage", kept, "--force")
    assert whole.read_bytes() == content[:-30000]  # it never changes its input
    with open(whole, "ab") as file:
        file.write(content[begin:end + 1])
    weighbridge("doctor", whole)


def test_my_download_reserved_its_space(whole):
    content = whole.read_bytes()
    with open(whole, "r+b") as file:
        file.truncate(len(content) - 70000)
        file.truncate(len(content))
    found = diagnosis(whole)
    assert found["condition"] == "suspicious" and found["damaged"] == []  # the zeros may be its own
    begin = int(weighbridge("doctor", whole, "--resume-from").stdout.split("-")[0])
    assert len(content) - 70000 <= begin < len(content) - 70000 + 4096
    assert f"head -c {begin} " in weighbridge("doctor", whole, status=1).stdout


def test_something_was_appended(whole, tmp_path):
    content = whole.read_bytes()
    whole.write_bytes(content + b"</html>")
    assert diagnosis(whole)["trailing"] == {"offset": len(content), "length": 7}
    weighbridge("doctor", whole, "--trim", tmp_path / "trimmed.safetensors")
    assert (tmp_path / "trimmed.safetensors").read_bytes() == content
    whole.write_bytes(content)
    weighbridge("doctor", whole, "--trim", tmp_path / "again.safetensors", status=2)


@pytest.mark.parametrize("content, what", [
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"ab" * 32 + b"\nsize 77\n", "git lfs pull"),
    (b"Entry not found", "download it again"), (b"<!doctype html><title>Sign in</title>", "download it again"),
    (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "download it again"), (b"", "download it again")],
    ids=["pointer", "text", "page", "xml", "empty"])
def test_what_came_in_place_of_the_file(tmp_path, content, what):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    assert what in weighbridge("doctor", path, status=1).stdout
    assert diagnosis(path)["condition"] == "foreign"
    assert weighbridge("doctor", path, "--resume-from", status=1).stdout == ""


def test_what_to_do_is_a_command_that_works(whole, tmp_path):
    packed = tmp_path / "packed.safetensors"
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    command = weighbridge("doctor", packed, status=1).stdout.splitlines()[-1]
    assert command == f"    gzip -dc < {packed} > {tmp_path}/packed.decompressed.safetensors"
    subprocess.run(["sh", "-c", command], check=True)
    assert (tmp_path / "packed.decompressed.safetensors").read_bytes() == whole.read_bytes()
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(whole.read_bytes()[:-1])
    with open(cut, "rb") as file:  # of standard input, the name is not known
        assert "curl -L -C - -o FILE URL" in weighbridge("doctor", "-", stdin=file, status=1).stdout


def test_a_wrong_extension(whole, tmp_path):
    path = tmp_path / "it's a model.gguf"
    path.write_bytes(whole.read_bytes())
    out = weighbridge("doctor", path).stdout
    command, = [line.strip() for line in out.splitlines() if line.strip().startswith("mv ")]
    subprocess.run(["bash", "-c", command], check=True)  # a command to copy
    assert (tmp_path / "it's a model.safetensors").exists()


def test_names_are_escaped(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"\x1b[31mred": ("U8", [9], b"\x01" * 9)})[:-3])
    assert "\x1b" not in weighbridge("doctor", path, status=1).stdout


def test_standard_input(whole):
    done = subprocess.run([COMMAND, "doctor", "-"], input=whole.read_bytes()[:-1], capture_output=True)
    assert done.returncode == 1 and b"ends early" in done.stdout


def git_sha1(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@pytest.fixture
def hub(tmp_path):
    repository = tmp_path / "hub/models--org--name"
    (repository / "blobs").mkdir(parents=True)
    snapshot = repository / "snapshots/0123abcd"
    snapshot.mkdir(parents=True)

    def add(name, content, digest):
        (repository / "blobs" / digest).write_bytes(content)
        os.symlink(f"../../blobs/{digest}", snapshot / name)
        return repository / "blobs" / digest
    weights = add("model.safetensors", b"w" * 100000, hashlib.sha256(b"w" * 100000).hexdigest())
    add("config.json", b"{}", git_sha1(b"{}"))
    return tmp_path / "hub", repository, weights


def test_a_cache_is_proven_without_a_network(hub):
    root, repository, weights = hub
    assert "2 sound" in weighbridge("doctor", root).stdout
    assert "2 sound" in weighbridge("doctor", repository).stdout
    weights.write_bytes(b"w" * 99999 + b"x")
    (repository / "blobs/0123.incomplete").write_bytes(b"w")
    out = weighbridge("doctor", root, status=1).stdout
    assert f"damaged models--org--name/blobs/{weights.name}, used by models--org--name/snapshots/0123abcd/model.safetensors" in out
    assert "unfinished models--org--name/blobs/0123.incomplete" in out
    found = validated(weighbridge("doctor", "--json", root, status=1).stdout, "doctor")["files"][0]
    assert sorted(entry["state"] for entry in found["entries"]) == ["damaged", "sound", "unfinished"]
    weighbridge("doctor", root, "--salvage", root / "out.zt", status=2)


def test_several_files_are_one_list(whole):
    found = validated(weighbridge("doctor", "--json", whole, whole).stdout, "doctor")["files"]
    assert [each["condition"] for each in found] == ["sound", "sound"]


def test_a_finding_in_a_shard_names_it(whole, tmp_path):
    folder = tmp_path / "shards"
    weighbridge("convert", whole, f"{folder}/", "--to", "safetensors", "--max-shard-size", "60K")
    shard = sorted(folder.glob("*-00002-of-*.safetensors"))[0]
    os.truncate(shard, shard.stat().st_size - 9)
    said = weighbridge("doctor", folder, status=1).stdout
    assert f"error: {shard}: the file ends before" in said
    assert f"download '{shard}' again" in said


def test_a_file_that_is_not_there(tmp_path):
    weighbridge("doctor", tmp_path / "absent", status=4)
    weighbridge("doctor", tmp_path / "a", tmp_path / "b", "--trim", tmp_path / "c", status=2)
