# SPDX-License-Identifier: Apache-2.0
"""Self tests of the witness ztensor0.py and its CBOR: round trips, every rule broken once, and the real files of the test data.
Does not test the library; the interop tests compare it with the witnesses."""

import hashlib
import itertools
import random
import struct

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing: tools/python-environments.sh makes the environment")

import ztensor0
from real_files import TEST_DATA, manifest

needs_zstd = pytest.mark.skipif(ztensor0.zstandard is None, reason="the Python package zstandard is missing")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


# ---- CBOR ----

# Values of RFC 8949, appendix A.
CBOR_KNOWN = [
    (0, "00"),
    (23, "17"),
    (24, "1818"),
    (255, "18ff"),
    (256, "190100"),
    (1000000, "1a000f4240"),
    (1 << 32, "1b0000000100000000"),
    ((1 << 64) - 1, "1bffffffffffffffff"),
    (-1, "20"),
    (-1000, "3903e7"),
    (-(1 << 64), "3bffffffffffffffff"),
    (0.0, "f90000"),
    (1.1, "fb3ff199999999999a"),
    (1.5, "f93e00"),
    (65504.0, "f97bff"),
    (100000.0, "fa47c35000"),
    (3.4028234663852886e38, "fa7f7fffff"),
    (1.0e300, "fb7e37e43c8800759c"),
    (5.960464477539063e-8, "f90001"),
    (0.00006103515625, "f90400"),
    (-4.1, "fbc010666666666666"),
    (float("inf"), "f97c00"),
    (float("-inf"), "f9fc00"),
    (False, "f4"),
    (True, "f5"),
    (None, "f6"),
    (ztensor0.Simple(23), "f7"),
    (ztensor0.Simple(16), "f0"),
    (ztensor0.Simple(255), "f8ff"),
    (ztensor0.Tag(1, 1363896240), "c11a514b67b0"),
    (b"", "40"),
    (b"\1\2\3\4", "4401020304"),
    ("", "60"),
    ("\u00fc", "62c3bc"),
    ("\U00010151", "64f0908591"),
    ([], "80"),
    ([1, [2, 3], [4, 5]], "8301820203820405"),
    ({}, "a0"),
    ({"a": 1, "b": [2, 3]}, "a26161016162820203"),
    (ztensor0.Pairs(((1, 2), (3, 4))), "a201020304"),
    ([*range(1, 26)], "98190102030405060708090a0b0c0d0e0f101112131415161718181819"),
]
CBOR_INDEFINITE = [
    ("5f42010243030405ff", b"\1\2\3\4\5"),
    ("7f657374726561646d696e67ff", "streaming"),
    ("9fff", []),
    ("5fff", b""),
    ("7fff", ""),
    ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
    ("bf61610161629f0203ffff", {"a": 1, "b": [2, 3]}),
    ("1800", 0),
    ("1b0000000000000001", 1),
    ("fb3ff8000000000000", 1.5),
    ("bfff", {}),
]
CBOR_BAD = [
    "",
    "18",
    "19ff",
    "1c",
    "1f",
    "3e",
    "3f",
    "5b00000000ffffffff",
    "41",
    "61",
    "61ff",
    "7f61c361bcff",
    "5f6161ff",
    "5f5f4101ffff",
    "5f41",
    "81",
    "82",
    "9a7fffffff",
    "9bffffffffffffffff00",
    "a1",
    "a101",
    "bbffffffffffffffff",
    "bf01ff",
    "bf",
    "9f",
    "ff",
    "81ff",
    "a1ff",
    "c0",
    "dc",
    "df",
    "f8",
    "f800",
    "f81f",
    "fc",
    "fd",
    "fe",
    "f97e",
    "0000",
    "a201020102",
    "a2616101616102",
    "a261610278016101",
    "a2f93c0001fa3f80000002",
    "bf616101616102ff",
    "a27f6161ff01616102",
    "a20101180102",
]


def test_cbor():
    for value, encoded in CBOR_KNOWN:
        assert ztensor0.encode(value).hex() == encoded
        decoded = ztensor0.decode(bytes.fromhex(encoded))
        assert decoded == value and type(decoded) is type(value)
    for encoded, value in CBOR_INDEFINITE:
        assert ztensor0.decode(bytes.fromhex(encoded)) == value
    assert ztensor0.encode(float("nan")).hex() == "f97e00"
    for encoded in CBOR_BAD:
        with pytest.raises(ValueError, match=r"\.$"):
            ztensor0.decode(bytes.fromhex(encoded))


def test_cbor_nesting():
    for opening, closing in ((b"\x81", b""), (b"\x9f", b"\xff"), (b"\xa1\x00", b""), (b"\xc6", b"")):
        ztensor0.decode(opening * 64 + b"\x00" + closing * 64)
        for depth in (65, 5000):
            with pytest.raises(ValueError, match="nesting"):
                ztensor0.decode(opening * depth + b"\x00" + closing * depth)


def test_cbor_against_cbor2():
    cbor2 = pytest.importorskip("cbor2", reason="cbor2 is missing")
    draw = random.Random(5)

    def value(depth):
        kind = draw.randrange(9 if depth < 4 else 7)
        return [
            lambda: draw.getrandbits(draw.randrange(65)),
            lambda: -1 - draw.getrandbits(draw.randrange(65)),
            lambda: draw.choice([True, False, None]),
            lambda: draw.uniform(-9, 9),
            lambda: struct.unpack("<f", draw.randbytes(3) + b"\x41")[0],
            lambda: draw.randbytes(draw.randrange(40)),
            lambda: "".join(chr(draw.choice([65, 233, 0x5C42, 0x1F9EE])) for _ in range(draw.randrange(9))),
            lambda: [value(depth + 1) for _ in range(draw.randrange(5))],
            lambda: {str(i): value(depth + 1) for i in range(draw.randrange(5))},
        ][kind]()

    for _ in range(300):
        sample = value(0)
        assert cbor2.loads(ztensor0.encode(sample)) == sample == ztensor0.decode(cbor2.dumps(sample))
        assert ztensor0.decode(ztensor0.encode(sample)) == sample


# ---- zTensor 0.1 ----

RANDOM = np.random.Generator(np.random.PCG64(7))


def test_crc32c():
    # RFC 3720, B.4, and the usual check value.
    assert [ztensor0.crc32c(data) for data in (b"", b"123456789", bytes(32), b"\xff" * 32, bytes(range(32)))] == [
        0,
        0xE3069283,
        0x8A9136AA,
        0x62A8AB43,
        0x46DD794E,
    ]


def zt_arrays():
    shapes = [(), (0,), (7,), (2, 3), (3, 0, 2), (2, 1, 3, 2)]
    for (short, kind), shape in itertools.product(ztensor0.DTYPES.values(), shapes):
        raw = RANDOM.integers(0, 2 if short == "bool" else 256, (*shape, np.dtype(kind).itemsize), np.uint8)
        yield f"{short}.{len(shape)}.{shape}", short, raw.view(kind).reshape(shape)


ATTRIBUTES = {
    "z": 1.5,
    "a": [1, -2, None, True, {"k": b"\0\xff"}],
    "\u00e9": {"deep": [[]]},
    "undefined": ztensor0.Simple(23),
    "tagged": ztensor0.Tag(6, "x"),
    "keys": ztensor0.Pairs(((1, "one"), (True, 2))),
    "single": 0.10000000149011612,
}


@pytest.mark.parametrize("encoding", ["raw", pytest.param("zstd", marks=needs_zstd)])
@pytest.mark.parametrize("endianness", [None, "little", "big"])
@pytest.mark.parametrize("checksum", [None, "crc32c", "sha256"])
def test_zt_round_trips(tmp_path, encoding, endianness, checksum):
    arrays = list(zt_arrays())
    for layout, indefinite in itertools.product(("dense", None), (False, True)):
        tensors = [
            ztensor0.tensor(
                name,
                a,
                short,
                encoding=encoding,
                endianness=endianness,
                checksum=checksum,
                layout=layout,
                attributes=ATTRIBUTES if a.ndim == 1 else {},
            )
            for name, short, a in arrays
        ]
        path = tmp_path / "a.zt"
        ztensor0.write(path, tensors, indefinite=indefinite, padding=b"\xa5", content_size=not indefinite)
        found = ztensor0.read(path)
        assert ztensor0.parse(path.read_bytes()).warnings == []
        for entry, (name, short, a) in zip(found.values(), arrays):
            assert (entry.name, entry.dtype, entry.shape, entry.layout, entry.reason) == (
                name,
                short,
                a.shape,
                "dense",
                None,
            )
            ztensor0.verify(entry)
            assert ztensor0.logical_bytes(entry) == a.tobytes() and ztensor0.array(entry).shape == a.shape
            assert entry.attributes == (ATTRIBUTES if a.ndim == 1 else {})


def test_zt_known_bytes():
    data = ztensor0.to_bytes(
        [ztensor0.Tensor("w", "u8", (2,), b"\1\2", checksum="crc32c", attributes={"b": 1, "a": 2})]
    )
    index = (
        b"\x81\xaa"
        b"dnamea"
        b"w"
        b"foffset\x18\x40"
        b"dsize\x02"
        b"edtypeeuint8"
        b"flayoutedense"
        b"eshape\x81\x02"
        b"hencodingcraw"
        b"hchecksum"
        b"\x71" + ztensor0.checksum_of("crc32c", b"\1\2").encode() + b"aa\x02"
        b"ab\x01"
    )
    assert data == b"ZTEN0001" + bytes(56) + b"\1\2" + index + struct.pack("<Q", len(index))
    assert ztensor0.to_bytes([]) == b"ZTEN0001\x80" + struct.pack("<Q", 1)


def fields_of(**changes):
    """The fields of one valid tensor of eight bytes; None takes a field away."""
    fields = {
        "name": "t",
        "offset": 64,
        "size": 8,
        "dtype": "float32",
        "layout": "dense",
        "shape": [2],
        "encoding": "raw",
        **changes,
    }
    return {key: value for key, value in fields.items() if value is not REMOVED}


REMOVED = object()


def one(*maps, payload=bytes(56 + 8)):
    return ztensor0.frame(ztensor0.MAGIC + payload, list(maps))


ZT_BROKEN = {
    **{
        f"no {key}": one(fields_of(**{key: REMOVED}))
        for key in ("name", "offset", "size", "dtype", "shape", "encoding")
    },
    **{
        f"{key} {value!r}": one(fields_of(**{key: value}))
        for key, value in [
            ("name", 1),
            ("name", b"t"),
            ("name", ztensor0.Tag(6, "t")),
            ("offset", -64),
            ("offset", "64"),
            ("offset", 64.0),
            ("offset", True),
            ("offset", 0),
            ("offset", 32),
            ("offset", 65),
            ("offset", 128),
            ("offset", (1 << 64) - 64),
            ("size", 9),
            ("size", 4),
            ("size", -8),
            ("size", None),
            ("size", (1 << 64) - 1),
            ("dtype", 5),
            ("dtype", None),
            ("shape", 2),
            ("shape", [3]),
            ("shape", []),
            ("shape", [-2]),
            ("shape", [2.0]),
            ("shape", ["2"]),
            ("shape", [1 << 32, 1 << 32]),
            ("shape", [1 << 63, 2, 1]),
            ("shape", [0]),
            ("encoding", 0),
            ("encoding", None),
            ("data_endianness", "middle"),
            ("data_endianness", 1),
            ("data_endianness", None),
            ("checksum", 5),
            ("checksum", None),
            ("checksum", "crc32c:12345678"),
            ("checksum", "crc32c:0x1234567"),
            ("checksum", "crc32c:0x1234567g"),
            ("checksum", "sha256:00"),
            ("checksum", "sha256:" + "0" * 63 + "x"),
            ("checksum", "crc32c:0x123456789"),
            ("checksum", "crc32c:"),
        ]
    },
    "product and unknown dtype": one(fields_of(dtype="float8", shape=[1 << 40, 1 << 40])),
    "size overflows": one(fields_of(dtype="float64", shape=[1 << 62])),
    "names": one(fields_of(), fields_of()),
    "element number": one(5),
    "element array": one([]),
    "key number": one(ztensor0.Pairs(((1, 2),))),
    "root map": ztensor0.frame(ztensor0.MAGIC, {}),
    "root number": ztensor0.frame(ztensor0.MAGIC, 0),
    "root tag": ztensor0.frame(ztensor0.MAGIC, ztensor0.Tag(55799, [])),
    "two items": ztensor0.frame(ztensor0.MAGIC, b"\x80\x80"),
    "empty index": ztensor0.MAGIC + b"\x80" + bytes(8),
    "index size": ztensor0.MAGIC + b"\x80" + struct.pack("<Q", 2),
    "index size huge": ztensor0.MAGIC + b"\x80" + b"\xff" * 8,
    "magic": ztensor0.to_bytes([]).replace(b"0001", b"0002"),
    "16 bytes": ztensor0.MAGIC + bytes(8),
    "none": b"",
    "repeated key": ztensor0.frame(ztensor0.MAGIC, b"\x81\xa2\x61a\x01\x61a\x02"),
    "name is no UTF-8": ztensor0.frame(ztensor0.MAGIC, b"\x81\xa1\x64name\x61\xff"),
}


@pytest.mark.parametrize("name", ZT_BROKEN)
def test_zt_refuses(name):
    assert len(ztensor0.parse(one(fields_of())).entries) == 1
    with pytest.raises(ValueError, match=r"\.$"):
        ztensor0.parse(ZT_BROKEN[name])


def test_zt_refuses_every_cut():
    data = one(fields_of(), fields_of(name="u"))
    for size in range(len(data)):
        with pytest.raises(ValueError):
            ztensor0.parse(data[:size])


def test_zt_accepts():
    """What looks wrong and is not."""
    for fields in (
        fields_of(shape=[0, 1 << 40, 1 << 40], size=0),
        fields_of(size=0, shape=[0], offset=64),
        fields_of(data_endianness="big"),
        fields_of(checksum="crc32c:0xAbCdEf01"),
        fields_of(checksum="sha256:" + "aB" * 32),
        fields_of(layout=REMOVED),
        fields_of(name=""),
        fields_of(layout="blocked"),
        fields_of(layout=7),
    ):
        container = ztensor0.parse(one(fields))
        assert container.warnings == [] and container.entries[0].reason is None
    end = ztensor0.parse(one(fields_of(offset=128, size=0, shape=[0]), payload=bytes(120)))
    assert end.entries[0].offset == 128
    assert ztensor0.parse(one(fields_of(layout="blocked"))).entries[0].attributes == {"layout": "blocked"}
    for checksum in ("md5:00", "CRC32C:0x00000000", "crc32c"):
        assert len(ztensor0.parse(one(fields_of(checksum=checksum))).warnings) == 1
    overlap = [fields_of(), fields_of(name="u", shape=[1], size=4)]
    assert len(ztensor0.parse(one(*overlap)).warnings) == 1
    assert ztensor0.parse(one(fields_of(), fields_of(name="u"))).warnings == []
    for fields in (
        fields_of(dtype="float8"),
        fields_of(dtype="f32"),
        fields_of(encoding="lz4"),
        fields_of(layout="sparsecoo", dtype="float8", shape=[9, 9]),
    ):
        entry = ztensor0.parse(one(fields)).entries[0]
        assert entry.reason and len(entry.stored) == 8
        with pytest.raises(ValueError):
            ztensor0.logical_bytes(entry)


def test_zt_bools_and_checksums():
    entry = ztensor0.parse(one(fields_of(dtype="bool", shape=[8]), payload=bytes(56) + b"\0\1\2\xff\0\0\0\7")).entries[
        0
    ]
    ztensor0.verify(entry)
    assert ztensor0.logical_bytes(entry) == b"\0\1\1\1\0\0\0\1"
    for algorithm in ("crc32c", "sha256"):
        tensor = ztensor0.Tensor("t", "u8", (8,), b"weighing", checksum=algorithm)
        data = bytearray(ztensor0.to_bytes([tensor]))
        ztensor0.verify(ztensor0.parse(bytes(data)).entries[0])
        data[64] ^= 1
        with pytest.raises(ValueError, match="checksum"):
            ztensor0.verify(ztensor0.parse(bytes(data)).entries[0])


def test_zt_refuses_sparse_blobs_that_do_not_fit():
    place = struct.pack("<Q", 0)
    for layout, shape, blob in (
        ("sparsecoo", [], bytes(4)),
        ("sparsecoo", [9], bytes(13)),
        ("sparsecsr", [9], bytes(20)),
        ("sparsecsr", [1, 9], bytes(8)),
        ("sparsecsr", [1, 9], bytes(17)),
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            ztensor0.parse(one(fields_of(layout=layout, shape=shape, size=len(blob)), payload=bytes(56) + blob))
    for layout, shape, blob in (
        ("sparsecoo", [9], struct.pack("<Q", 9) + bytes(4)),
        ("sparsecsr", [1, 9], place + place + place + bytes(4)),
        ("sparsecsr", [1, 9], place + struct.pack("<QQ", 1, 9) + bytes(4)),
    ):
        entry = ztensor0.parse(one(fields_of(layout=layout, shape=shape, size=len(blob)), payload=bytes(56) + blob)).entries[0]
        with pytest.raises(ValueError, match=r"\.$"):
            ztensor0.verify(entry)


def skippable(data):
    return b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + data


@needs_zstd
@pytest.mark.parametrize("content_size", [False, True])
def test_zstd_content(content_size):
    numbers = np.arange(1000, dtype=np.uint16)
    good = ztensor0.stored_bytes(ztensor0.tensor("t", numbers, encoding="zstd"), content_size)
    length, stated = ztensor0.frame_length(good)
    assert length == len(good) and stated == (2000 if content_size else None)

    def content(stored, count=1000):
        fields = fields_of(dtype="uint16", shape=[count], size=len(stored), encoding="zstd")
        return ztensor0.logical_bytes(ztensor0.parse(one(fields, payload=bytes(56) + stored)).entries[0])

    assert content(good) == numbers.tobytes()
    assert content(good + good, 2000) == 2 * numbers.tobytes()
    assert content(skippable(good) + skippable(good) + skippable(b""), 2000) == 2 * numbers.tobytes()
    for bad in (
        good + b"\0",
        good + good,
        good + skippable(b"")[:-1],
        good[:-1],
        good[:-4],
        b"",
        bytes(20),
        b"\0" + good[1:],
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            content(bad)
    for count in (999, 1001, 0, 100000):
        with pytest.raises(ValueError, match=r"\.$"):
            content(good, count)


@pytest.mark.parametrize("entry", manifest("ztensor", "zt01-"))
def test_zt_real_files(entry):
    data = (TEST_DATA / "ztensor" / entry["file"]).read_bytes()
    assert (len(data), sha256(data)) == (entry["bytes"], entry["sha256"])
    container = ztensor0.parse(data)
    assert container.warnings == []
    assert [found.name for found in container.entries] == [tensor["name"] for tensor in entry["tensors"]]
    for found, tensor in zip(container.entries, entry["tensors"]):
        assert (found.dtype, list(found.shape), found.layout) == (tensor["dtype"], tensor["shape"], tensor["layout"])
        assert found.checksum == (
            tensor.get("digest") or next((p.get("digest") for p in tensor.get("parts", {}).values()), None)
        )
        assert found.attributes == plain(tensor.get("custom", {}))
        if found.encoding == "zstd" and ztensor0.zstandard is None:
            pytest.skip("the Python package zstandard is missing")
        ztensor0.verify(found)
        if found.layout not in ztensor0.SPARSE:  # the list dates from before they were read
            assert (found.reason is None) == tensor.get("supported", True)
        if found.reason is None and found.layout == "dense":
            assert found.encoding == tensor["encoding"]
            assert sha256(ztensor0.logical_bytes(found)) == tensor["sha256"]
        else:
            assert sha256(found.stored) == tensor["parts"]["data"]["sha256"]
            assert sha256(ztensor0.densified(found)) == tensor["dense_sha256"]


def plain(value):
    """The manifest's spelling of attribute values undone."""
    if isinstance(value, dict):
        return (
            bytes.fromhex(value["$bytes"])
            if set(value) == {"$bytes"}
            else {key: plain(inner) for key, inner in value.items()}
        )
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("entry", manifest("ztensor", "zt01-"))
def test_zt_real_files_written_again(entry):
    """The real writers' own bytes, raw tensors only: their index is ours with maps of indefinite length."""
    if entry is None:
        return
    data = (TEST_DATA / "ztensor" / entry["file"]).read_bytes()
    container = ztensor0.parse(data)
    if any(found.encoding != "raw" for found in container.entries):
        pytest.skip("a zstd frame depends on the version of zstd")
    tensors = []
    for found in container.entries:
        content = ztensor0.logical_bytes(found) if found.layout == "dense" and found.reason is None else found.stored
        tensors.append(
            ztensor0.Tensor(
                found.name,
                found.dtype,
                found.shape,
                content,
                "raw",
                found.endianness,
                found.checksum,
                found.layout,
                found.attributes,
            )
        )
    assert ztensor0.to_bytes(tensors, indefinite=True) == data
