# SPDX-License-Identifier: Apache-2.0
"""Tests zTensor 0.1 in both directions beside the published package 0.1.4 in its own environment. What its writer never writes (big-endian
elements, fields of the user, definite lengths) is laid out here over cbor2, and the package reads it as we do."""
import base64
import hashlib
import json
import struct
import zlib

import pytest

from interop_tools import (cbor2, content_digest, expect_equal, extracted, inspected, np, one_of_each, random_model, run_python,
                           weighbridge, zt_bytes)

zstandard = pytest.importorskip("zstandard", reason="zstandard is missing: tools/python-environments.sh makes the environment")

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


def package_reads(*paths):
    """What the package reads from each file: a list of its tensors, or a dict with the error."""
    return json.loads(run_python(PACKAGE, "ztensor0_read.py", *paths))


def expect_package_reads(path, model):
    read, = package_reads(path)
    assert "error" not in read, read
    assert [t["name"] for t in read] == [t["name"] for t in json.loads(weighbridge("inspect", "--json", path))["files"][0]["tensors"]]
    assert {t["name"] for t in read} == set(model)
    for tensor in read:
        array = model[tensor["name"]]
        assert tensor["dtype"] == array.dtype.name and tuple(tensor["shape"]) == array.shape, tensor["name"]
        assert tensor["bytes"] == array.tobytes().hex() and tensor["layout"] == "dense", tensor["name"]


# ---- files that the package's writer does not write ----


def stored(name, array, encoding="raw", endianness=None, digest=None, layout="dense", attributes=None, shape=None):
    """(fields of the index in the order of reading Z6, stored bytes). A sparse blob is an array of its dtype's bits and has its shape apart."""
    data = array.tobytes()
    if encoding == "zstd":
        data = zstandard.ZstdCompressor(write_content_size=False).compress(data)
    elif endianness == "big":
        data = np.frombuffer(data, f"u{array.itemsize}").byteswap().tobytes()
    fields = {"name": name, "offset": None, "size": len(data), "dtype": array.dtype.name, "layout": layout,
              "shape": list(array.shape if shape is None else shape), "encoding": encoding, "data_endianness": endianness,
              "checksum": digest and "sha256:" + hashlib.sha256(data).hexdigest()}
    return {key: value for key, value in fields.items() if value is not None or key == "offset"} | (attributes or {}), data


def framed(payloads, index):
    return payloads + index + struct.pack("<Q", len(index))


def zt0_bytes(tensors, indefinite=False, padding=b"\0"):
    """A file of these tensors, whose index has maps of definite or indefinite length, and floats as short as their values allow."""
    out, index = b"ZTEN0001", []
    for fields, data in tensors:
        out += padding * (-len(out) % 64)
        pairs = b"".join(cbor2.dumps(item, canonical=True) for pair in {**fields, "offset": len(out)}.items() for item in pair)
        index.append(b"\xbf" + pairs + b"\xff" if indefinite else bytes([0xa0 | len(fields)]) + pairs)
        out += data
    return framed(out, b"\x9f" + b"".join(index) + b"\xff" if indefinite or len(index) > 23 else
                  bytes([0x80 | len(index)]) + b"".join(index))


def index_of(path):
    data = path.read_bytes()
    return cbor2.loads(data[-8 - int.from_bytes(data[-8:], "little"):-8])


# ------------------------------------------------------------------------------------------------------- ours, read there


@pytest.mark.parametrize("flags", ENCODINGS)
def test_every_dtype_opens_in_the_package(tmp_path, flags):
    model = {name: array for name, array in one_of_each(NAMES).items()}
    expect_package_reads(converted(tmp_path, model, *flags), model)


@pytest.mark.parametrize("seed", range(4))
def test_random_models_open_in_the_package(tmp_path, seed):
    model = without_nul(random_model(300 + seed, NAMES, tensors=[0, 1, 15, 300][seed]))
    expect_package_reads(converted(tmp_path, model, *ENCODINGS[seed]), model)


def test_names_with_nul_which_the_package_cannot_show_are_stored_as_they_are(tmp_path):
    model = {"nul\0in": np.arange(3, dtype=np.float32), "\0": np.zeros((), np.int8)}
    path = converted(tmp_path, model)
    assert [fields["name"] for fields in index_of(path)] == list(inspected(path)) and set(inspected(path)) == set(model)


@pytest.mark.parametrize("encoding", ["raw", "zstd"])
@pytest.mark.parametrize("algorithm", ["sha256", "crc32c"])
def test_checksums_are_of_the_stored_bytes(tmp_path, encoding, algorithm):
    """The package compares CRC-32C; it shows SHA-256 and does not compare it."""
    model = one_of_each(["f32", "u8"])
    path = converted(tmp_path, model, "--encoding", encoding, "--digest", algorithm)
    read, = package_reads(path)
    assert all(tensor["checksum"].startswith(algorithm + ":") for tensor in read)
    data = path.read_bytes()
    for fields in index_of(path):
        raw = data[fields["offset"]:fields["offset"] + fields["size"]]
        if algorithm == "sha256":
            assert fields["checksum"] == "sha256:" + hashlib.sha256(raw).hexdigest(), fields["name"]
    at = next(fields for fields in index_of(path) if fields["name"] == "f32.3x5")["offset"] + 20
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1:])
    weighbridge("verify", path, status=1)
    if algorithm == "crc32c":
        assert "Checksum mismatch" in package_reads(path)[0]["error"]


def test_custom_fields_do_not_stop_the_package(tmp_path):
    attributes = {"z": 1, "a": [1, None, {"k": 0.1}], "half": 1.5, "single": float(np.float32(0.1)), "b": b"\0\xff", "big": 2**64 - 1,
                  "low": -2**63, "\u00df": "na\u00efve", "yes": True}
    in_order = {key: attributes[key] for key in sorted(attributes, key=str.encode)}
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    source, path = tmp_path / "in.zt", tmp_path / "out.zt"
    source.write_bytes(zt0_bytes([stored("w", array, attributes=attributes)], indefinite=True))
    weighbridge("convert", source, path, "--to", "zt0")
    for file in (source, path):
        expect_package_reads(file, {"w": array})
    # Definite lengths, the order of keys and the shortest floats (reading Z6).
    assert path.read_bytes() == zt0_bytes([stored("w", array, attributes=in_order)])


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
@pytest.mark.parametrize("options", [{}, {"endianness": "big"}, {"digest": True}, {"encoding": "zstd", "endianness": "big"}], ids=str)
def test_what_the_package_reads_without_having_written_it_reads_here(tmp_path, options, indefinite):
    model = without_nul({**one_of_each(NAMES), **random_model(320, NAMES)})
    path, back = tmp_path / "theirs.zt", tmp_path / "back.zt"
    path.write_bytes(zt0_bytes([stored(name, array, **options) for name, array in model.items()], indefinite, padding=b"\x7f"))
    weighbridge("verify", path)
    expect_equal(path, model)
    expect_package_reads(path, model)
    weighbridge("convert", path, back, "--to", "zt0")
    expect_package_reads(back, model)
    assert content_digest(path) == content_digest(back)


def test_a_file_without_the_field_layout_which_only_the_specification_has_reads_here(tmp_path):
    model = one_of_each(NAMES)
    path, again = tmp_path / "in.zt", tmp_path / "out.zt"
    path.write_bytes(zt0_bytes([stored(name, array, layout=None) for name, array in model.items()]))
    expect_equal(path, model)
    assert "missing field `layout`" in package_reads(path)[0]["error"]
    weighbridge("convert", path, again, "--to", "zt0")
    expect_package_reads(again, model)


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
    """COO and CSR, raw, big-endian and compressed. The wheel 0.1.4 reads the blobs of the crate 0.1.0."""
    path, twin, newer = tmp_path / "in.zt", tmp_path / "twin.zt", tmp_path / "newer.zt"
    path.write_bytes(SPARSE)
    read, = package_reads(path)
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
    ours, theirs = package_reads(back, path)
    assert ours == theirs
    assert content_digest(back) == content_digest(path)


@pytest.mark.parametrize("options", [{}, {"endianness": "big"}, {"digest": True}, {"encoding": "zstd"}], ids=str)
def test_entries_out_of_order_have_the_values_that_their_places_say(tmp_path, options):
    coo = np.frombuffer(np.array([(2, 3, 9), (0, 1, 7)], np.dtype([("row", "<u8"), ("column", "<u8"), ("value", "<u2")])).tobytes(), "<u2")
    csr = np.frombuffer(np.array([0, 1, 1, 2, 3, 0], "<u8").tobytes() + np.array([5, 6], "<u2").tobytes(), "<u2")
    path = tmp_path / "in.zt"
    path.write_bytes(zt0_bytes([stored("coo", coo, layout="sparsecoo", shape=(3, 4), **options),
                                stored("csr", csr, layout="sparsecsr", shape=(3, 4), **options)]))
    weighbridge("verify", path)
    dense = {"coo": np.zeros((3, 4), "<u2"), "csr": np.zeros((3, 4), "<u2")}
    dense["coo"][[2, 0], [3, 1]], dense["csr"][[0, 2], [3, 0]] = [9, 7], [5, 6]
    for name, array in dense.items():
        assert extracted(path, name, "--dense", "--raw") == array.tobytes(), name


@pytest.mark.parametrize("to", ["zt", "zt0"])
def test_tensors_that_share_their_bytes_go_on_sharing_them(tmp_path, to):
    data = np.arange(8, dtype=np.int16)
    source, path = tmp_path / "in.zt", tmp_path / "out.zt"
    source.write_bytes(zt0_bytes([stored("a", data)]))
    only, = index_of(source)
    source.write_bytes(framed(source.read_bytes()[:64 + data.nbytes], cbor2.dumps([only, {**only, "name": "b"}])))
    weighbridge("convert", source, path, "--to", "zt0")
    weighbridge("convert", path, tmp_path / ("again." + to), "--to", to, *([] if to == "zt0" else ["--allow", "alias"]))
    expect_equal(path, {"a": data, "b": data})
    assert path.read_bytes() == source.read_bytes()
    expect_package_reads(path, {"a": data, "b": data})


FIELDS = {"name": "w", "offset": 64, "size": 4, "dtype": "uint8", "layout": "dense", "shape": [4], "encoding": "raw"}
REFUSED = {
    "size": framed(b"ZTEN0001".ljust(68, b"\0"), cbor2.dumps([{**FIELDS, "shape": [5]}])),
    "map": framed(b"ZTEN0001", cbor2.dumps({})),
    "trailing": framed(b"ZTEN0001", cbor2.dumps([]) + b"\xf6"),
    "deep": framed(b"ZTEN0001", b"\x81" * 70 + b"\x80"),
    "no dtype": framed(b"ZTEN0001".ljust(68, b"\0"), cbor2.dumps([{key: value for key, value in FIELDS.items() if key != "dtype"}])),
    "crc32c": framed(b"ZTEN0001".ljust(68, b"\0"), cbor2.dumps([{**FIELDS, "checksum": "crc32c:0x00000000"}])),
}


def test_what_the_package_refuses_is_refused_here(tmp_path):
    paths = [tmp_path / f"{name}.zt" for name in REFUSED]
    for path, data in zip(paths, REFUSED.values()):
        path.write_bytes(data)
        weighbridge("verify", path, status=1)
    assert all("error" in read for read in package_reads(*paths))


@pytest.mark.parametrize("index", [[FIELDS], [{**FIELDS, "size": 0, "shape": [0]}] * 2], ids=["past the index", "a name twice"])
def test_what_the_package_reads_without_a_check_is_refused_here(tmp_path, index):
    """It takes bytes of the index for the tensor's, and two tensors of one name."""
    path = tmp_path / "broken.zt"
    path.write_bytes(framed(b"ZTEN0001".ljust(64, b"\0"), cbor2.dumps(index)))
    assert len(package_reads(path)[0]) == len(index)
    weighbridge("verify", path, status=1)
