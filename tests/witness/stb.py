# SPDX-License-Identifier: Apache-2.0
"""STB 0.1 (the SVG-Tensor binary format): a second reader and writer, made from the specification and readings G and
S.

Owns: the 32-byte header, the 32-byte tensor descriptors, every rule on them, and the three storage orders. A file
that breaks a rule gives a ValueError whose text is a sentence. What a reading calls a warning is collected; what it
calls unsupported opens, and the entry's `reason` says why there is no array. The shape table and the names come from
khlnary.py's sidecar.
"""

import pathlib
import struct
from typing import NamedTuple, Optional

import numpy as np

MAGIC = b"STB0"
HEADER = struct.Struct(
    "<4sBBHIIQQ"
)  # magic, version, flags, tensor_count, reserved0, reserved1, data_offset, file_size
DESCRIPTOR = struct.Struct("<BBBBQQ3I")  # tensor_id, dtype, rank, layout, offset, size_bytes, dims[3]
ALIGNMENT = 64
DTYPES = {0: "f32", 1: "f16", 2: "i8", 3: "i32"}
NUMPY = {"f32": np.dtype("<f4"), "f16": np.dtype("<f2"), "i8": np.dtype("i1"), "i32": np.dtype("<i4")}
LAYOUTS = {0: "row_major", 1: "col_major", 2: "channels_last"}
assert HEADER.size == 32 and DESCRIPTOR.size == 32


class Tensor(NamedTuple):
    """What write() takes. `dims`: up to three, those of the shape; for rank above 3 the index into the shape table."""

    id: int
    dtype: object  # a name of DTYPES, or a number for dtypes that the format does not know
    layout: object  # a name of LAYOUTS, or a number
    rank: int
    dims: tuple
    data: bytes  # as stored


class Entry(NamedTuple):
    """What read() gives of one tensor."""

    id: int
    dtype: str  # a name of DTYPES, or "unknown-N"
    layout: str  # a name of LAYOUTS, or "unknown-N"
    rank: int
    shape: Optional[tuple]  # None: rank above 3 without a shape table
    offset: int
    data: bytes  # as stored
    array: Optional[np.ndarray]  # in row-major order; None where unsupported, or empty and too wide for numpy
    reason: Optional[str]  # why the elements cannot be read


class Container(NamedTuple):
    entries: list  # in the order of the table
    warnings: list  # sentences


def aligned(n):
    return -(-n // ALIGNMENT) * ALIGNMENT


def product(shape):
    """The number of elements; one dimension of 0 makes it 0, otherwise it has to fit 64 bits."""
    if 0 in shape:
        return 0
    count = 1
    for dim in shape:
        count *= dim
    if count >= 1 << 64:
        raise ValueError(f"The product of the shape {list(shape)} does not fit 64 bits.")
    return count


def storage_axes(rank, layout):
    """The logical axes, outermost in storage first; None where the layout says nothing for that rank."""
    if layout == "row_major":
        return list(range(rank))
    if layout == "col_major":
        return list(range(rank))[::-1]
    if layout == "channels_last":
        if rank == 3:  # (C, H, W) is stored as H, W, C
            return [1, 2, 0]
        if rank == 4:  # (N, C, H, W) as N, H, W, C
            return [0, 2, 3, 1]
        if rank == 5:  # (N, C, D, H, W) as N, D, H, W, C
            return [0, 2, 3, 4, 1]
    return None


def to_storage(array, layout):
    """The stored bytes of a row-major array."""
    axes = storage_axes(array.ndim, layout)
    if axes is None:
        raise ValueError(f"The layout {layout} is not defined for rank {array.ndim}.")
    return np.ascontiguousarray(array.transpose(axes)).tobytes()


def from_storage(data, dtype, shape, layout):
    """The row-major array of stored bytes."""
    axes = storage_axes(len(shape), layout)
    stored = np.frombuffer(data, NUMPY[dtype]).reshape([shape[axis] for axis in axes])
    return stored.transpose(np.argsort(axes).astype(int)).copy(order="C") if axes else stored.copy()


def tensor(tensor_id, array, layout="row_major", shape_index=None):
    """A Tensor of a row-major numpy array; rank above 3 needs its index in the shape table."""
    array = np.asarray(array)
    names = [name for name, dtype in NUMPY.items() if dtype == array.dtype]
    if not names:
        raise ValueError(f"STB has no dtype for {array.dtype}.")
    if array.ndim > 3 and shape_index is None:
        raise ValueError(f"A tensor of rank {array.ndim} needs an index into the shape table.")
    dims = array.shape if array.ndim <= 3 else (shape_index,)
    return Tensor(tensor_id, names[0], layout, array.ndim, dims, to_storage(array, layout))


def number_of(name, table, what):
    if isinstance(name, int):
        return name
    for number, known in table.items():
        if known == name:
            return number
    raise ValueError(f"STB has no {what} {name!r}.")


def to_bytes(tensors):
    """The file that holds the tensors, each a Tensor or a tuple of its fields."""
    tensors = [Tensor(*fields) for fields in tensors]
    if len(tensors) > 256:
        raise ValueError(f"An STB file holds at most 256 tensors, not {len(tensors)}.")
    if len({t.id for t in tensors}) != len(tensors):
        raise ValueError("Two tensors have one id.")
    data_offset = aligned(HEADER.size + DESCRIPTOR.size * len(tensors))
    table, payload = b"", b""
    for t in tensors:
        payload += bytes(-len(payload) % ALIGNMENT)
        dims = tuple(t.dims) + (0,) * (3 - len(t.dims))
        table += DESCRIPTOR.pack(
            t.id,
            number_of(t.dtype, DTYPES, "dtype"),
            t.rank,
            number_of(t.layout, LAYOUTS, "layout"),
            data_offset + len(payload),
            len(t.data),
            *dims,
        )
        payload += t.data
    head = HEADER.pack(MAGIC, 1, 0, len(tensors), 0, 0, data_offset, data_offset + len(payload)) + table
    return head + bytes(data_offset - len(head)) + payload


def write(path, tensors):
    pathlib.Path(path).write_bytes(to_bytes(tensors))


def parse(data, shape_table=None, shapes=None):
    """The tensors of a file and its warnings. `shape_table`: what rank above 3 refers to, or None for no table; `shapes`
    (id -> shape) then stands in for it."""
    warnings = []
    if len(data) < HEADER.size:
        raise ValueError(f"The file has {len(data)} bytes, fewer than the {HEADER.size} of a header.")
    magic, version, flags, count, reserved0, reserved1, data_offset, file_size = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ValueError(f"The magic is {magic!r}, not {MAGIC!r}.")
    if version != 1:
        raise ValueError(f"The version is {version}; only version 1 is defined.")
    if flags:
        raise ValueError(f"The flags are {flags:#x}; no flag is defined.")
    if reserved0 or reserved1:
        warnings.append("A reserved field of the header is not zero.")
    if file_size != len(data):
        raise ValueError(f"The header says {file_size} bytes, the file has {len(data)}.")
    if data_offset % ALIGNMENT:
        raise ValueError(f"data_offset {data_offset} is no multiple of {ALIGNMENT}.")
    if data_offset < HEADER.size + DESCRIPTOR.size * count:
        raise ValueError(f"data_offset {data_offset} lies inside the table of {count} tensors.")
    if data_offset > file_size:
        raise ValueError(f"data_offset {data_offset} lies past the end of the file, {file_size}.")
    entries, seen = [], set()
    for index in range(count):
        fields = DESCRIPTOR.unpack_from(data, HEADER.size + DESCRIPTOR.size * index)
        if fields[0] in seen:
            raise ValueError(f"Two tensors have the id {fields[0]}.")
        seen.add(fields[0])
        stated = (shapes or {}).get(fields[0])
        entries.append(parse_entry(data, data_offset, fields, shape_table, stated, warnings))
    warnings += overlaps([(str(e.id), e.offset, len(e.data)) for e in entries])
    return Container(entries, warnings)


def parse_entry(data, data_offset, fields, shape_table, stated, warnings):
    tensor_id, dtype_number, rank, layout_number, offset, size, *dims = fields
    what = f"Tensor {tensor_id}"
    if rank > 8:
        raise ValueError(f"{what} has rank {rank}; at most 8 is defined.")
    if offset % ALIGNMENT:
        raise ValueError(
            f"{what}: offset {offset} is no multiple of {ALIGNMENT} (the format's reference tool packs its "
            "payloads so)."
        )
    if offset < data_offset:
        raise ValueError(f"{what}: offset {offset} lies before data_offset {data_offset}.")
    if offset + size > len(data):
        raise ValueError(f"{what}: {size} bytes at {offset} pass the end of the file, {len(data)}.")
    if any(dims[rank if rank <= 3 else 1 :]):
        warnings.append(f"{what}: an unused dimension is not zero.")
    dtype = DTYPES.get(dtype_number, f"unknown-{dtype_number}")
    layout = LAYOUTS.get(layout_number, f"unknown-{layout_number}")
    shape = shape_of(what, rank, dims, shape_table, stated)
    if shape is not None:
        elements = product(shape)
        if dtype in NUMPY and elements * NUMPY[dtype].itemsize != size:
            raise ValueError(
                f"{what}: the shape {list(shape)} of {dtype} takes {elements * NUMPY[dtype].itemsize} bytes, "
                f"size_bytes says {size}."
            )
    reason = None
    if dtype not in NUMPY:
        reason = f"dtype {dtype_number} is not defined"
    elif layout.startswith("unknown"):
        reason = f"layout {layout_number} is not defined"
    elif shape is None:
        reason = f"rank {rank} takes its shape from a shape table, and there is none"
    elif storage_axes(rank, layout) is None:
        reason = f"{layout} is not defined for rank {rank}"
    stored = data[offset : offset + size]
    array = None
    if reason is None:
        try:
            array = from_storage(stored, dtype, shape, layout)
        except ValueError:
            if stored:
                raise
    return Entry(tensor_id, dtype, layout, rank, shape, offset, stored, array, reason)


def shape_of(what, rank, dims, shape_table, stated):
    if rank <= 3:
        return tuple(dims[:rank])
    if shape_table is None and stated is None:
        return None
    if shape_table is None:
        dims, shape_table = (0,), [stated]
    if dims[0] >= len(shape_table):
        raise ValueError(f"{what}: its shape is number {dims[0]} of a shape table of {len(shape_table)}.")
    shape = tuple(shape_table[dims[0]])
    if len(shape) != rank:
        raise ValueError(f"{what} has rank {rank}, its entry {list(shape)} of the shape table has {len(shape)}.")
    return shape


def overlaps(ranges):
    """A sentence for each two of the (name, offset, size) that share bytes and are not equal; empty ones share none."""
    found = []
    ranges = sorted((offset, size, name) for name, offset, size in ranges if size)
    for i, (offset, size, name) in enumerate(ranges):
        for other_offset, other_size, other_name in ranges[i + 1 :]:
            if other_offset >= offset + size:
                break
            if (offset, size) != (other_offset, other_size):
                found.append(f"The payloads of {name!r} and {other_name!r} overlap in part.")
    return found


def read(path, shape_table=None, names=None, shapes=None):
    """name -> Entry. A name is the decimal id, or what `names` (id -> name) says."""
    found = {}
    for entry in parse(pathlib.Path(path).read_bytes(), shape_table, shapes).entries:
        name = (names or {}).get(entry.id, str(entry.id))
        if name in found:
            raise ValueError(f"Two tensors have the name {name!r}.")
        found[name] = entry
    return found
