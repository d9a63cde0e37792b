# SPDX-License-Identifier: Apache-2.0
"""The interface of the package safetensors, over every container that weighbridge opens.

``import weighbridge.safetensors as safetensors`` is a drop-in for it. Files are written by weighbridge: synced, read back, compared, and
renamed into place. One module, as in the original: its names are imported from here.
"""

from __future__ import annotations

import ctypes
import json
import operator
import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from .. import _arrays, _core
from .._errors import Error
from .._model import Model, Tensor
from .._model import open as _open
from .._progress import settings
from .._shown import shown

__all__ = ["PrefetchLoader", "PySafeSlice", "SafetensorError", "TensorMeta", "TensorSpec", "deserialize", "safe_open", "serialize", "serialize_file"]

# The version of the original whose interface this is: callers compare it.
__version__ = "0.8.0"

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


_DEVICES = ("cpu", "cuda", "mps", "npu", "xpu", "xla", "mlu", "hpu", "musa")
_SUPPORTED = [_arrays.NUMPY_NAMES.get(name) or _arrays.TORCH_NAMES.get(name) or name for name in _HEADER_NAMES]


class SafetensorError(Exception):
    """What goes wrong here, by the name and with the texts of safetensors. ``__cause__`` is the weighbridge.Error, if there is one."""

    def __str__(self) -> str:
        return shown(super().__str__())


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
        _core.open(out, {"format": "safetensors", "checks": "structure"}, settings())
    except Error as error:
        raise SafetensorError(f"Error while serializing: {error}") from error
    return out


def serialize_file(tensor_dict: Mapping[str, TensorSpec], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a safetensors file."""
    items = [(name, _OURS[tensor.dtype], tensor.shape, tensor._memory()) for name, tensor in _checked(tensor_dict)]
    try:
        model = _core.build(items, _metadata(metadata) or None)
        _core.plan(model, "safetensors", {"overwrite": True}).execute(os.fspath(filename), settings())
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
            return _open(file, checks="structure")
        except Error as error:
            if not error.rule.startswith("file/"):
                raise
            return _open(file, checks="structure", format="safetensors")  # which says what a reader of safetensors would
    except FileNotFoundError:
        raise FileNotFoundError(shown(f"No such file or directory: {name}")) from None
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
        for argument, value in (("framework", framework), ("backend", backend)):
            if not isinstance(value, str):
                raise TypeError(f"argument '{argument}': '{type(value).__name__}' object is not an instance of 'str'")
        if framework not in _FRAMEWORKS:
            raise SafetensorError(f"framework {framework} is invalid")
        if backend not in ("mmap", "pread"):
            raise SafetensorError(f'backend "{backend}" is invalid (expected one of: "mmap", "pread")')
        self._framework = _FRAMEWORKS[framework]
        self._device = _device_name(device)
        if self._framework not in ("pt", "paddle") and self._device != "cpu":
            long = {"np": "numpy", "tf": "tensorflow"}.get(self._framework, self._framework)
            raise SafetensorError(f"Device {device if isinstance(device, int) else self._device} is not supported for framework {long}")
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
        found = self._open()._handle.attributes()
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
            raise SafetensorError('prefetch is only compatible with framework="pt"')
        target = self._device if device is None else _device_name(device)
        if not target.startswith("cuda"):
            raise SafetensorError(f"prefetch loads to cuda devices, not {target}")
        order = self.offset_keys()
        chosen = dict.fromkeys(order) if plan is None else {name: self._rows(name, rows) for name, rows in plan.items()}
        if plan is not None and not chosen:
            raise SafetensorError("prefetch plan selects no tensors")
        rows = {name: chosen[name] for name in order if name in chosen}
        for name in rows:
            dtype = model[name].dtype
            if dtype not in _arrays.NUMPY_NAMES and dtype not in _arrays.TORCH_NAMES:
                raise SafetensorError(f"prefetch cannot hand out dtype {_HEADER_NAMES.get(dtype, dtype)}: torch has no matching dtype")
        return PrefetchLoader(model, rows, target, threads)

    def _rows(self, name: Any, rows: Any) -> slice | None:
        """The rows that a plan names, checked. Python would clamp them; a plan that misses the tensor is a mistake."""
        if not isinstance(name, str):
            raise SafetensorError("prefetch plan keys must be tensor names")
        shape = self._find(name).shape
        if rows is None:
            return None
        if not isinstance(rows, slice):
            raise SafetensorError(f"prefetch plan values must be None or a slice, got {type(rows)} for {name}")
        if not shape:
            raise SafetensorError(f"cannot slice rows of the 0-d tensor {name}")
        for bound in ("start", "stop"):
            value = getattr(rows, bound)
            if value is not None and not hasattr(value, "__index__"):
                raise SafetensorError(f"prefetch plan slice bounds for {name} must be integers or None")
            if value is not None and abs(operator.index(value)) > shape[0]:
                raise SafetensorError(f"prefetch plan slice {bound} {value} for {name} is out of range for {shape[0]} rows")
        try:
            first, last, step = rows.indices(shape[0])
        except (TypeError, ValueError) as error:
            raise SafetensorError(f"invalid prefetch plan slice for {name}: {error}") from None
        if step != 1:
            raise SafetensorError(f"prefetch plan slices must have step 1, got {step} for {name}")
        return slice(first, max(first, last))

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
        model._require_copies(list(model), settings())
        return {name: _given(tensor, self._framework, self._device, self._backend) for name, tensor in model.items()}

    def get_slice(self, name: str) -> PySafeSlice:
        """A tensor to take slices of."""
        return PySafeSlice(self._find(name), self._framework, self._device, self._backend)


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
        """In the order of their bytes in the file."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def take(self, name: str) -> Any:
        """A tensor, once it is there. Each can be taken once."""
        if self._closed:
            raise SafetensorError(f"{name}: prefetch loader closed")
        coming = self._coming.pop(name, None)  # once, whichever thread asks
        if coming is None:
            raise SafetensorError(f"{name}: tensor already delivered (prefetch hands each tensor out once, via take or iteration)"
                                  if name in self._names else f"tensor {name} is not in the prefetch plan")
        return coming.result()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for name in self._names:
            if name in self._coming or self._closed:
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
    """A tensor whose slices are read: ``f.get_slice(name)[:2, 0]``.

    As in the original, memory of the file as a tensor of PyTorch (``framework="pt", backend="mmap"``) takes the indices of PyTorch. Everything
    else takes ints, slices with a positive step and ``...``, and a slice that ends outside raises :class:`SafetensorError`.
    """

    def __init__(self, tensor: Tensor, framework: str, device: Any, backend: str = "mmap") -> None:
        self._tensor, self._framework, self._device, self._backend = tensor, framework, device, backend

    def get_shape(self) -> list[int]:
        """The shape of the tensor."""
        return list(self._tensor.shape)

    def get_dtype(self) -> str:
        """As in the header: ``"F32"``."""
        return _HEADER_NAMES.get(self._tensor.dtype, self._tensor.dtype)

    def __getitem__(self, key: Any) -> Any:
        """Elements by an index."""
        _header_name(self._tensor._model, self._tensor.name, self._tensor.dtype)
        if self._framework == "pt" and self._backend == "mmap" and self._tensor.is_view:
            return _device(self._tensor.torch()[key], self._device)
        chosen = self._indices(key)
        if self._framework == "pt" and self._tensor.dtype in _arrays.TORCH_NAMES:
            return _device(self._tensor.torch()[chosen].clone(), self._device)
        import numpy

        return _converted(numpy.array(self._tensor[chosen], order="C"), self._framework, self._device)

    def _indices(self, key: Any) -> tuple[int | slice, ...]:
        shape = self._tensor.shape
        if isinstance(key, list):
            if key:
                raise SafetensorError("Non empty lists are not implemented")
            key = slice(0, 0)
        keys = key if isinstance(key, tuple) else (key,)
        dots = [i for i, one in enumerate(keys) if one is Ellipsis]
        if len(dots) > 1:
            raise SafetensorError("Only one ellipsis (...) is allowed in slice index")
        if dots:
            keys = (*keys[: dots[0]], *[slice(None)] * (len(shape) - len(keys) + 1), *keys[dots[0] + 1 :])
        out: list[int | slice] = []
        shown: list[str] = []
        outside = None
        for dimension, one in enumerate(keys):
            size = shape[dimension] if dimension < len(shape) else 0
            if isinstance(one, slice):
                step = 1 if one.step is None else operator.index(one.step)
                if step < 1:
                    raise SafetensorError(f"Slice step must be a positive integer, got {step}")
                begin = 0 if one.start is None else operator.index(one.start)
                end = size if one.stop is None else operator.index(one.stop)
                begin, end = (begin + size if begin < 0 else begin), (end + size if end < 0 else end)
                if outside is None and (begin < 0 or begin > size or end > size):
                    outside = (dimension, begin if not 0 <= begin <= size else end - 1)
                out.append(slice(begin, max(begin, end), step))
                shown.append(f"{'' if one.start is None else one.start}:{'' if one.stop is None else one.stop}" + (f":{step}" if step > 1 else ""))
            elif hasattr(one, "__index__"):
                at = operator.index(one)
                if at < -size:
                    raise SafetensorError(f"Invalid index {at} for dimension {dimension} of size {size}")
                at = at + size if at < 0 else at
                if outside is None and at >= size:
                    outside = (dimension, at)
                out.append(at)
                shown.append(str(at))
            else:
                raise SafetensorError(f"Unsupported slice index at position {dimension}: expected slice, int, or ellipsis")
        about = f"Error during slicing [{', '.join(shown)}] with shape {list(shape)}: "
        if len(keys) > len(shape):
            raise SafetensorError(about + "more slicing indexes than dimensions in tensor")
        if outside is not None:
            raise SafetensorError(about + f"index {outside[1]} out of bounds for tensor dimension #{outside[0]} of size {shape[outside[0]]}")
        return tuple(out)


def _device_name(device: Any) -> str:
    """The name of a device, with its number: "cuda:0" of "cuda" and of 0."""
    if device is None:
        return "cpu"
    if type(device).__module__ == "torch" and type(device).__name__ == "device":
        device = str(device)
    if isinstance(device, int) and not isinstance(device, bool) and device >= 0:
        return f"cuda:{device}"
    kind, colon, number = str(device).partition(":")
    if not isinstance(device, str) or kind not in _DEVICES or (colon and (kind == "cpu" or not number.isdecimal())):
        raise SafetensorError(f"device {device} is invalid")
    if kind == "mps" and number not in ("", "0"):
        raise SafetensorError(f"device {device} is invalid: only mps or mps:0 is supported")
    return kind if kind in ("cpu", "mps") else f"{kind}:{number or 0}"


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
