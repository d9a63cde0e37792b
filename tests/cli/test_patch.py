# SPDX-License-Identifier: Apache-2.0
"""diff --patch, apply and patch: what they write, print and refuse. src/diff/patch_test.cc has the encodings."""
import json
import shlex
import struct
import subprocess

import pytest

from conftest import COMMAND, validated, weighbridge


def write(path, tensors, metadata=None):
    """safetensors of u16 numbers."""
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, numbers in tensors.items():
        header[name] = {"dtype": "BF16", "shape": [len(numbers)], "data_offsets": [len(data), len(data) + 2 * len(numbers)]}
        data += struct.pack(f"<{len(numbers)}H", *numbers)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def digest(path):
    return weighbridge("hash", path).stdout.split()[0]


@pytest.fixture
def pair(tmp_path):
    old = {"w": [i * 7 % 65536 for i in range(5000)], "norm": [1] * 8}
    new = {"w": [v + (i % 50 == 0) & 0xFFFF for i, v in enumerate(old["w"])], "norm": [1] * 8}
    return write(tmp_path / "a.safetensors", old), write(tmp_path / "b.safetensors", new)


def test_the_result_is_the_other_file(pair, tmp_path):
    base, result = pair
    patch, out = tmp_path / "p.zt", tmp_path / "out.safetensors"
    assert "1 changed of 2 tensors" in weighbridge("diff", base, result, "--patch", patch).stdout
    assert weighbridge("verify", patch).stdout.endswith("; a patch: 1 changed of 2 tensors; 100 of 5,000 elements\n")
    weighbridge("apply", base, patch, "-o", out, "--dry-run")
    assert not out.exists()
    weighbridge("apply", base, patch, "-o", out)
    assert digest(out) == digest(result)


def test_inspect_shows_what_changes_and_how_much(pair, tmp_path):
    base, result = pair
    weighbridge("diff", base, result, "--patch", tmp_path / "p.zt")
    said = weighbridge("inspect", tmp_path / "p.zt").stdout
    assert "patch: 1 changed of 2 tensors; 100 of 5,000 elements\n" in said and "parameters" not in said and digest(base) in said and digest(result) in said
    assert "sparse" in said and "2.00%" in said and "w: bf16 [5000]" in said
    assert "weighbridge.delta/nodes" not in said
    assert "weighbridge.delta/nodes" in weighbridge("inspect", tmp_path / "p.zt", "--stored").stdout
    assert "part data" in weighbridge("explain", tmp_path / "p.zt", "w").stdout


def test_json_and_quiet(pair, tmp_path):
    base, result = pair
    patch = tmp_path / "p.zt"
    value = validated(weighbridge("diff", base, result, "--patch", patch, "--json").stdout, "patch")
    assert value["changed"] == 1 and value["differing"] == 100 and value["tensors"] == 2
    assert weighbridge("diff", base, result, "--patch", patch, "--quiet", "--force").stdout == ""
    validated(weighbridge("apply", base, patch, "-o", tmp_path / "o.zt", "--json").stdout, "convert")
    assert "exists" in weighbridge("diff", base, result, "--patch", patch, status=2).stderr


def test_another_base_is_refused_and_nothing_is_written(pair, tmp_path):
    base, result = pair
    patch, out = tmp_path / "p.zt", tmp_path / "out.safetensors"
    weighbridge("diff", base, result, "--patch", patch)
    said = weighbridge("apply", result, patch, "-o", out, status=2).stderr
    assert "it is the result already" in said
    assert "not a patch" in weighbridge("apply", base, result, "-o", out, status=2).stderr
    assert not out.exists() and not [p for p in tmp_path.iterdir() if p.suffix == ".tmp"]


def test_fold_and_reverse(pair, tmp_path):
    base, result = pair
    third = write(tmp_path / "c.safetensors", {"w": [i * 7 % 65536 for i in range(5000)], "norm": [2] * 8})
    names = [tmp_path / name for name in ("1.zt", "2.zt", "both.zt", "back.zt", "out.safetensors", "chain.safetensors")]
    first, second, both, back, out, chain = names
    weighbridge("diff", base, result, "--patch", first)
    weighbridge("diff", result, third, "--patch", second)
    said = weighbridge("patch", "fold", first, second, "-o", both).stdout
    assert "1 changed of 2 tensors" in said  # w is again what it was
    weighbridge("apply", base, both, "-o", out)
    weighbridge("apply", base, first, second, "-o", chain)
    assert digest(out) == digest(chain) == digest(third)
    weighbridge("patch", "reverse", both, "-o", back)
    weighbridge("apply", third, back, "-o", out, "--force")
    assert digest(out) == digest(base)
    weighbridge("patch", "fold", second, first, "-o", tmp_path / "no.zt", status=2)


def test_a_folder_keeps_its_own_config(pair, tmp_path):
    base, result = pair
    patch, folder = tmp_path / "p.zt", tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(base.read_bytes())
    weighbridge("diff", folder, result, "--patch", patch)
    weighbridge("apply", folder, patch, "-o", tmp_path / "out/")
    assert json.loads((tmp_path / "out/config.json").read_text()) == {"model_type": "llama"}
    assert digest(tmp_path / "out") == digest(result)


def test_a_damaged_patch_is_refused_before_anything_is_written(pair, tmp_path):
    base, result = pair
    patch, out = tmp_path / "p.zt", tmp_path / "out.safetensors"
    weighbridge("diff", base, result, "--patch", patch)
    whole = patch.read_bytes()
    for place in range(70, len(whole) - 16, 97):
        patch.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1:])
        done = subprocess.run([COMMAND, "apply", base, patch, "-o", out, "--quiet"], capture_output=True)
        if done.returncode == 0:  # a byte that nobody reads
            assert digest(out) == digest(result)
            out.unlink()
        assert not out.exists()


def test_verbs_that_read_a_model_take_patches(pair, tmp_path):
    base, result = pair
    third = write(tmp_path / "c.safetensors", {"w": [9] * 5000, "norm": [2] * 8})
    first, second, out = tmp_path / "1.zt", tmp_path / "2.zt", tmp_path / "w.npy"
    weighbridge("diff", base, result, "--patch", first)
    weighbridge("diff", base, third, "--with-patch", first, "--patch", second)
    one, both = ["--with-patch", first], ["--with-patch", first, "--with-patch", second]
    assert weighbridge("hash", base, *both).stdout.split()[0] == digest(third)
    assert weighbridge("diff", base, result, *one).stdout.startswith("equal")
    assert "and what the patches make of it" in weighbridge("verify", base, *both).stdout
    stats = json.loads(weighbridge("inspect", base, *both, "--stats", "--json").stdout)
    assert json.dumps(json.loads(weighbridge("inspect", third, "--stats", "--json").stdout)["files"][0]["tensors"][0]["stats"]) == json.dumps(
        stats["files"][0]["tensors"][0]["stats"])
    weighbridge("extract", base, "w", *both, "-o", out)
    weighbridge("extract", third, "w", "-o", tmp_path / "third.npy")
    assert out.read_bytes() == (tmp_path / "third.npy").read_bytes()
    weighbridge("convert", base, tmp_path / "c.zt", *both)
    assert digest(tmp_path / "c.zt") == digest(third)
    for verb in (["hash", result], ["inspect", result], ["verify", result], ["convert", result, tmp_path / "no.zt"]):
        assert "patch is for a model" in weighbridge(*verb, *one, status=2).stderr, verb
    assert "used together" in weighbridge("hash", "--file", base, *one, status=2).stderr
    assert "not a patch" in weighbridge("hash", base, "--with-patch", result, status=2).stderr
    assert not (tmp_path / "no.zt").exists()


@pytest.mark.parametrize("changed, how", [(450, "sparse"), (451, "dense")])
def test_a_tensor_of_which_more_than_45_percent_differ_is_stored_whole(tmp_path, changed, how):
    base = write(tmp_path / "a.safetensors", {"w": [3] * 1000})
    result = write(tmp_path / "b.safetensors", {"w": [4] * changed + [3] * (1000 - changed)})
    weighbridge("diff", base, result, "--patch", tmp_path / "p.zt")
    assert how in weighbridge("inspect", tmp_path / "p.zt").stdout


def test_a_limit_bounds_what_a_tensor_of_a_patch_may_become(pair, tmp_path):
    base, result = pair
    patch, out = tmp_path / "p.zt", tmp_path / "out.safetensors"
    weighbridge("diff", base, result, "--patch", patch)
    enough = ["--limit", "decoded=10000"]
    weighbridge("apply", base, patch, *enough, "-o", out)
    out.unlink()
    few = ["--limit", "decoded=9999"]
    for verb in (["apply", base, patch, "-o", out], ["hash", base, "--with-patch", patch], ["patch", "reverse", patch, "-o", out]):
        said = weighbridge(*verb, *few, status=1).stderr
        assert "\"w\" of a patch exceeds the limit" in said and "--limit decoded=10000" in said, said
    assert "exceeds the limit" in weighbridge("verify", patch, *few, status=1).stderr
    assert not out.exists()


def test_explain_names_the_chunk_the_plane_and_the_elements_of_a_byte(tmp_path):
    old = {"w": [i * 7 % 65536 for i in range(1_100_000)], "v": [1, 2, 3, 4] * 9}
    new = {"w": [v ^ (i % 1000 == 0) for i, v in enumerate(old["w"])], "v": [1, 2, 3, 5] * 9}
    patch = tmp_path / "p.zt"
    weighbridge("diff", write(tmp_path / "a.safetensors", old), write(tmp_path / "b.safetensors", new), "--patch", patch)
    for name, frames in (("w", [int(n) for n in dict(attributes(patch, "w"))["frames"].split(",")]), ("v", None)):
        part = json.loads(weighbridge("explain", patch, name, "--json").stdout)
        at = part["offset"]
        first = blocks(patch, at)
        assert first[0]["what"] == "chunk 0, plane 0: gaps, byte 0", first
        last = blocks(patch, at + part["length"] - 1)[0]
        assert last["what"] == f"chunk {1 if frames else 0}, plane 3: changes, byte 1", last
        if frames:
            assert [first[0]["offset"], first[0]["size"], last["size"]] == [at, frames[0], frames[-1]]
            assert first[0]["value"] == "1049 changes in elements [0] to [1048575]"
            assert last["value"] == "51 changes in elements [1048576] to [1099999]"


def attributes(path, tensor):
    found = json.loads(weighbridge("inspect", path, "--stored", "--json").stdout)["files"][0]["tensors"]
    return next(each for each in found if each["name"] == tensor)["attributes"].items()


def blocks(path, offset):
    return [each for each in json.loads(weighbridge("explain", path, f"@{offset}", "--json").stdout)["spans"] if each["kind"] == "block"]


def test_in_place_the_file_becomes_the_result(pair, tmp_path):
    base, result = pair
    patch = tmp_path / "p.zt"
    weighbridge("diff", base, result, "--patch", patch)
    assert "1 tensor of" in weighbridge("apply", base, patch, "--in-place", "--dry-run").stdout
    assert base.read_bytes() != result.read_bytes()
    value = validated(weighbridge("apply", base, patch, "--in-place", "--json").stdout, "apply")
    assert value["written"] and value["tensors"] == 1 and value["files"] == [str(base)]
    assert base.read_bytes() == result.read_bytes()
    assert "it is the result already" in weighbridge("apply", base, patch, "-i", status=2).stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.safetensors", "b.safetensors", "p.zt"]


def test_in_place_the_digests_of_a_zt_are_renewed(pair, tmp_path):
    base, result = pair
    patch, file = tmp_path / "p.zt", tmp_path / "m.zt"
    weighbridge("diff", base, result, "--patch", patch)
    weighbridge("convert", base, file, "--digest", "sha256")
    weighbridge("apply", file, patch, "-i")
    assert "ok" in weighbridge("verify", file).stdout and digest(file) == digest(result)


def test_in_place_what_is_refused_names_the_command(pair, tmp_path):
    base, result = pair
    patch, file = tmp_path / "p.zt", tmp_path / "m.zt"
    weighbridge("diff", base, result, "--patch", patch)
    weighbridge("convert", base, file, "--encoding", "zstd")
    said = weighbridge("apply", file, patch, "-i", status=2).stderr
    assert "not stored as its elements are" in said and f"weighbridge apply {file} {patch} -o NEW.zt" in said
    # Where a new file would not help either, none is proposed.
    assert "to do" not in weighbridge("apply", base, result, "-i", status=2).stderr
    (tmp_path / "link").hardlink_to(base)
    assert "2 names" in weighbridge("apply", base, patch, "-i", status=2).stderr
    assert "give one of them" in weighbridge("apply", base, patch, status=2).stderr
    assert "name it" in weighbridge("apply", "-", patch, "-i", status=2).stderr
    assert "cannot be used together" in weighbridge("apply", base, patch, "-i", "-o", "x", status=2).stderr


# The index's extension was proposed for the output, and what adds a tensor could not be written at all.
@pytest.mark.parametrize("of", ["file", "no extension", "folder", "index", "sharded", "read-only", "a format that cannot be written"])
def test_in_place_the_command_that_is_proposed_works(of, pair, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    base, result = pair
    write(result, {"new": [1, 2], "w": [5] * 5000})
    weighbridge("diff", base, result, "--patch", "p.zt")
    path = {"file": base.name, "no extension": "model", "folder": "folder", "index": "shards/model.safetensors.index.json", "sharded": "shards",
            "read-only": base.name, "a format that cannot be written": "a.bin"}[of]
    if of in ("no extension", "a format that cannot be written"):
        base.rename(path)
    elif of == "folder":
        (tmp_path / "folder").mkdir()
        base.rename("folder/model.safetensors")
        (tmp_path / "folder/config.json").write_text('{"model_type": "gpt2"}')
    elif of in ("index", "sharded"):
        weighbridge("convert", base, "shards/", "--to", "safetensors", "--max-shard-size", "9000")
    elif of == "read-only":
        weighbridge("diff", base, write(tmp_path / "c.safetensors", {"w": [7] * 5000, "norm": [1] * 8}), "--patch", "p.zt", "-f")
        result = tmp_path / "c.safetensors"
        base.chmod(0o444)
    before = digest(path)
    said = weighbridge("apply", path, "p.zt", "-i", status=2).stderr
    (command,) = [line.split("to do: weighbridge ")[1] for line in said.splitlines() if "to do: " in line]
    assert digest(path) == before
    weighbridge(*shlex.split(command))
    assert digest(command.split()[-1]) == digest(result)


def test_in_place_a_model_of_several_files(pair, tmp_path):
    base, result = pair
    patch, folder = tmp_path / "p.zt", tmp_path / "shards"
    weighbridge("diff", base, result, "--patch", patch)
    weighbridge("convert", base, f"{folder}/", "--to", "safetensors", "--max-shard-size", "9000")
    weighbridge("apply", folder, patch, "-i")
    assert digest(folder) == digest(result)
    index = next(folder.glob("*.index.json"))
    weighbridge("patch", "reverse", patch, "-o", tmp_path / "back.zt")
    weighbridge("apply", index, tmp_path / "back.zt", "-i")
    assert digest(folder) == digest(base)
