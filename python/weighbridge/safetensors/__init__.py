# SPDX-License-Identifier: Apache-2.0
"""The interface of the package safetensors, over every container that weighbridge opens.

``import weighbridge.safetensors as safetensors`` is a drop-in for it. Files are written by weighbridge: synced, read back, compared, and
renamed into place.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from .. import _arrays, _core
from .. import __version__ as __version__
from .._errors import Error
from .._model import Model, Tensor
from .._model import open as _open
from .._progress import settings

__all__ = ["PrefetchLoader", "PySafeSlice", "SafetensorError", "TensorMeta", "TensorSpec", "deserialize", "safe_open", "serialize", "serialize_file"]

# The names that the format has for our dtypes, and those that TensorSpec takes: NumPy's and PyTorch's.
_HEADER_NAMES = {
    "bool": "BOOL", "u8": "U8", "i8": "I8", "u16": "U16", "i16": "I16", "u32": "U32", "i32": "I32", "u64": "U64", "i64": "I64", "f16": "F16",
    "bf16": "BF16", "f32": "F32", "f64": "F64", "complex64": "C64", "f8_e4m3": "F8_E4M3", "f8_e5m2": "F8_E5M2", "f8_e8m0": "F8_E8M0",
    "f8_e4m3fnuz": "F8_E4M3FNUZ", "f8_e5m2fnuz": "F8_E5M2FNUZ", "f6_e2m3": "F6_E2M3", "f6_e3m2": "F6_E3M2", "f4": "F4",
}
_OURS = {theirs: ours for ours, theirs in _HEADER_NAMES.items()}
# In the order of the format's enumeration, which serialize() sorts by.
_ORDER = ["BOOL", "F4", "F6_E2M3", "F6_E3M2", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ", "I16", "U16", "F16",
          "BF16", "I32", "U32", "F32", "C64", "F64", "I64", "U64"]
_FRAMEWORKS = {"pt": "pt", "torch": "pt", "pytorch": "pt", "np": "np", "numpy": "np", "tf": "tf", "tensorflow": "tf", "jax": "flax",
               "flax": "flax", "mlx": "mlx", "paddle": "paddle"}


_SUPPORTED = [_arrays.NUMPY_NAMES.get(name) or _arrays.TORCH_NAMES.get(name) or name for name in _HEADER_NAMES]


class SafetensorError(Exception):
    """What goes wrong here, by the name and with the texts of safetensors. ``__cause__`` is the weighbridge.Error, if there is one."""


class TensorSpec:
    """A tensor in memory, for :func:`serialize`.

    Parameters
    ----------
    dtype : str
        ``"float32"``, ``"bfloat16"``, ...
    shape : sequence of int
    data_ptr : int
        The address of the elements, row-major, which the caller keeps alive.
    data_len : int
        In bytes.
    """

    __slots__ = ("data_len", "data_ptr", "dtype", "shape")

    def __init__(self, *, dtype: str, shape: Any, data_ptr: int, data_len: int) -> None:
        name = "f4" if dtype == "float4_e2m1fn_x2" else _arrays.our_name(dtype)
        if name not in _HEADER_NAMES:
            raise SafetensorError(f'Unknown dtype "{dtype}". Supported dtypes: {", ".join(map(str, _SUPPORTED))}')
        if data_ptr < 0 or data_len < 0 or (data_ptr == 0 and data_len):
            raise ValueError(f"no {data_len} bytes are at the address {data_ptr}")
        self.dtype = _HEADER_NAMES[name]
        self.shape = [int(size) for size in shape]
        if dtype == "float4_e2m1fn_x2":
            self.shape[-1] *= 2
        self.data_ptr, self.data_len = int(data_ptr), int(data_len)

    def _memory(self) -> memoryview:
        return memoryview((ctypes.c_ubyte * self.data_len).from_address(self.data_ptr)).cast("B") if self.data_len else memoryview(b"")


def _checked(tensors: Mapping[str, TensorSpec]) -> list[tuple[str, TensorSpec]]:
    for name, tensor in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"argument 'tensor_dict': '{type(name).__name__}' object is not an instance of 'str'")
        name.encode()  # raises UnicodeEncodeError
        if not isinstance(tensor, TensorSpec):
            raise TypeError(f"tensor {name!r}: expected a TensorSpec, not a {type(tensor).__name__}")
    return sorted(tensors.items(), key=lambda item: (-_ORDER.index(item[1].dtype), item[0]))


def serialize(tensor_dict: Mapping[str, TensorSpec], metadata: Mapping[str, str] | None = None) -> bytes:
    """A safetensors file in memory."""
    stated = _metadata(metadata)
    header: dict[str, Any] = {} if stated is None else {"__metadata__": stated}
    pieces, at = [], 0
    for name, tensor in _checked(tensor_dict):
        header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [at, at + tensor.data_len]}
        pieces.append(tensor._memory())
        at += tensor.data_len
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    out = b"".join([struct.pack("<Q", len(text)), text, *pieces])
    try:
        _core.open(out, "safetensors", "structure", "", settings())
    except Error as error:
        raise SafetensorError(f"Error while serializing: {error}") from error
    return out


def serialize_file(tensor_dict: Mapping[str, TensorSpec], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a safetensors file."""
    items = [(name, _OURS[tensor.dtype], tensor.shape, tensor._memory()) for name, tensor in _checked(tensor_dict)]
    try:
        model = _core.build(items, _metadata(metadata) or None)
        _core.plan(model, "safetensors", {"replace": True}).execute(os.fspath(filename), settings())
    except Error as error:
        raise SafetensorError(f"Error while serializing: {error}") from error


def deserialize(data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """The tensors of a file in memory: ``(name, {"shape", "dtype", "data"})``, by offset."""
    model = _loaded(data)
    return [(name, {"shape": list(shape), "dtype": _HEADER_NAMES.get(dtype, dtype), "data": bytearray(model[name].tobytes())})
            for name, dtype, shape, _, _ in sorted(model._handle.places(), key=lambda place: place[4])]


# What the original says first, by our rule; our own sentence follows it.
_TEXTS = {
    "too-short": "header too small", "header-too-large": "header too large", "header-past-end": "invalid header length",
    "header-utf8": "invalid UTF-8 in header", "size-overflow": "overflow computing buffer size from shape and/or element type",
    "size-mismatch": "invalid shape, data type, or offset for tensor", "partial-byte": "invalid shape, data type, or offset for tensor",
    "truncated": "incomplete metadata, file not fully covered", "data-past-end": "incomplete metadata, file not fully covered",
    "trailing-data": "incomplete metadata, file not fully covered", "offsets-order": "invalid offset for tensor",
    "overlap": "invalid offset for tensor", "hole": "invalid offset for tensor",
}


def _opened(file: Any, name: str, doing: str = "deserializing header") -> Model:
    try:
        try:
            return _open(file, check="structure")
        except Error as error:
            if not error.rule.startswith("file/"):
                raise
            return _open(file, check="structure", format="safetensors")  # which says what a reader of safetensors would
    except FileNotFoundError:
        raise FileNotFoundError(f"No such file or directory: {name}") from None
    except Error as error:
        if isinstance(error, OSError):
            raise
        text = _TEXTS.get(error.rule.removeprefix("safetensors/"), "header too large" if error.rule == "limit/header" else "invalid JSON in header")
        raise SafetensorError(f"Error while {doing}: {text}: {error}") from error


def _loaded(data: Any) -> Model:
    """A file in memory. A path is refused: what reads bytes must not open files."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"argument 'bytes': '{type(data).__name__}' object is not an instance of 'bytes'")
    model = _opened(data, "<bytes>", "deserializing")
    for name, dtype, *_ in model._handle.places():
        _header_name(model, name, dtype)
    return model


def _metadata(given: Any) -> dict[str, str] | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(f"argument 'metadata': '{type(given).__name__}' object is not an instance of 'dict'")
    for text in (part for pair in given.items() for part in pair):
        if not isinstance(text, str):
            raise TypeError(f"argument 'metadata': '{type(text).__name__}' object is not an instance of 'str'")
        text.encode()  # raises UnicodeEncodeError
    return dict(given)


def _header_name(model: Model, tensor: str, dtype: str) -> str:
    if dtype == "unknown":
        raise SafetensorError(f"Error while deserializing: invalid JSON in header: unknown variant, tensor {tensor}: {model[tensor].unsupported}")
    return _HEADER_NAMES.get(dtype, dtype)  # other containers have more


class TensorMeta:
    """What a header says of a tensor: ``dtype``, ``shape`` and ``data_offsets``, which count from the end of the header."""

    __slots__ = ("data_offsets", "dtype", "shape")

    def __init__(self, dtype: str, shape: list[int], data_offsets: tuple[int, int]) -> None:
        self.dtype, self.shape, self.data_offsets = dtype, shape, data_offsets

    def __repr__(self) -> str:
        return f"TensorMeta(dtype={self.dtype!r}, shape={self.shape}, data_offsets={self.data_offsets})"


class safe_open:  # noqa: N801 - the name of the original
    """An open file, as safetensors.safe_open: ``with safe_open(path, framework="pt") as f: f.get_tensor(name)``.

    Parameters
    ----------
    filename : path
        A file or folder in any container.
    framework : str
        ``"pt"``, ``"np"``, ``"flax"``, ``"mlx"``, ``"tf"``, ``"paddle"``, or their long names.
    device : str or int
        For PyTorch and Paddle; others take ``"cpu"``.
    backend : {"mmap", "pread"}
        ``"mmap"`` gives memory of the file, copied when it is written to; ``"pread"`` reads.
    """

    def __init__(self, filename: Any, framework: str, device: Any = "cpu", *, backend: str = "mmap") -> None:
        if framework not in _FRAMEWORKS:
            raise SafetensorError(f"framework {framework} is invalid")
        if backend not in ("mmap", "pread"):
            raise SafetensorError(f"backend {backend} is invalid")
        self._framework = _FRAMEWORKS[framework]
        self._device = f"cuda:{device}" if isinstance(device, int) else device
        if self._framework not in ("pt", "paddle") and str(self._device) != "cpu":
            raise SafetensorError(f"device {device} is invalid")
        self._backend = backend
        self._model: Model | None = _opened(filename, str(filename))
        self._base: int | None = None  # where the first tensor begins, once it is asked for

    def _open(self) -> Model:
        if self._model is None:
            raise SafetensorError("File is closed")
        return self._model

    def __enter__(self) -> safe_open:
        self._open()
        return self

    def __exit__(self, *_: object) -> None:
        self._model = None

    def keys(self) -> list[str]:
        """The names, sorted."""
        return sorted(self._open())

    def offset_keys(self) -> list[str]:
        """The names in the order of their bytes."""
        return [place[0] for place in sorted(self._open()._handle.places(), key=lambda place: (place[3], place[4]))]

    def metadata(self) -> dict[str, str] | None:
        """The metadata as texts; None if there is none."""
        found = self._open().metadata
        return {key: value if isinstance(value, str) else str(value) for key, value in found.items()} or None

    def get_tensor_meta(self, name: str) -> TensorMeta:
        """What the header says of a tensor. Reads nothing."""
        model = self._open()
        tensor = self._find(name)
        if self._base is None:
            self._base = min((place[4] for place in model._handle.places() if place[3] >= 0), default=0)
        place = model._handle.place(tensor._tensor)
        offset = 0 if place is None else place[1] - self._base
        return TensorMeta(_HEADER_NAMES.get(tensor.dtype, tensor.dtype), list(tensor.shape), (offset, offset + tensor.nbytes))

    def prefetch(self, plan: Mapping[str, slice | None] | None = None, *, device: Any = None, threads: int = 8) -> PrefetchLoader:
        """Reads tensors into the memory of a CUDA device in the background.

        Parameters
        ----------
        plan : mapping from str to slice or None, optional
            Names, each with the rows to read or None for all; by default every tensor.
        device : str or int, optional
            ``"cuda"``, ``"cuda:1"``, 1; by default that of this object.
        threads : int
            How many read at once.
        """
        model = self._open()
        if self._framework != "pt":
            raise SafetensorError('prefetch needs framework="pt"')
        rows: dict[str, slice | None] = {}
        for name in self.offset_keys() if plan is None else plan:
            tensor = self._find(name)
            chosen = None if plan is None else plan[name]
            if chosen is not None and not isinstance(chosen, slice):
                raise SafetensorError(f"the prefetch plan has None or a slice for each name, not {chosen!r} for {name}")
            if chosen is not None and not tensor.shape:
                raise SafetensorError(f"invalid prefetch plan slice for {name}: it is 0-d")
            if chosen is not None and chosen.step not in (None, 1):
                raise SafetensorError(f"invalid prefetch plan slice for {name}: only step 1 is supported")
            if tensor.dtype not in _arrays.NUMPY_NAMES and tensor.dtype not in _arrays.TORCH_NAMES:
                raise SafetensorError(f"{name}: PyTorch has no {_HEADER_NAMES.get(tensor.dtype, tensor.dtype)}")
            if chosen is not None:
                size = tensor.shape[0]
                first, last = chosen.start or 0, size if chosen.stop is None else chosen.stop
                first, last = first + size if first < 0 else first, last + size if last < 0 else last
                if not 0 <= first <= last <= size:
                    raise SafetensorError(f"invalid prefetch plan slice for {name}: {first} to {last} of {size} rows")
                rows[name] = slice(first, last)
            else:
                rows[name] = None
        target = self._device if device is None else f"cuda:{device}" if isinstance(device, int) else str(device)
        if not str(target).startswith("cuda"):
            raise SafetensorError(f"prefetch is for cuda devices, not {target}")
        return PrefetchLoader(model, rows, target, threads)

    def _find(self, name: str) -> Tensor:
        found = self._open()._find(name)
        if found is None:
            raise SafetensorError(f"File does not contain tensor {name}")
        return Tensor(self._open(), found)

    def get_tensor(self, name: str) -> Any:
        """A tensor of the framework."""
        return _given(self._find(name), self._framework, self._device, self._backend)

    def get_tensors(self) -> dict[str, Any]:
        """All of them, by name."""
        model = self._open()
        if self._framework == "np":
            return _all_numpy(model) if self._backend == "mmap" else model.numpy(copy=True)
        if self._framework == "pt" and self._backend == "mmap":
            return model.torch(device=None if str(self._device) == "cpu" else self._device)
        return {name: _given(tensor, self._framework, self._device, self._backend) for name, tensor in model.items()}

    def get_slice(self, name: str) -> PySafeSlice:
        """A tensor to take slices of."""
        return PySafeSlice(self._find(name), self._framework, self._device)


class PrefetchLoader:
    """Tensors on their way into the memory of a device. Made by :meth:`safe_open.prefetch`; hands out each once, by name or in file order."""

    def __init__(self, model: Model, rows: Mapping[str, slice | None], device: str, threads: int) -> None:
        from concurrent.futures import ThreadPoolExecutor

        def load(name: str, chosen: slice | None) -> Any:
            tensor = model[name].torch()
            return (tensor if chosen is None else tensor[chosen]).to(device)

        self._names = list(rows)
        self._pool = ThreadPoolExecutor(max(1, min(threads, len(rows))))
        self._coming = {name: self._pool.submit(load, name, chosen) for name, chosen in rows.items()}
        self._closed = False

    def names(self) -> list[str]:
        """Those of the plan, in its order; of the whole file in the order of their bytes."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def take(self, name: str) -> Any:
        """A tensor, once it is there. Each can be taken once."""
        if self._closed:
            raise SafetensorError("the loader is closed")
        if name not in self._coming:
            raise SafetensorError(f"{name} was taken already" if name in self._names else f"{name} is not in the prefetch plan")
        return self._coming.pop(name).result()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name in self._names:
            if name in self._coming:
                yield name, self.take(name)

    def close(self) -> None:
        """Stops reading. Tensors that were taken stay valid."""
        self._closed = True
        self._coming.clear()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> PrefetchLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _safe_open_handle(safe_open):  # noqa: N801
    """safe_open for a file object."""

    def __init__(self, file: Any, framework: str, device: Any = "cpu", *, backend: str = "mmap") -> None:
        super().__init__(getattr(file, "buffer", file), framework, device, backend=backend)


class PySafeSlice:
    """A tensor whose slices are read: ``f.get_slice(name)[:2, 0]``. Slices do not clamp, and have step 1."""

    def __init__(self, tensor: Tensor, framework: str, device: Any) -> None:
        self._tensor, self._framework, self._device = tensor, framework, device

    def get_shape(self) -> list[int]:
        """The shape of the tensor."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """As in the header: ``"F32"``."""
        return _HEADER_NAMES.get(self._tensor.dtype, self._tensor.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Elements by ints, slices of step 1 and ``...``. Unlike NumPy, a slice that ends outside raises :class:`SafetensorError`."""
        shape = self._tensor.shape
        if isinstance(key, list):
            if key:
                raise SafetensorError("Non empty lists are not implemented")
            key = (slice(0, 0),)
        keys = key if isinstance(key, tuple) else (key,)
        if Ellipsis in keys:
            at = keys.index(Ellipsis)
            keys = keys[:at] + (slice(None),) * (len(shape) - len(keys) + 1) + keys[at + 1 :]
        if len(keys) > len(shape):
            raise SafetensorError(f"Error during slicing {_shown(keys)} with shape {list(shape)}: too many slicing indexes")
        checked: list[Any] = []
        for dimension, one in enumerate(keys):
            size = shape[dimension]
            if isinstance(one, slice):
                if one.step not in (None, 1):
                    raise SafetensorError("slices with a step are not implemented")
                begin, end = (0 if one.start is None else one.start), (size if one.stop is None else one.stop)
                begin, end = (begin + size if begin < 0 else begin), (end + size if end < 0 else end)
                if end > size or begin < 0:
                    self._outside(keys, dimension, end - 1)
                checked.append(slice(begin, max(begin, end)))
            else:
                at = one.__index__()
                if at < -size:
                    raise SafetensorError(f"Invalid index {at} for dimension {dimension} of size {size}")
                if at >= size:
                    self._outside(keys, dimension, at)
                checked.append(at % size)
        name = self._tensor.dtype
        if self._framework == "pt" and name in _arrays.ML_NAMES:
            return _device(self._tensor.torch()[tuple(checked)].clone(), self._device)
        array = self._tensor[tuple(checked)]
        import numpy

        return _converted(numpy.array(array, order="C"), self._framework, self._device)

    def _outside(self, keys: tuple[Any, ...], dimension: int, at: int) -> None:
        shape = self._tensor.shape
        raise SafetensorError(f"Error during slicing {_shown(keys)} with shape {list(shape)}: "
                              f"index {at} out of bounds for tensor dimension #{dimension} of size {shape[dimension]}")


def _shown(keys: tuple[Any, ...]) -> str:
    def one(key: Any) -> str:
        if not isinstance(key, slice):
            return str(key)
        return ("" if key.start is None else str(key.start)) + ":" + ("" if key.stop is None else str(key.stop))

    return "[" + ", ".join(map(one, keys)) + "]"


def _device(tensor: Any, device: Any) -> Any:
    return tensor if str(device) == "cpu" else tensor.to(device)


def _all_numpy(model: Model) -> dict[str, Any]:
    """All tensors as NumPy arrays over the mapped file, which are copied page by page when they are written to."""
    import numpy

    files = model.files
    memories: dict[int, Any] = {}
    dtypes: dict[str, Any] = {}
    out: dict[str, Any] = {}
    for name, dtype, shape, source, offset in model._handle.places():
        if source >= 0 and source not in memories:
            whole = model._map(files[source])
            memories[source] = whole[0] if whole else None
        memory = memories.get(source) if source >= 0 else None
        if dtype not in dtypes:
            _header_name(model, name, dtype)
            dtypes[dtype] = _arrays.numpy_dtype(dtype)
        if memory is None:
            out[name] = model[name].numpy(copy=True)
        else:
            try:
                out[name] = numpy.ndarray(shape, dtypes[dtype], memory, offset)
            except ValueError as error:
                raise SafetensorError(f"{name}: {_TEXTS['size-overflow']}: {error}") from error
    return out


def _given(tensor: Tensor, framework: str, device: Any, backend: str) -> Any:
    _header_name(tensor._model, tensor.name, tensor.dtype)
    if framework == "pt":
        out = tensor.torch()
        return _device(out.clone() if backend == "pread" else out, device)
    mapped = tensor._mapped() if backend == "mmap" else None
    if mapped is None:
        array = tensor.numpy(copy=True)
    else:
        import numpy

        array = numpy.ndarray(tensor.shape, _arrays.numpy_dtype(tensor.dtype), mapped[0], mapped[1])
    return _converted(array, framework, device)


def _converted(array: Any, framework: str, device: Any) -> Any:
    if framework == "np":
        return array
    if framework == "pt":
        import torch

        return _device(torch.from_numpy(array), device)
    if framework == "flax":
        import jax.numpy

        return jax.numpy.asarray(array)
    if framework == "mlx":
        import mlx.core

        return mlx.core.array(array)
    if framework == "tf":
        import tensorflow

        return tensorflow.convert_to_tensor(array)
    import paddle

    out = paddle.to_tensor(array)
    return out if str(device) == "cpu" else out.to(device)
