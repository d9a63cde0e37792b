# SPDX-License-Identifier: Apache-2.0
"""Tests EMBD .weights against an independent implementation (tests/witness/embd.py): its files open here with the same tensors, metadata
and vocabulary, our files read there without a warning, and both agree on which changed files are valid."""
import json
import os
import pathlib
import struct
import sys

import pytest

from interop_tools import ROOT, all_extracted, inspected, np, weighbridge, zt_bytes

sys.path.insert(0, str(ROOT / "tests/witness"))
import embd  # noqa: E402

DEFAULT = embd.VOCAB_EMBEDDED | embd.TENSORS_ALIGNED | embd.CHECKSUM_ENABLED
SHAPES = [{}, {"hidden": 12, "layers": 3, "heads": 3, "vocab": 90, "positions": 7, "intermediate": 5}]
FORMS = [{}, {"flags": 0}, {"flags": embd.VOCAB_EMBEDDED | embd.CHECKSUM_ENABLED, "tensor_gap": 70}, {"section_gap": 63},
         {"flags": DEFAULT & ~embd.VOCAB_EMBEDDED}, {"tail_gap": 63, "gap_byte": 255}]


def findings(path, status):
    return json.loads(weighbridge("verify", "--json", path, status=status))["files"][0]["findings"]


def expect_same(path, metadata, tensors):
    """The file at `path`, seen by the command: these tensors and metadata."""
    listed, content = inspected(path), all_extracted(path)
    assert list(listed) == [name for name, _, _, _ in tensors]
    for name, dtype, shape, raw in tensors:
        assert (listed[name]["dtype"], tuple(listed[name]["shape"])) == (dtype, tuple(shape)), name
        assert content[name] == raw, name
    attributes = json.loads(weighbridge("inspect", "--json", path))["files"][0]["attributes"]
    assert {key: value for key, value in attributes.items() if not key.startswith("embd.")} == metadata


def source(path, tensors, metadata, extra=()):
    """A .zt file of these tensors whose root attributes are the metadata."""
    arrays = {name: (shape, "dense", {"data": np.frombuffer(raw, "<f4").reshape(shape)}, None) for name, _, shape, raw in tensors}
    for name, array in extra:
        arrays[name] = (array.shape, "dense", {"data": array}, None)
    path.write_bytes(zt_bytes(arrays, metadata))
    return path


# ------------------------------------------------------------------------------------------------------ theirs, read here


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_files_of_the_witness_open_here(tmp_path, shape, form):
    metadata, vocab, special, tensors = embd.minimal(**shape)
    tensors = tensors + embd.collision_pair()
    path = tmp_path / "model.weights"
    embd.write(path, metadata, vocab, special, tensors, **form)
    # What a gap of 63 bytes and the alignment behind it make together may be more than 63, which is remarked.
    assert [f["rule"] for f in findings(path, 0) if f["rule"] != "embd/gap" or "section_gap" not in form] == []
    expect_same(path, metadata, tensors)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_other_float_dtypes_are_a_warning_in_both(tmp_path, dtype):
    path = tmp_path / "model.weights"
    parts = embd.minimal(dtype=dtype)
    embd.write(path, *parts)
    assert {finding["rule"] for finding in findings(path, 0)} == {"embd/not-float32"}
    assert len(embd.read(path)["warnings"]) == len(findings(path, 0))
    expect_same(path, parts[0], parts[3])


@pytest.mark.parametrize("form", FORMS[:3])
def test_a_file_of_the_witness_is_written_again_byte_for_byte(tmp_path, form):
    form = {key: value for key, value in form.items() if not key.endswith("gap")}
    path, again = tmp_path / "model.weights", tmp_path / "again.weights"
    embd.write(path, *embd.minimal(), **form)
    weighbridge("convert", path, again)
    assert path.read_bytes() == again.read_bytes()


def test_both_agree_on_changed_files(tmp_path):
    """Bytes flipped in header, metadata, vocabulary, index and footer, with repaired checksums: both agree on validity."""
    data = embd.build(*embd.minimal(vocab=12, positions=2))
    end = struct.unpack_from("<I", data, 36)[0]
    generator = np.random.Generator(np.random.PCG64(11))
    places = [*range(64), *generator.integers(64, end, 500), *range(len(data) - 16, len(data))]
    files, sound = [], []
    for number, at in enumerate(places):
        changed = bytearray(data)
        changed[at] ^= 1 << generator.integers(8)
        changed = bytes(changed)
        start, size = struct.unpack_from("<IQ", changed, 36)
        if at < end and start + size <= len(changed):
            changed = embd.reseal(changed)
        files.append(tmp_path / f"{number}.weights")
        files[-1].write_bytes(changed)
        try:
            embd.parse(changed)
            sound.append(True)
        except ValueError:
            sound.append(False)
    assert True in sound and False in sound
    # A wrong magic or version is status 1 here too; with several files the worst status is returned.
    verdicts = json.loads(weighbridge("verify", "--json", *files, status=1))["files"]
    for place, verdict, expected in zip(places, verdicts, sound):
        assert verdict["valid"] == expected, (place, verdict["findings"])


# ------------------------------------------------------------------------------------------------------- ours, read there


@pytest.mark.parametrize("shape", SHAPES)
def test_what_we_write_reads_there_without_a_warning(tmp_path, shape):
    metadata, vocab, special, tensors = embd.minimal(**shape)
    metadata["hidden_act"] = "gelu_new"
    tensors = tensors + embd.collision_pair()
    path = tmp_path / "model.weights"
    weighbridge("convert", source(tmp_path / "in.zt", tensors, metadata), path)
    read = embd.read(path)
    assert read["warnings"] == [] and read["metadata"] == metadata and read["vocab"] is None
    for name, _, shape_of, raw in tensors:
        assert embd.find(read, name)["data"] == raw and embd.find(read, name)["shape"] == shape_of, name


def test_the_vocabulary_survives_zt_and_comes_back(tmp_path):
    parts = embd.minimal()
    path, between, again = tmp_path / "a.weights", tmp_path / "b.zt", tmp_path / "c.weights"
    embd.write(path, *parts)
    weighbridge("convert", path, between)
    weighbridge("convert", between, again)
    read = embd.read(again)
    assert read["vocab"] == parts[1] and read["special"] == parts[2]
    assert {tensor["name"]: tensor["data"] for tensor in read["tensors"]} == {name: raw for name, _, _, raw in parts[3]}


def test_numbers_come_from_the_tensors_and_writing_is_reproducible(tmp_path, monkeypatch):
    metadata, _, _, tensors = embd.minimal()
    positions = np.arange(16, dtype=np.int64).reshape(1, 16)
    given = source(tmp_path / "in.zt", tensors, {"num_attention_heads": "2"}, [("embeddings.position_ids", positions)])
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1737028800")
    paths = [tmp_path / "a.weights", tmp_path / "b.weights"]
    for threads, path in zip("14", paths):
        weighbridge("convert", given, path, "--threads", threads)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    read = embd.read(paths[0])
    assert read["metadata"] == {**metadata, "model_name": "model", "created_at": "2025-01-16T12:00:00Z"}
    assert len(read["tensors"]) == len(tensors)  # position_ids 0..15 are implied

    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    weighbridge("convert", given, tmp_path / "c.weights")
    assert embd.read(tmp_path / "c.weights")["metadata"]["created_at"] == "1970-01-01T00:00:00Z"


def test_position_ids_that_say_something_are_a_loss(tmp_path):
    _, _, _, tensors = embd.minimal()
    odd = np.arange(1, 17, dtype=np.int64).reshape(1, 16)
    given = source(tmp_path / "in.zt", tensors, {"num_attention_heads": "2"}, [("embeddings.position_ids", odd)])
    weighbridge("convert", given, tmp_path / "a.weights", status=1)
    weighbridge("convert", given, tmp_path / "a.weights", "--allow", "dtype")
    assert len(embd.read(tmp_path / "a.weights")["tensors"]) == len(tensors)


def test_without_heads_nothing_is_written(tmp_path):
    _, _, _, tensors = embd.minimal()
    path = tmp_path / "a.weights"
    weighbridge("convert", source(tmp_path / "in.zt", tensors, {}), path, status=1)
    assert not path.exists()


def test_the_real_minilm_makes_the_trip(tmp_path):
    """The published all-MiniLM-L6-v2, where the environment has it as a safetensors file."""
    pytest.importorskip("safetensors.numpy", reason="safetensors is missing")
    import safetensors.numpy
    found = os.environ.get("WEIGHBRIDGE_MINILM") or ROOT / "build/demo/minilm.safetensors"
    if not pathlib.Path(found).exists():
        pytest.skip("no all-MiniLM-L6-v2: set WEIGHBRIDGE_MINILM to its model.safetensors")
    tensors = safetensors.numpy.load_file(found)
    given, path = tmp_path / "in.safetensors", tmp_path / "minilm.weights"
    safetensors.numpy.save_file(tensors, given, {"num_attention_heads": "12"})
    weighbridge("convert", given, path)
    read = embd.read(path)
    assert read["warnings"] == [] and read["metadata"]["num_layers"] == "6"
    kept = {name: array for name, array in tensors.items() if name != "embeddings.position_ids"}
    assert {tensor["name"]: tensor["data"] for tensor in read["tensors"]} == {name: a.tobytes() for name, a in kept.items()}
