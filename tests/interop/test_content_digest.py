# SPDX-License-Identifier: Apache-2.0
"""Tests `hash` against content_digest.py, an independent implementation of src/core/payload/README.md, on files of other writers."""
import pytest

import content_digest as referee
from test_slm import KINDS, slm
from interop_tools import NAME_OF, SAFETENSORS_NAMES, ZT_NAMES, np, one_of_each, random_array, random_model, weighbridge, zt_bytes
from test_ztensor import composed

INDEX_DTYPES = ["u64", "i32", "u16", "i8"]


def of_arrays(model):
    return {name: referee.dense(NAME_OF[array.dtype], array.shape, array.tobytes()) for name, array in model.items()}


def of_objects(objects):
    out = {}
    for name, (shape, layout, parts, attributes) in objects.items():
        type_name = "quantized_group" if layout == "quantized_group" else NAME_OF[next(iter(parts.values())).dtype]
        out[name] = referee.Tensor(layout, type_name, shape,
                                   [referee.Part(role, NAME_OF[a.dtype], a.size, a.tobytes()) for role, a in parts.items()],
                                   attributes or {})
    return out


def expect_digests(path, tensors):
    for version in 2, 1:
        with referee.version(version):
            named, nameless = (referee.as_text(digest(tensors)) for digest in (referee.model_digest, referee.nameless_digest))
        of = ["hash", "--digest-version", str(version)]
        assert weighbridge(*of, path).decode() == f"{named}  {path}\n"
        assert weighbridge(*of, "--no-names", path).decode() == f"{nameless}  {path}\n"


def large():
    """Parts of one leaf exactly, of one byte more, and of many leaves."""
    generator = np.random.Generator(np.random.PCG64(71))
    return {f"{name}.{count}": random_array(generator, name, (count,))
            for name, count in [("u8", 65536), ("u8", 65537), ("bf16", 32769), ("f32", 400003), ("bool", 200000)]}


@pytest.mark.parametrize("model", [{}, one_of_each(SAFETENSORS_NAMES), large(), *(random_model(s, SAFETENSORS_NAMES) for s in range(80, 84))],
                         ids=["empty", "every dtype", "large", "80", "81", "82", "83"])
def test_safetensors(tmp_path, model):
    save = pytest.importorskip("safetensors.numpy", reason="safetensors is missing").save
    path = tmp_path / "m.safetensors"
    path.write_bytes(save(model))
    expect_digests(path, of_arrays(model))


@pytest.mark.parametrize("model", [one_of_each(ZT_NAMES), large()], ids=["every dtype", "large"])
def test_zt(tmp_path, model):
    path, packed = tmp_path / "m.zt", tmp_path / "packed.zt"
    path.write_bytes(zt_bytes({name: (array.shape, "dense", {"data": array}, None) for name, array in model.items()}))
    expect_digests(path, of_arrays(model))
    for flags in (["--encoding", "zstd", "--threads", "1"], ["--zt-version", "1.2"]):
        weighbridge("convert", "--force", path, packed, *flags)
        expect_digests(packed, of_arrays(model))


@pytest.mark.parametrize("index_dtype", INDEX_DTYPES)
def test_sparse_and_quantized(tmp_path, index_dtype):
    """Index parts count as u64: all four have one digest."""
    objects = composed(91, index_dtype)
    path, packed = tmp_path / "m.zt", tmp_path / "packed.zt"
    path.write_bytes(zt_bytes(objects))
    expect_digests(path, of_objects(objects))
    weighbridge("convert", path, packed, "--encoding", "zstd", "--digest", "sha256")
    expect_digests(packed, of_objects(objects))
    assert referee.model_digest(of_objects(objects)) == referee.model_digest(of_objects(composed(91, "u64")))


def of_entries(entries):
    """An .slm's directory, as weighbridge's model of it."""
    out = {}
    for entry in entries:
        kind, shape = entry["dtype"], tuple(entry["dims"])
        if kind == "f32":
            out[entry["name"]] = referee.dense("f32", shape, entry["payload"])
            continue
        layout, codes = {"q8_0": ("quantized_row", "i8"), "q4_0": ("quantized_block", "u8")}[kind]
        out[entry["name"]] = referee.Tensor(layout, kind, shape, [
            referee.Part("data", codes, len(entry["payload"]), entry["payload"]),
            referee.Part("scales", "f32", len(entry["scales"]) // 4, entry["scales"])], {"type": kind, "block_size": entry["block_size"]})
    return out


def test_block_types_of_slm(tmp_path):
    path, packed = tmp_path / "m.slm", tmp_path / "m.zt"
    fixture = slm.fixture("tiny")
    entries = [slm.pack(name, array, *slm.target(array.shape, KINDS[i % 3])) for i, (name, array) in enumerate(fixture["tensors"])]
    assert {entry["dtype"] for entry in entries} == set(KINDS)
    slm.write(path, fixture["header"], fixture["tokenizer"], entries)
    expect_digests(path, of_entries(entries))
    weighbridge("convert", path, packed, "--encoding", "zstd")
    expect_digests(packed, of_entries(entries))
