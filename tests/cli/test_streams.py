# SPDX-License-Identifier: Apache-2.0
"""Tests what comes through pipes and goes into them: - as a file, vectors as raw numbers and as a stream of Arrow."""
import os
import pathlib
import pty
import struct
import subprocess

import pytest

from conftest import COMMAND, floats, safetensors, weighbridge

CONTENT = safetensors({"a": ("F32", [4], floats(1, 2, 3, 4)), "b": ("U8", [5], b"12345")})


def piped(*arguments, content=CONTENT, status=0, **options):
    """The command with `content` through a pipe, not as a file."""
    done = subprocess.run([COMMAND, *arguments], input=content, capture_output=True, timeout=60, **options)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


@pytest.mark.parametrize("verb", ["inspect", "verify", "doctor", "hash"])
def test_a_pipe_is_a_file(verb, tmp_path):
    path = tmp_path / "file.safetensors"
    path.write_bytes(CONTENT)
    of_file = weighbridge(verb, path).stdout.replace(str(path), "FILE")
    (tmp_path / "temporary").mkdir()
    of_pipe = piped(verb, "-", env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}).stdout.decode()
    assert of_pipe.replace("standard input", "FILE").replace("  -\n", "  FILE\n").replace("-: ", "FILE: ") == of_file
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_is_wrong_is_said_of_standard_input():
    done = piped("verify", "-", content=CONTENT[:-1], status=1)
    assert b"standard input: " in done.stdout + done.stderr


def test_a_pipe_can_be_larger_than_the_memory_of_the_process(tmp_path):
    """300 MB of zeros with 100 MB of memory."""
    size = 300_000_000
    head = safetensors({"a": ("U8", [size], b"")}).replace(b"[0,0]", f"[0,{size}]".encode())
    text = head[8:].strip()
    text += b" " * (-len(text) % 8)
    command = f"ulimit -d 100000; {{ head -c {8 + len(text)} {tmp_path}/head; head -c {size} /dev/zero; }} | {COMMAND} verify -"
    (tmp_path / "head").write_bytes(struct.pack("<Q", len(text)) + text)
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 0 and b"ok (safetensors, 1 tensor" in done.stdout, done.stderr


def test_a_limit_bounds_standard_input():
    said = piped("verify", "-", "--limit", "input=16", status=1).stderr.decode()
    assert "standard input: " in said and "limit of 16" in said and "--limit input=BYTES" in said
    piped("verify", "-", "--limit", f"input={len(CONTENT)}")


def test_a_folder_that_takes_no_temporary_is_an_error(tmp_path):
    said = piped("verify", "-", status=4, env={**os.environ, "TMPDIR": str(tmp_path / "absent")}).stderr.decode()
    assert "set TMPDIR to use another folder" in said and "absent" in said
    # A file is read in place and needs none.
    (tmp_path / "file").write_bytes(CONTENT)
    with open(tmp_path / "file", "rb") as stdin:
        weighbridge("verify", "-", stdin=stdin, env={**os.environ, "TMPDIR": str(tmp_path / "absent")})


def test_a_pipe_is_converted_and_joined(tmp_path):
    (tmp_path / "c.safetensors").write_bytes(safetensors({"c": ("U8", [1], b"x")}))
    piped("convert", "-", str(tmp_path / "c.safetensors"), "-o", str(tmp_path / "out.zt"))
    assert ": 3 tensors" in weighbridge("convert", tmp_path / "out.zt", tmp_path / "o.safetensors", "--dry-run").stdout
    assert piped("extract", "-", "b", "-o", "-").stdout == b"12345"


def test_binary_data_does_not_go_to_a_terminal(tmp_path):
    (tmp_path / "f.safetensors").write_bytes(CONTENT)
    leader, follower = pty.openpty()
    done = subprocess.run([COMMAND, "extract", tmp_path / "f.safetensors", "b", "-o", "-"], stdin=subprocess.DEVNULL, stdout=follower,
                          stderr=subprocess.PIPE, timeout=60)
    os.close(follower)
    os.close(leader)
    assert done.returncode == 2 and b"refusing to write binary data to a terminal" in done.stderr
