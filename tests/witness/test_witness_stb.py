# SPDX-License-Identifier: Apache-2.0
"""Self tests of the witness stb.py: round trips, every rule broken once, and the real files of the test data.
Does not test the library; the interop tests compare it with the witnesses."""

import hashlib
import itertools
import random
import struct

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing: tools/python-environments.sh makes the environment")

import stb
from real_files import TEST_DATA, manifest


def sha256(data):
    return hashlib.sha256(data).hexdigest()


RANDOM = np.random.Generator(np.random.PCG64(7))
SHAPES = [
    (),
    (0,),
    (5,),
    (3, 4),
    (2, 0, 3),
    (2, 3, 4),
    (2, 3, 4, 5),
    (2, 3, 2, 2, 3),
    (1, 2, 1, 2, 1, 2),
    (2,) * 7,
    (1,) * 8,
]


def random_array(name, shape):
    kind = stb.NUMPY[name]
    return RANDOM.integers(0, 256, (*shape, kind.itemsize), np.uint8).view(kind).reshape(shape)


def layouts_of(shape):
    return [name for name in stb.LAYOUTS.values() if stb.storage_axes(len(shape), name) is not None]


def test_stb_round_trips(tmp_path):
    table = [shape for shape in SHAPES if len(shape) > 3]
    cases = [(name, shape, layout) for name in stb.NUMPY for shape in SHAPES for layout in layouts_of(shape)]
    arrays = [random_array(name, shape) for name, shape, _ in cases]
    tensors = [
        stb.tensor(i, array, layout, table.index(shape) if len(shape) > 3 else None)
        for i, (array, (_, shape, layout)) in enumerate(zip(arrays, cases))
    ]
    stb.write(tmp_path / "a.stb", tensors)
    found = stb.read(tmp_path / "a.stb", table)
    assert list(found) == [str(i) for i in range(len(cases))]
    for entry, array, (name, shape, layout) in zip(found.values(), arrays, cases):
        assert (entry.dtype, entry.layout, entry.shape, entry.reason) == (name, layout, shape, None)
        assert entry.array.tobytes() == array.tobytes() and entry.array.shape == shape
    assert stb.parse((tmp_path / "a.stb").read_bytes(), table).warnings == []
    unresolved = stb.read(tmp_path / "a.stb")
    assert all((entry.shape is None) == (len(shape) > 3) for entry, (_, shape, _) in zip(unresolved.values(), cases))


def test_stb_orders_by_loops():
    """The stored place of each element by the definitions of the orders, without numpy's transposition."""
    for shape in [(2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 2, 4, 3)]:
        array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        for layout in layouts_of(shape):
            stored = np.frombuffer(stb.to_storage(array, layout), np.int32)
            for place in itertools.product(*map(range, shape)):
                order = list(range(len(shape)))  # axes, outermost first
                if layout == "col_major":
                    order.reverse()
                elif layout == "channels_last":
                    channel = 0 if len(shape) == 3 else 1
                    order = [axis for axis in order if axis != channel] + [channel]
                at = 0
                for axis in order:
                    at = at * shape[axis] + place[axis]
                assert stored[at] == array[place]


def test_stb_known_bytes():
    data = stb.to_bytes([(3, "i8", "row_major", 1, (2,), b"\1\2"), (200, "i32", "col_major", 0, (), b"\5\0\0\0")])
    assert data[:32].hex() == "53544230" "01" "00" "0200" "00000000" "00000000" "8000000000000000" "c400000000000000"
    assert data[32:64].hex() == "03020100" "8000000000000000" "0200000000000000" "020000000000000000000000"
    assert data[64:96].hex() == "c8030001" "c000000000000000" "0400000000000000" "000000000000000000000000"
    assert data[96:] == bytes(32) + b"\1\2" + bytes(62) + b"\5\0\0\0"


def two():
    return bytearray(
        stb.to_bytes(
            [
                stb.tensor(1, np.arange(6, dtype=np.float32).reshape(2, 3)),
                stb.tensor(2, np.arange(4, dtype=np.int8)),
                stb.tensor(3, np.zeros((0, 7), np.float16)),
            ]
        )
    )


def put(form, at, value):
    return lambda data: struct.pack_into(form, data, at, value)


def longer(data):
    data += b"\0" * 64


def shorter(data):
    del data[-1:]


STB_BROKEN = {
    "magic": put("<B", 3, 0x31),
    "version 0": put("<B", 4, 0),
    "version 2": put("<B", 4, 2),
    "flags": put("<B", 5, 1),
    "file_size": put("<Q", 24, 193),
    "longer": longer,
    "shorter": shorter,
    "data_offset unaligned": put("<Q", 16, 129),
    "data_offset in the table": put("<Q", 16, 64),
    "data_offset past the end": put("<Q", 16, 1 << 20),
    "data_offset huge": put("<Q", 16, (1 << 64) - 64),
    "count": put("<H", 6, 4),
    "count huge": put("<H", 6, 0xFFFF),
    "ids": put("<B", 64, 1),
    "rank 9": put("<B", 34, 9),
    "offset unaligned": put("<Q", 36, 132),
    "offset before the data": put("<Q", 36, 64),
    "offset past the end": put("<Q", 36, 1 << 20),
    "offset wraps": put("<Q", 36, (1 << 64) - 64),
    "size past the end": put("<Q", 44, 1 << 40),
    "size wraps": put("<Q", 44, (1 << 64) - 64),
    "size too small": put("<Q", 44, 20),
    "dims": put("<I", 52, 3),
    "dtype of another width": put("<B", 33, 1),
    "rank of another size": put("<B", 34, 1),
    "no elements but bytes": put("<I", 52, 0),
}


@pytest.mark.parametrize("broken", STB_BROKEN)
def test_stb_refuses(broken):
    data = two()
    assert len(stb.parse(bytes(data)).entries) == 3
    STB_BROKEN[broken](data)
    with pytest.raises(ValueError, match=r"\.$"):
        stb.parse(bytes(data))


def test_stb_refuses_every_cut():
    data = bytes(two())
    for size in range(len(data)):
        with pytest.raises(ValueError):
            stb.parse(data[:size])


@pytest.mark.parametrize(
    "patch",
    [put("<I", 8, 1), put("<I", 12, 1), put("<I", 60, 9), put("<Q", 68, 128)],
    ids=["reserved0", "reserved1", "unused dimension", "overlap"],
)
def test_stb_warns(patch):
    data = two()
    patch(data)
    assert len(stb.parse(bytes(data)).warnings) == 1


@pytest.mark.parametrize(
    "at,value,reason",
    [(33, 4, "dtype"), (33, 255, "dtype"), (35, 3, "layout"), (35, 2, "channels_last"), (34, 4, "shape table")],
)
def test_stb_unsupported(at, value, reason):
    data = two()
    data[at] = value
    first = stb.parse(bytes(data)).entries[0]
    assert reason in first.reason and first.array is None and len(first.data) == 24


@pytest.mark.parametrize(
    "table,good",
    [
        ([(9,), (2, 1, 3, 1)], True),
        ([(2, 1, 3, 1)], False),
        ([(9,), (2, 1, 3, 2)], False),
        ([(9,), (2, 3)], False),
        ([], False),
        ([(9,), (1 << 33, 1 << 33, 1, 1)], False),
    ],
)
def test_stb_shape_table(table, good):
    data = bytearray(stb.to_bytes([(0, "i8", "row_major", 4, (1,), bytes(range(6)))]))
    if not good:
        with pytest.raises(ValueError):
            stb.parse(bytes(data), table)
        return
    assert stb.parse(bytes(data), table).entries[0].array[1, 0, 2, 0] == 5
    struct.pack_into("<I", data, 56, 7)
    assert len(stb.parse(bytes(data), table).warnings) == 1


def test_stb_limits():
    tensor = (0, "i8", "row_major", 1, (1,), b"x")
    assert len(stb.parse(stb.to_bytes([(i, *tensor[1:]) for i in range(256)])).entries) == 256
    for bad in ([tensor] * 2, [(i % 256, *tensor[1:]) for i in range(257)], [(0, "bf16", *tensor[2:])]):
        with pytest.raises(ValueError):
            stb.to_bytes(bad)
    with pytest.raises(ValueError):
        stb.tensor(0, np.zeros(3, np.int64))
    wide = stb.parse(stb.to_bytes([(0, "f32", "row_major", 3, (0, 0xFFFFFFFF, 0xFFFFFFFF), b"")])).entries[0]
    assert wide.reason is None and wide.shape == (0, 0xFFFFFFFF, 0xFFFFFFFF)
    with pytest.raises(ValueError):
        stb.parse(stb.to_bytes([(0, "f32", "row_major", 3, (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF), b"")]))
    with pytest.raises(ValueError):
        stb.parse(stb.to_bytes([(0, "f32", "row_major", 3, (1 << 31, 1 << 31, 1), b"")]))


@pytest.mark.parametrize("entry", manifest("stb"))
def test_stb_real_files(entry):
    path = TEST_DATA / "stb" / entry["file"]
    assert sha256(path.read_bytes()) == entry["sha256"]
    if entry["expect"] == "reject":
        with pytest.raises(ValueError, match="reference tool packs"):
            stb.read(path)
        return
    if entry["expect"] == "unsupported":
        assert all(found.reason and found.shape is None for found in stb.read(path).values())
        table = [
            (),
            (),
            *[tensor["shape"] for tensor in entry["tensors"]],
        ]  # the tool left its first dimension, 2, as the index
    else:
        table = None
    found = stb.read(path, table)
    assert [(name, e.dtype, list(e.shape), sha256(e.array.tobytes())) for name, e in found.items()] == [
        (t["name"], t["dtype"], t["shape"], t["sha256"]) for t in entry["tensors"]
    ]
