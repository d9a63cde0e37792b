# SPDX-License-Identifier: Apache-2.0
"""GGUFReader with the interface of the package gguf 0.19. Needs NumPy.

``from weighbridge.gguf import GGUFReader`` is a drop-in for reading. The file passes the checks of :func:`weighbridge.open` first. A
vocabulary is then found in place: its texts become arrays when they are asked for.
"""

from __future__ import annotations

import enum
import struct
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ._model import open as _open

if TYPE_CHECKING:
    import os
    from typing import Literal, Union

    Array = np.ndarray[Any, np.dtype[Any]]
    Mode = Literal["r", "r+", "c"]

__all__ = ["GGMLQuantizationType", "GGUFEndian", "GGUFReader", "GGUFValueType", "ReaderField", "ReaderTensor"]

# number, name, elements of a block, bytes of a block
_TYPES = [
    (0, "F32", 1, 4), (1, "F16", 1, 2), (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20), (6, "Q5_0", 32, 22), (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34),
    (9, "Q8_1", 32, 36), (10, "Q2_K", 256, 84), (11, "Q3_K", 256, 110), (12, "Q4_K", 256, 144), (13, "Q5_K", 256, 176), (14, "Q6_K", 256, 210),
    (15, "Q8_K", 256, 292), (16, "IQ2_XXS", 256, 66), (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98), (19, "IQ1_S", 256, 50),
    (20, "IQ4_NL", 32, 18), (21, "IQ3_S", 256, 110), (22, "IQ2_S", 256, 82), (23, "IQ4_XS", 256, 136), (24, "I8", 1, 1), (25, "I16", 1, 2),
    (26, "I32", 1, 4), (27, "I64", 1, 8), (28, "F64", 1, 8), (29, "IQ1_M", 256, 56), (30, "BF16", 1, 2), (34, "TQ1_0", 256, 54),
    (35, "TQ2_0", 256, 66), (39, "MXFP4", 32, 17), (40, "NVFP4", 64, 36), (41, "Q1_0", 128, 18), (42, "Q2_0", 64, 18),
]
GGMLQuantizationType = enum.IntEnum("GGMLQuantizationType", {name: number for number, name, _, _ in _TYPES})  # type: ignore[misc]
_SIZES = {number: (elements, size) for number, _, elements, size in _TYPES}
# Those whose elements NumPy has; the data of others are bytes.
_NUMPY = {"F32": "f4", "F16": "f2", "F64": "f8", "I8": "i1", "I16": "i2", "I32": "i4", "I64": "i8"}


class GGUFValueType(enum.IntEnum):
    """The type of a metadata value."""

    UINT8 = 0
    INT8 = 1
    UINT16 = 2
    INT16 = 3
    UINT32 = 4
    INT32 = 5
    FLOAT32 = 6
    BOOL = 7
    STRING = 8
    ARRAY = 9
    UINT64 = 10
    INT64 = 11
    FLOAT64 = 12


_SCALARS = {GGUFValueType.UINT8: "u1", GGUFValueType.INT8: "i1", GGUFValueType.UINT16: "u2", GGUFValueType.INT16: "i2", GGUFValueType.UINT32: "u4",
            GGUFValueType.INT32: "i4", GGUFValueType.FLOAT32: "f4", GGUFValueType.BOOL: "?", GGUFValueType.UINT64: "u8",
            GGUFValueType.INT64: "i8", GGUFValueType.FLOAT64: "f8"}


class GGUFEndian(enum.IntEnum):
    """The byte order of a file."""

    LITTLE = 0
    BIG = 1


class _Parts(Sequence[Any]):
    """The arrays that a field consists of, made when they are asked for: ``head`` of them, then those of an array's elements."""

    def __init__(self, file: GGUFReader, head: list[Array], elements: Array | None = None, kind: str = "") -> None:
        # Offsets of the elements; of texts, offsets of their lengths, and kind is empty.
        self._file, self._head, self._elements, self._kind = file, head, elements, kind

    def __len__(self) -> int:
        count = 0 if self._elements is None else len(self._elements)
        return len(self._head) + (count if self._kind else 2 * count)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        if at < len(self._head):
            return self._head[at]
        at -= len(self._head)
        assert self._elements is not None
        if self._kind:
            return self._file._get(int(self._elements[at]), self._kind)
        length = self._file._get(int(self._elements[at // 2]), "u8")
        return length if at % 2 == 0 else self._file._get(int(self._elements[at // 2]) + 8, "u1", int(length[0]))

    def values(self, index: int | slice) -> Any:
        """The elements of an array as Python objects."""
        assert self._elements is not None
        chosen = self._elements[index]
        if self._kind and not isinstance(index, slice):
            return self._file._get(int(chosen), self._kind).tolist()[0]
        if self._kind:
            every = self._file._get(int(self._elements[0]), self._kind, len(self._elements)) if len(self._elements) else self._elements
            return every[index].tolist()
        return self._file._text(int(chosen))[0] if not isinstance(index, slice) else [self._file._text(at)[0] for at in chosen.tolist()]


class ReaderField:
    """A metadata value, or the description of a tensor.

    Attributes
    ----------
    offset : int
        Of its first byte in the file.
    name : str
    parts : sequence of numpy.ndarray
        The numbers and texts that it consists of in the file.
    data : sequence of int
        Which of `parts` are the value.
    types : list of GGUFValueType
        The type; for an array, ``ARRAY`` and the type of its elements.
    """

    __slots__ = ("data", "name", "offset", "parts", "types")

    def __init__(self, offset: int, name: str, parts: Sequence[Any], data: Sequence[int] = (-1,), types: list[GGUFValueType] | None = None) -> None:
        self.offset, self.name, self.parts, self.data, self.types = offset, name, parts, data, types or []

    def contents(self, index_or_slice: int | slice = slice(None)) -> Any:
        """The value as a Python object; of an array, the elements that the index selects."""
        if not self.types:
            return None
        main = self.types[0]
        if main == GGUFValueType.ARRAY:
            return self.parts.values(index_or_slice)  # type: ignore[attr-defined]
        return self.parts[-1].tobytes().decode() if main == GGUFValueType.STRING else self.parts[-1].tolist()[0]

    def __repr__(self) -> str:
        return f"ReaderField(offset={self.offset}, name={self.name!r}, types={self.types!r}, parts={len(self.parts)})"


class ReaderTensor:
    """A tensor of the file.

    Attributes
    ----------
    name : str
    tensor_type : GGMLQuantizationType
    shape : numpy.ndarray
        Of u64, the fastest dimension first.
    n_elements, n_bytes, data_offset : int
        `data_offset` is from the beginning of the file.
    data : numpy.ndarray
        A view of the file with the slowest dimension first: the elements, or bytes for a type that NumPy lacks, where a row of blocks is a
        row of bytes.
    field : ReaderField
    """

    __slots__ = ("data", "data_offset", "field", "n_bytes", "n_elements", "name", "shape", "tensor_type")

    def __init__(self, name: str, tensor_type: Any, shape: Array, n_elements: int, n_bytes: int, data_offset: int, data: Array,
                 field: ReaderField) -> None:
        self.name, self.tensor_type, self.shape, self.n_elements = name, tensor_type, shape, n_elements
        self.n_bytes, self.data_offset, self.data, self.field = n_bytes, data_offset, data, field

    def __repr__(self) -> str:
        return f"ReaderTensor(name={self.name!r}, tensor_type={self.tensor_type!r}, shape={self.shape.tolist()!r})"


class GGUFReader:
    """One GGUF file, as the class of this name in the package gguf.

    Differs from it where that is a weakness: a file that :func:`weighbridge.verify` rejects is not opened, an element type that nobody knows
    is one tensor that is left out, and a vocabulary takes milliseconds.

    Parameters
    ----------
    path : str or path
        A single file. ``weighbridge.open`` opens split models as one.
    mode : {"r", "r+", "c"}
        As in ``numpy.memmap``: read-only, writes go to the file, writes stay in memory.

    Attributes
    ----------
    data : numpy.memmap
        The bytes of the file.
    fields : OrderedDict of str to ReaderField
        The metadata, with ``GGUF.version``, ``GGUF.tensor_count`` and ``GGUF.kv_count`` before them.
    tensors : list of ReaderTensor
    byte_order : {"I", "S"}
        Whether the file has the byte order of this machine or the other one.
    endianess : GGUFEndian
    alignment, data_offset : int

    Raises
    ------
    weighbridge.Error
        The file is not GGUF, or broken.
    """

    def __init__(self, path: Union[str, os.PathLike[str]], mode: Mode = "r") -> None:
        with _open(path, format="gguf"):
            pass
        self.data = np.memmap(path, mode=mode)
        data: Any = self.data  # NumPy says from Python 3.12 on that it is a buffer
        self._bytes: Any = memoryview(data)
        big = int(self.data[4:8].view("<u4")[0]) & 0xFFFF == 0
        self.byte_order: Literal["I", "S"] = "S" if big else "I"
        self.endianess = GGUFEndian.BIG if big else GGUFEndian.LITTLE
        self._order = ">" if big else "<"
        self._u32, self._u64 = (struct.Struct(self._order + kind).unpack_from for kind in "IQ")
        self.alignment = 32
        self._infos = 0  # where the descriptions of tensors begin
        self.data_offset = 0
        self._walk()

    def get_field(self, key: str) -> ReaderField | None:
        """The metadata value with this key, or None."""
        return self.fields.get(key)

    def get_tensor(self, idx: int) -> ReaderTensor:
        """The tensor with this index."""
        return self.tensors[idx]

    def _get(self, offset: int, kind: str, count: int = 1) -> Array:
        kind = np.dtype(self._order + kind)  # type: ignore[assignment]
        return self.data[offset:offset + count * kind.itemsize].view(kind)  # type: ignore[attr-defined]

    def _text(self, offset: int) -> tuple[str, int]:
        """A text, and where it ends."""
        end = offset + 8 + int(self._u64(self._bytes, offset)[0])
        return bytes(self._bytes[offset + 8:end]).decode(), end

    def _walk(self) -> None:
        self.fields: OrderedDict[str, ReaderField] = OrderedDict()
        for name, kind, at in (("version", "u4", 4), ("tensor_count", "u8", 8), ("kv_count", "u8", 16)):
            types = [GGUFValueType.UINT32 if kind == "u4" else GGUFValueType.UINT64]
            self.fields[f"GGUF.{name}"] = ReaderField(at, f"GGUF.{name}", [self._get(at, kind)], [0], types)
        at = 24
        for _ in range(int(self.fields["GGUF.kv_count"].parts[0][0])):
            at = self._walk_value(at)
        self._infos = at
        if "general.alignment" in self.fields:
            self.alignment = int(self.fields["general.alignment"].contents())
        for _ in range(int(self.fields["GGUF.tensor_count"].parts[0][0])):
            at += 8 + self._u64(self._bytes, at)[0]
            at += 4 + 8 * self._u32(self._bytes, at)[0] + 12
        self.data_offset = -(-at // self.alignment) * self.alignment

    def _walk_value(self, begin: int) -> int:
        """Adds a key and its value; returns where they end."""
        key, at = self._text(begin)
        head = [self._get(begin, "u8"), self._get(begin + 8, "u1", at - begin - 8), self._get(at, "u4")]
        kind = GGUFValueType(self._u32(self._bytes, at)[0])
        at += 4
        if kind == GGUFValueType.STRING:
            length = int(self._u64(self._bytes, at)[0])
            head += [self._get(at, "u8"), self._get(at + 8, "u1", length)]
            self.fields[key] = ReaderField(begin, key, head, [4], [kind])
            return at + 8 + length
        if kind != GGUFValueType.ARRAY:
            value = self._get(at, _SCALARS[kind])
            self.fields[key] = ReaderField(begin, key, [*head, value], [3], [kind])
            return at + value.nbytes
        inner = GGUFValueType(self._u32(self._bytes, at)[0])
        count = int(self._u64(self._bytes, at + 4)[0])
        head += [self._get(at, "u4"), self._get(at + 4, "u8")]
        types: list[GGUFValueType] = [kind, inner] if count else [kind]
        at += 12
        if inner != GGUFValueType.STRING:
            width = np.dtype(_SCALARS[inner]).itemsize
            elements = np.arange(count, dtype=np.int64) * width + at
            parts = _Parts(self, head, elements, _SCALARS[inner])
            self.fields[key] = ReaderField(begin, key, parts, range(len(head), len(head) + count), types)
            return at + count * width
        elements = np.empty(count, np.int64)
        unpack, file = self._u64, self._bytes
        for i in range(count):
            elements[i] = at
            at += 8 + unpack(file, at)[0]
        self.fields[key] = ReaderField(begin, key, _Parts(self, head, elements), range(len(head) + 1, len(head) + 1 + 2 * count, 2), types)
        return at

    @cached_property
    def tensors(self) -> list[ReaderTensor]:
        """The tensors, in the order of the file."""
        out = []
        at = self._infos
        for _ in range(int(self.fields["GGUF.tensor_count"].parts[0][0])):
            begin = at
            name, at = self._text(begin)
            rank = int(self._u32(self._bytes, at)[0])
            parts = [self._get(begin, "u8"), self._get(begin + 8, "u1", at - begin - 8), self._get(at, "u4"), self._get(at + 4, "u8", rank),
                     self._get(at + 4 + 8 * rank, "u4"), self._get(at + 8 + 8 * rank, "u8")]
            at += 16 + 8 * rank
            number = int(parts[4][0])
            if number not in _SIZES:
                continue
            kind = GGMLQuantizationType(number)
            field = ReaderField(begin, name, parts, [1, 3, 4, 5])
            elements = int(np.prod(parts[3], dtype=np.uint64))
            block, size = _SIZES[number]
            nbytes = elements // block * size
            shape = [int(extent) for extent in reversed(parts[3])]
            offset = self.data_offset + int(parts[5][0])
            if kind.name in _NUMPY:
                data = self._get(offset, _NUMPY[kind.name], elements).reshape(shape)
            else:
                if shape:
                    shape[-1] = shape[-1] // block * size
                data = self.data[offset:offset + nbytes].reshape(shape)
            out.append(ReaderTensor(name, kind, parts[3], elements, nbytes, offset, data, field))
        return out
