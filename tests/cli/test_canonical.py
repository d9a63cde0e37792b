# SPDX-License-Identifier: Apache-2.0
"""convert --canonical: equal content gives equal bytes, whatever its order and the container that held it."""
import json
import os
import shutil
import struct

import pytest

from conftest import TEST_DATA, cbor, floats, safetensors, validated, weighbridge, ztensor

TENSORS = {"b": ("F32", [2], floats(1, 2)), "t10": ("I32", [3], struct.pack("<3i", 7, 8, 9)), "a": ("F32", [3], floats(3, 4, 5)),
           "t2": ("F32", [1, 2], floats(6, 7))}
TARGETS = {"safetensors": [], "zt": [], "zt --encoding zstd --digest sha256": [], "zt0": ["--allow", "attribute"],
           "stb": ["--allow", "attribute"], "hf": []}


@pytest.fixture
def inputs(tmp_path):
    """The same content in six files: two orders, and four containers or encodings."""
    metadata = {"z": "1", "hf.model_type": "other", "a": "2"}
    one, two = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    one.write_bytes(safetensors(TENSORS, metadata))
    two.write_bytes(safetensors(dict(reversed(TENSORS.items())), dict(reversed(metadata.items()))))
    out = [one, two]
    for name, *flags in [("three.zt",), ("four.zt", "--encoding", "zstd", "--digest", "sha256", "--zt-version", "1.2"),
                         ("shards/", "--to", "safetensors", "--max-shard-size", "12")]:
        weighbridge("convert", two, f"{tmp_path}/{name}", *flags)
        out.append(tmp_path / name)
    return out


def written(path, source, to, *flags):
    """What convert writes: name -> bytes."""
    format, *more = to.split()
    weighbridge("convert", source, f"{path}/" if format == "hf" else path, "--to", format, "--canonical", *more, *flags)
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in files}


@pytest.mark.parametrize("to", TARGETS)
def test_equal_content_gives_equal_bytes(inputs, tmp_path, to):
    made = [written(tmp_path / f"out{i}", source, to, *TARGETS[to]) for i, source in enumerate(inputs)]
    for source, one in zip(inputs, made):
        assert one == made[0], source
    assert written(tmp_path / "again", tmp_path / "out0", to, *TARGETS[to]) == made[0]


def test_without_it_the_order_of_a_zt_is_that_of_the_input(inputs, tmp_path):
    for i, source in enumerate(inputs[2:4]):
        weighbridge("convert", source, tmp_path / f"{i}.zt")
    assert (tmp_path / "0.zt").read_bytes() != (tmp_path / "1.zt").read_bytes()


def test_shards_are_divided_in_the_order_of_names(inputs, tmp_path):
    made = []
    for i, source in enumerate(inputs):
        out = tmp_path / f"out{i}"
        weighbridge("convert", source, f"{out}/", "--to", "safetensors", "--max-shard-size", "16", "--canonical")
        made.append({path.name: path.read_bytes() for path in out.iterdir()})
    assert len(made[0]) > 3 and all(one == made[0] for one in made)


def test_unknown_keys_are_a_named_loss(tmp_path):
    """A program's own keys are no content: they go, but not silently."""
    known = ztensor({"t": ("dense", [1], {"data": ("f32", floats(1))})})
    manifest = {"version": "1.1.0", "writer": "somebody 1.2", "objects": {"t": {
        "shape": [1], "format": "dense", "note": "n", "components": {"data": {"dtype": "f32", "offset": 64, "length": 4, "by": "x"}}}}}
    text = cbor(manifest)
    more = known[:68] + text + struct.pack("<Q", len(text)) + b"ZTEN1000"
    plain, told = tmp_path / "plain.zt", tmp_path / "told.zt"
    plain.write_bytes(known)
    told.write_bytes(more)
    said = weighbridge("convert", told, tmp_path / "out.zt", "--canonical", status=1)
    assert said.stderr.endswith("would lose data; --allow extra accepts the loss\n")
    assert said.stdout.count("loss extra: ") == 3 and "somebody 1.2" in said.stdout
    weighbridge("convert", told, tmp_path / "out.zt", "--canonical", "--allow", "extra")
    weighbridge("convert", plain, tmp_path / "plain.out.zt", "--canonical")
    assert (tmp_path / "out.zt").read_bytes() == (tmp_path / "plain.out.zt").read_bytes()


def test_shared_bytes_are_a_named_loss(tmp_path):
    manifest = {"version": "1.1.0", "objects": {name: {"shape": [1], "format": "dense", "components": {
        "data": {"dtype": "f32", "offset": 64, "length": 4}}} for name in ["head", "embedding"]}}
    text = cbor(manifest)
    tied = tmp_path / "tied.zt"
    tied.write_bytes(b"ZTEN1000" + bytes(56) + floats(1) + text + struct.pack("<Q", len(text)) + b"ZTEN1000")
    plan = validated(weighbridge("convert", "--json", tied, tmp_path / "out.zt", "--canonical", "--dry-run", status=1).stdout, "convert")
    assert [item["kind"] for item in plan["losses"]] == ["alias"] and not plan["possible"]
    weighbridge("convert", tied, tmp_path / "out.zt", "--canonical", "--allow", "alias")
    untied = tmp_path / "untied.safetensors"
    untied.write_bytes(safetensors({name: ("F32", [1], floats(1)) for name in ["head", "embedding"]}))
    weighbridge("convert", untied, tmp_path / "untied.zt", "--canonical")
    assert (tmp_path / "out.zt").read_bytes() == (tmp_path / "untied.zt").read_bytes()


def test_append_has_no_canonical(inputs, tmp_path):
    assert "--canonical" in weighbridge("append", inputs[2], inputs[0], "--canonical", status=2).stderr


def test_a_folder_keeps_its_other_files(tmp_path):
    """The order of special tokens changed, so that tokenizer.json was left out as of another tokenizer."""
    one, two = tmp_path / "one", tmp_path / "two"
    if not (TEST_DATA / "tiny_bert").is_dir():
        pytest.skip("tiny_bert is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
    for path in (one, two):
        shutil.copytree(TEST_DATA / "tiny_bert", path, copy_function=shutil.copyfile)
    config = {**json.loads((two / "config.json").read_text()), "of_a_user": {"b": [1, {"y": "\u00e9", "x": 1.0}], "a": {}}}
    (one / "config.json").write_text(json.dumps(config, indent=2))
    config["of_a_user"] = {"a": {}, "b": [1, {"x": 1.0, "y": "\u00e9"}]}
    (two / "config.json").write_text(json.dumps({**dict(reversed(config.items())), "transformers_version": "9.9"}))
    made = [written(tmp_path / f"out{i}", path, "hf") for i, path in enumerate((one, two))]
    assert made[0] == made[1]
    for name in ["tokenizer.json", "special_tokens_map.json", "vocab.txt", "1_Pooling/config.json"]:
        assert made[0][name] == (one / name).read_bytes()
    assert written(tmp_path / "again", tmp_path / "out0", "hf") == made[0]


def test_the_time_of_a_build_does_not_count(tmp_path):
    """SOURCE_DATE_EPOCH gave a .weights without created_at another time in each build."""
    if not (TEST_DATA / "tiny_bert").is_dir():
        pytest.skip("tiny_bert is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
    made = []
    for epoch in ["1", "1700000000"]:
        out = tmp_path / f"{epoch}.weights"
        weighbridge("convert", TEST_DATA / "tiny_bert", out, "--canonical", env={**os.environ, "SOURCE_DATE_EPOCH": epoch})
        made.append(out.read_bytes())
    assert made[0] == made[1]
