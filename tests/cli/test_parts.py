# SPDX-License-Identifier: Apache-2.0
"""Half of a model is not a model: parts of split GGUF, shards, and checkpoints without their storages."""
import json
import struct
import zipfile

import pytest

from conftest import floats, safetensors, validated, weighbridge


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf(names, values=()):
    """A GGUF of 4x4 f32 tensors; values: (key, type, bytes)."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(names), len(values))
    head += b"".join(text(key) + struct.pack("<I", kind) + data for key, kind, data in values)
    for at, name in enumerate(names):
        head += text(name) + struct.pack("<IQQIQ", 2, 4, 4, 0, 64 * at)
    return head + b"\0" * (-len(head) % 32) + floats(*range(16)) * len(names)


def part(number, count, name):
    values = [("split.no", 2, struct.pack("<H", number)), ("split.count", 2, struct.pack("<H", count)),
              ("split.tensors.count", 5, struct.pack("<i", count))]
    return gguf([name], values + ([("general.architecture", 8, text("llama"))] if number == 0 else []))


@pytest.fixture
def parts(tmp_path):
    for number, name in enumerate(("token_embd.weight", "output.weight")):
        (tmp_path / f"x-0000{number + 1}-of-00002.gguf").write_bytes(part(number, 2, name))
    return tmp_path / "x-00001-of-00002.gguf", tmp_path / "x-00002-of-00002.gguf"


def names_of(path):
    return sorted(each["name"] for each in json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]["tensors"])


def test_any_part_of_a_split_gguf_opens_the_whole_model(parts, tmp_path):
    """The second part was once a model of one tensor, without a word."""
    for path in parts:
        assert names_of(path) == ["output.weight", "token_embd.weight"]
        weighbridge("verify", path)
        weighbridge("convert", path, tmp_path / "out.safetensors", "--force")
        assert names_of(tmp_path / "out.safetensors") == ["output.weight", "token_embd.weight"]


@pytest.mark.parametrize("kept", [0, 1])
def test_a_part_of_gguf_without_the_others_is_only_a_part(parts, tmp_path, kept):
    missing = parts[1 - kept]
    missing.unlink()
    path = parts[kept]
    assert missing.name in weighbridge("verify", path, status=1).stdout
    listed = weighbridge("inspect", path)
    assert missing.name in listed.stderr and "warning" in listed.stderr
    out = tmp_path / "out.safetensors"
    refused = weighbridge("convert", path, out, status=1)
    assert missing.name in refused.stdout + refused.stderr and "--allow part" in refused.stderr and not out.exists()
    assert missing.name in weighbridge("convert", path, out, "--dry-run", status=1).stdout
    for verb in (["embed", path, "text"], ["generate", path, "--prompt", "text"]):
        said = weighbridge(*verb, status=3).stderr
        assert missing.name in said and "--allow part" in said, said
    weighbridge("convert", path, out, "--allow", "part")
    assert len(names_of(out)) == 1
    # The output states nothing about parts.
    weighbridge("convert", path, tmp_path / "half.gguf", "--allow", "part")
    weighbridge("verify", tmp_path / "half.gguf")


def test_a_part_of_gguf_under_another_name_is_only_a_part(parts, tmp_path):
    parts[1].rename(tmp_path / "renamed.gguf")
    assert "number 2 of 2" in weighbridge("verify", tmp_path / "renamed.gguf", status=1).stdout
    assert "--allow part" in weighbridge("convert", tmp_path / "renamed.gguf", tmp_path / "out.zt", status=1).stderr
    weighbridge("convert", tmp_path / "renamed.gguf", tmp_path / "out.zt", "--allow", "part")
    assert "split." not in weighbridge("inspect", tmp_path / "out.zt").stdout


def test_a_part_of_a_split_gguf_can_be_edited_alone(parts):
    weighbridge("edit", parts[1], "--in-place", "--set", "note=second")
    weighbridge("verify", parts[0])
    parts[0].unlink()
    weighbridge("edit", parts[1], "--in-place", "--set", "note=alone")


def shards(folder, index=True):
    names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for name, tensor in zip(names, ("a", "b")):
        (folder / name).write_bytes(safetensors({tensor: ("F32", [2], floats(1, 2))}))
    if index:
        (folder / "model.safetensors.index.json").write_text(
            json.dumps({"metadata": {"total_size": 16, "total_parameters": 4}, "weight_map": dict(zip("ab", names))}))
    return [folder / name for name in names]


@pytest.mark.parametrize("index", [True, False])
def test_a_shard_is_valid_alone_and_converted_only_with_consent(tmp_path, index):
    first, second = shards(tmp_path, index)
    verdict = validated(weighbridge("verify", "--json", first).stdout, "verify")["files"][0]
    assert [each["rule"] for each in verdict["findings"]] == ["safetensors/shard-alone"]
    assert "shard-alone" in weighbridge("inspect", first).stderr
    out = tmp_path / "out.zt"
    assert "--allow part" in weighbridge("convert", first, out, status=1).stderr and not out.exists()
    assert "--allow part" in weighbridge("embed", first, "text", status=3).stderr
    assert "--allow part" in weighbridge("generate", first, "--prompt", "text", status=3).stderr
    weighbridge("convert", first, out, "--allow", "part")
    weighbridge("convert", first, second, "-o", tmp_path / "joined.zt")
    assert names_of(tmp_path / "joined.zt") == ["a", "b"]


def test_a_shard_under_any_name_that_an_index_lists_is_a_part(tmp_path):
    for name in ("left.safetensors", "right.safetensors"):
        (tmp_path / name).write_bytes(safetensors({name[0]: ("F32", [2], floats(1, 2))}))
    weighbridge("convert", tmp_path / "left.safetensors", tmp_path / "whole.zt")
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"l": "left.safetensors", "r": "right.safetensors"}}))
    assert "right.safetensors" in weighbridge("convert", tmp_path / "left.safetensors", tmp_path / "half.zt", status=1).stdout


def test_other_metadata_of_an_index_is_named(tmp_path):
    shards(tmp_path)
    said = weighbridge("convert", tmp_path / "model.safetensors.index.json", tmp_path / "out.safetensors").stdout
    assert "total_parameters" in said


def checkpoint(path, members):
    """A .pt of the f32 tensors a (storage 0) and b (storage 1), with the storages of `members` only."""
    def storage(key):
        return b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x00" + key + b"X\x03\x00\x00\x00cpuK\x02tQ"

    def tensor(key):
        return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(key) + b"K\x00K\x02\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR"
    body = b"\x80\x02}(X\x01\x00\x00\x00a" + tensor(b"0") + b"X\x01\x00\x00\x00b" + tensor(b"1") + b"u."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/data.pkl", body)
        archive.writestr("m/byteorder", "little")
        for key in members:
            archive.writestr(f"m/data/{key}", floats(1, 2))
        archive.writestr("m/version", "3\n")


def test_a_checkpoint_without_its_storages_is_only_a_part(tmp_path):
    path, out = tmp_path / "w.pt", tmp_path / "out.safetensors"
    checkpoint(path, "01")
    weighbridge("verify", path)
    checkpoint(path, "0")
    assert "pytorch/storage-missing" in weighbridge("verify", path, status=1).stdout
    listed = weighbridge("inspect", path)
    assert "storage-missing" in listed.stderr and "unsupported" in listed.stdout
    assert "--allow part,unsupported" in weighbridge("convert", path, out, status=1).stderr and not out.exists()
    weighbridge("convert", path, out, "--allow", "part,unsupported")
    assert names_of(out) == ["a"]


def test_a_shard_of_pytorch_is_converted_only_with_consent(tmp_path):
    for name in ("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"):
        checkpoint(tmp_path / name, "01")
    assert "pytorch/shard-alone" in weighbridge("verify", tmp_path / name).stdout
    assert "--allow part" in weighbridge("convert", tmp_path / name, tmp_path / "out.zt", status=1).stderr
