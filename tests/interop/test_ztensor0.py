# SPDX-License-Identifier: Apache-2.0
"""Tests zTensor 0.1 in both directions against the published package 0.1.4 in its own environment, and against an independent reader and
writer (tests/witness/ztensor0.py)."""
import base64
import json
import sys
import zlib

import pytest

from interop_tools import (NAME_OF, ROOT, content_digest, expect_equal, extracted, inspected, np, one_of_each, random_model, run_python,
                           weighbridge, zt_bytes)

sys.path.insert(0, str(ROOT / "tests/witness"))
import ztensor0 as witness  # noqa: E402

PACKAGE = "ztensor014"
NAMES = ["bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"]
ENCODINGS = [[], ["--encoding", "zstd"], ["--digest", "sha256"], ["--encoding", "zstd", "--digest", "crc32c"]]
# What ztensor0_sparse.rs writes with the published crate 0.1.0.
SPARSE = zlib.decompress(base64.b64decode("""
eNq1lD1Pg0Acxo8XNU1q4mRaB+PopEDVqmlC1eDo5GCMiT2PoxArVO6IL0OtTl38Bn4NZ/kwfgDj1MXUQw6CFU1rlIUA/3t+z/PchcN9Y09RFBX88pL5XUjfhHrOWHdUCT
0cb/Hi4/IbOLgHoC4zAcbuSjOgM1NrCOPlSMalIVPi0Jz0JW90vfDMcvgQgF7tudqJn/s34J9t6C+8dT7ZqT7XeiB4uOmPBoz7exSALEZ0iRFFILA8X6MUQL1YAq/Thryg
hqVicXIezOZ5T7xOZD/qbBPrOfypZHHvyXThGUbI8yzPsgimpbpJnGtcWsQmvWrjptXyIK1oVgteeQF1SBv6BLNxTGzYxncToo1d5JmO20Q+vPBMSOExdk0Hui4mxGo5lL
bwIMY02bqlE6eZoLp/iUJM2EY2RqckODtHPqpoaFO5XF1Zq1RVbZtbsCML14SaiYcw9jA3tgczUskBqhtGdXtX2x0k1RKfs8oCiGGNLGxtZQhGfA6T5FG6zbNgqIaibe2k
tRM/U3tZ6P6ljaj3tFwGypRbFnlgfWzSR7tc9jSStSpaNoPIj6ny476lyuLkqBms6IAE6ykn7qoQY3DguHT9m8NxW/jEGBzx38U7PHl6RQ==
"""))
needs_zstd = pytest.mark.skipif(witness.zstandard is None, reason="the Python package zstandard is missing")


def save(path, model):
    """The model as a .zt of the 1.x line, not made by our writer."""
    path.write_bytes(zt_bytes({name: (array.shape, "dense", {"data": array}, None) for name, array in model.items()}))
    return path


def without_nul(model):
    """The package receives the names as C strings."""
    return {name: array for name, array in model.items() if "\0" not in name}


def converted(tmp_path, model, *flags):
    path = tmp_path / "out.zt"
    weighbridge("convert", save(tmp_path / "in.zt", model), path, "--to", "zt0", *flags)
    weighbridge("verify", path)
    return path


def expect_package_reads(path, model):
    read, = json.loads(run_python(PACKAGE, "ztensor0_read.py", path))
    assert "error" not in read, read
    assert [t["name"] for t in read] == [t["name"] for t in json.loads(weighbridge("inspect", "--json", path))["tensors"]]
    assert {t["name"] for t in read} == set(model)
    for tensor in read:
        array = model[tensor["name"]]
        assert tensor["dtype"] == witness.LONG[NAME_OF[array.dtype]] and tuple(tensor["shape"]) == array.shape, tensor["name"]
        assert tensor["bytes"] == array.tobytes().hex() and tensor["layout"] == "dense", tensor["name"]


def expect_witness_reads(path, model):
    container = witness.parse(path.read_bytes())
    assert container.warnings == []
    assert {e.name for e in container.entries} == set(model)
    for entry in container.entries:
        array = model[entry.name]
        witness.verify(entry)
        assert entry.dtype == NAME_OF[array.dtype] and entry.shape == array.shape and entry.reason is None, entry.name
        assert witness.logical_bytes(entry) == array.tobytes(), entry.name


def witness_tensors(model, **options):
    return [witness.Tensor(name, NAME_OF[array.dtype], array.shape, array.tobytes(), **options) for name, array in model.items()]


# ------------------------------------------------------------------------------------------------------- ours, read there


@pytest.mark.parametrize("flags", ENCODINGS)
def test_every_dtype_opens_in_the_package(tmp_path, flags):
    model = {name: array for name, array in one_of_each(NAMES).items()}
    expect_package_reads(converted(tmp_path, model, *flags), model)


@pytest.mark.parametrize("seed", range(4))
def test_random_models_open_in_the_package(tmp_path, seed):
    model = without_nul(random_model(300 + seed, NAMES, tensors=[0, 1, 15, 300][seed]))
    expect_package_reads(converted(tmp_path, model, *ENCODINGS[seed]), model)


@pytest.mark.parametrize("flags", [f if "zstd" not in f else pytest.param(f, marks=needs_zstd) for f in ENCODINGS])
def test_every_dtype_opens_in_the_witness(tmp_path, flags):
    model = {**one_of_each(NAMES), **random_model(310, NAMES)}
    expect_witness_reads(converted(tmp_path, model, *flags), model)


def test_custom_fields_do_not_stop_the_package(tmp_path):
    attributes = {"z": 1, "a": [1, None, {"k": 0.1}], "half": 1.5, "single": float(np.float32(0.1)), "b": b"\0\xff", "big": 2**64 - 1,
                  "low": -2**63, "\u00df": "na\u00efve", "yes": True}
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    source, path = tmp_path / "in.zt", tmp_path / "out.zt"
    witness.write(source, witness_tensors({"w": array}, attributes=attributes), indefinite=True)
    weighbridge("convert", source, path, "--to", "zt0")
    expect_package_reads(path, {"w": array})
    entry, = witness.parse(path.read_bytes()).entries
    assert entry.attributes == attributes and list(entry.attributes) == sorted(attributes, key=lambda key: key.encode())
    # Definite lengths, the order of keys and the shortest floats: what the witness writes by reading Z6.
    assert path.read_bytes() == witness.to_bytes(witness_tensors({"w": array}, attributes=attributes))


# ------------------------------------------------------------------------------------------------------- theirs, read here


def test_files_of_the_package_read_here(tmp_path):
    model = {name: array for name, array in one_of_each(NAMES).items() if array.shape}  # its writer makes a scalar one-dimensional
    path, plan = tmp_path / "theirs.zt", tmp_path / "plan.json"
    plan.write_text(json.dumps([{"name": name, "dtype": array.dtype.name, "shape": list(array.shape), "bytes": array.tobytes().hex()}
                                for name, array in model.items()]))
    run_python(PACKAGE, "ztensor0_write.py", path, plan)
    weighbridge("verify", path)
    expect_equal(path, model)
    assert content_digest(path) == content_digest(save(tmp_path / "same.zt", model))


@pytest.mark.parametrize("indefinite", [False, True])
@pytest.mark.parametrize("options", [{}, {"endianness": "big"}, {"checksum": "crc32c"}, {"checksum": "sha256"}, {"layout": None},
                                     pytest.param({"encoding": "zstd", "endianness": "big"}, marks=needs_zstd)])
def test_files_of_the_witness_read_here(tmp_path, options, indefinite):
    model = {**one_of_each(NAMES), **random_model(320, NAMES)}
    path, back = tmp_path / "theirs.zt", tmp_path / "back.zt"
    witness.write(path, witness_tensors(model, **options), indefinite=indefinite, padding=b"\x7f")
    weighbridge("verify", path)
    expect_equal(path, model)
    weighbridge("convert", path, back, "--to", "zt0")
    if options.get("encoding") != "zstd" or witness.zstandard:
        expect_witness_reads(back, model)
    assert content_digest(path) == content_digest(back)


def sparse_parts(layout, shape, dtype, blob):
    """The parts that zTensor 1.1 would have, of a blob as its package reads it."""
    if layout == "sparsecoo":
        record = np.dtype([("place", "<u8", (len(shape),)), ("value", dtype)])
        entries = np.frombuffer(blob, record)
        return {"values": entries["value"].copy(), "coords": entries["place"].T.reshape(-1).copy()}
    bounds = np.frombuffer(blob, "<u8", shape[0] + 1)
    count, at = int(bounds[-1]), bounds.nbytes
    return {"values": np.frombuffer(blob, dtype, count, at + 8 * count), "indices": np.frombuffer(blob, "<u8", count, at), "indptr": bounds}


def test_sparse_tensors_of_the_package_have_the_values_that_it_reads(tmp_path):
    """Issue 16, A.7: COO and CSR, raw, big-endian and compressed. The wheel 0.1.4 reads the blobs of the crate 0.1.0."""
    path, twin, newer = tmp_path / "in.zt", tmp_path / "twin.zt", tmp_path / "newer.zt"
    path.write_bytes(SPARSE)
    read, = json.loads(run_python(PACKAGE, "ztensor0_read.py", path))
    assert len(read) == 8
    assert b"structure and digests of 7 of 20 parts" in weighbridge("verify", path)  # a blob's checksum covers each part in it
    objects = {}
    for tensor in read:
        name, shape, blob = tensor["name"], tuple(tensor["shape"]), bytes.fromhex(tensor["bytes"])
        parts = sparse_parts(tensor["layout"], shape, {"float32": "<f4", "float64": "<f8", "uint8": "u1"}[tensor["dtype"]], blob)
        for role, array in parts.items():
            assert extracted(path, name, "--part", role, "--raw") == array.tobytes(), (name, role)
        dense = np.zeros(shape, parts["values"].dtype)
        if "coords" in parts:
            dense[tuple(parts["coords"].reshape(len(shape), -1))] = parts["values"]
        else:
            dense[np.repeat(np.arange(shape[0]), np.diff(parts["indptr"].astype(int))), parts["indices"]] = parts["values"]
        assert extracted(path, name, "--dense", "--raw") == dense.tobytes(), name
        objects[name] = (shape, "sparse_coo" if "coords" in parts else "sparse_csr", parts, None)
    twin.write_bytes(zt_bytes(objects))
    assert content_digest(path) == content_digest(twin)
    weighbridge("convert", path, newer)
    assert content_digest(newer) == content_digest(twin)
    assert {name: tensor["layout"] for name, tensor in inspected(newer).items()} == {name: o[1] for name, o in objects.items()}


def test_sparse_blobs_go_over_as_they_are(tmp_path):
    path, back = tmp_path / "in.zt", tmp_path / "out.zt"
    path.write_bytes(SPARSE)
    weighbridge("convert", path, back, "--to", "zt0", "--encoding", "zstd", "--cast", "f16")
    ours, theirs = json.loads(run_python(PACKAGE, "ztensor0_read.py", back, path))
    assert ours == theirs
    assert content_digest(back) == content_digest(path)


@pytest.mark.parametrize("options", [{}, {"endianness": "big"}, {"checksum": "crc32c"}, pytest.param({"encoding": "zstd"}, marks=needs_zstd)])
def test_sparse_tensors_of_the_witness_read_here(tmp_path, options):
    coo = np.array([(2, 3, 9), (0, 1, 7)], np.dtype([("row", "<u8"), ("column", "<u8"), ("value", "<u2")])).tobytes()
    csr = np.array([0, 1, 1, 2, 3, 0], "<u8").tobytes() + np.array([5, 6], "<u2").tobytes()
    path = tmp_path / "in.zt"
    witness.write(path, [witness.Tensor("coo", "u16", (3, 4), coo, layout="sparsecoo", **options),
                         witness.Tensor("csr", "u16", (3, 4), csr, layout="sparsecsr", **options)])
    weighbridge("verify", path)
    for entry in witness.parse(path.read_bytes()).entries:
        witness.verify(entry)
        assert extracted(path, entry.name, "--dense", "--raw") == witness.densified(entry), entry.name


@pytest.mark.parametrize("to", ["zt", "zt0"])
def test_tensors_that_share_their_bytes_go_on_sharing_them(tmp_path, to):
    data = np.arange(8, dtype=np.int16)
    first = witness.to_bytes(witness_tensors({"a": data}))
    index = witness.decode(first[-8 - int.from_bytes(first[-8:], "little"):-8])
    source, path = tmp_path / "in.zt", tmp_path / "out.zt"
    source.write_bytes(witness.frame(first[:64 + data.nbytes], [index[0], {**index[0], "name": "b"}]))
    weighbridge("convert", source, path, "--to", "zt0")
    weighbridge("convert", path, tmp_path / ("again." + to), "--to", to, *([] if to == "zt0" else ["--allow", "alias"]))
    expect_equal(path, {"a": data, "b": data})
    assert path.read_bytes() == source.read_bytes()
    expect_package_reads(path, {"a": data, "b": data})


def broken(name, data):
    return pytest.param(data, id=name)


@pytest.mark.parametrize("data", [
    broken("size", witness.frame(b"ZTEN0001".ljust(68, b"\0"), [dict(name="w", offset=64, size=4, dtype="uint8", shape=[5], encoding="raw")])),
    broken("range", witness.frame(b"ZTEN0001", [dict(name="w", offset=64, size=4, dtype="uint8", shape=[4], encoding="raw")])),
    broken("names", witness.frame(b"ZTEN0001".ljust(64, b"\0"), [dict(name="w", offset=64, size=0, dtype="f", shape=[], encoding="raw")] * 2)),
    broken("map", witness.frame(b"ZTEN0001", {})),
    broken("trailing", witness.frame(b"ZTEN0001", witness.encode([]) + b"\xf6")),
    broken("deep", witness.frame(b"ZTEN0001", b"\x81" * 70 + b"\x80")),
])
def test_what_the_witness_refuses_is_refused_here(tmp_path, data):
    with pytest.raises(ValueError):
        witness.parse(data)
    path = tmp_path / "broken.zt"
    path.write_bytes(data)
    weighbridge("verify", path, status=1)
