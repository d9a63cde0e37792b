# SPDX-License-Identifier: Apache-2.0
# Tests that a file keeps its extended attributes and its access control list when a verb replaces it.
import os
import struct

import pytest

from conftest import floats, safetensors, weighbridge

LIST = "system.posix_acl_access"
NOBODY = 0xFFFFFFFF
# acl(5): the owner may read and write, user 1234 may read, the group nothing; the mask is what the mode shows as the group's.
READABLE_FOR_1234 = struct.pack("<I", 2) + b"".join(
    struct.pack("<HHI", *entry) for entry in [(1, 6, NOBODY), (2, 4, 1234), (4, 0, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY)])


def mark(path):
    try:
        os.setxattr(path, "user.origin", b"a colleague")
        os.setxattr(path, LIST, READABLE_FOR_1234)
    except (OSError, AttributeError) as error:
        pytest.skip(f"the filesystem of {path} has no user attributes or no access control lists: {error}")


def is_marked(path):
    return (os.getxattr(path, "user.origin"), os.getxattr(path, LIST), path.stat().st_mode & 0o777) == (
        b"a colleague", READABLE_FOR_1234, 0o640)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [2, 2], floats(1, 2, 3, 4)), "v": ("F32", [2], floats(5, 6))}))
    return path


def test_a_replaced_file_keeps_its_attributes(model, tmp_path):
    for words in (["convert", model, "out.gguf"], ["extract", model, "w", "-o", "out.npy"], ["edit", model, "--set", "a=b", "-o", "out.safetensors"]):
        out = tmp_path / words[-1]
        out.write_bytes(b"old")
        mark(out)
        weighbridge(*words, "--force", cwd=tmp_path)
        assert out.read_bytes() != b"old" and is_marked(out), words


def test_a_file_that_is_edited_into_a_new_one_keeps_its_attributes(model):
    mark(model)
    before = model.stat().st_ino
    weighbridge("edit", model, "--set", f"long={'x' * 5000}", "--in-place")
    assert model.stat().st_ino != before and is_marked(model)


def test_files_that_are_replaced_together_keep_their_attributes(model, tmp_path):
    words = ["convert", model, "out/", "--to", "safetensors", "--max-shard-size", "20"]
    weighbridge(*words, cwd=tmp_path)
    shards = sorted((tmp_path / "out").iterdir())
    assert len(shards) > 2
    for path in shards:
        mark(path)
    weighbridge(*words, "--force", cwd=tmp_path)
    assert all(is_marked(path) for path in shards)


def test_a_new_file_has_no_attributes(model, tmp_path):
    mark(model)
    weighbridge("convert", model, "new.safetensors", cwd=tmp_path)
    assert os.listxattr(tmp_path / "new.safetensors") in ([], ["security.selinux"])
