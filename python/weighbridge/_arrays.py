# SPDX-License-Identifier: Apache-2.0
"""Elements as arrays of NumPy, PyTorch and JAX, and their arrays as elements. Imports each of these when it is first needed."""

from __future__ import annotations

import sys
from array import array

from ._errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

# The names of NumPy's own dtypes, by ours.
NUMPY_NAMES = {
    "boolean": "bool", "bool": "bool", "u8": "uint8", "i8": "int8", "u16": "uint16", "i16": "int16", "u32": "uint32", "i32": "int32",
    "u64": "uint64", "i64": "int64", "f16": "float16", "f32": "float32", "f64": "float64", "complex64": "complex64",
    "complex128": "complex128",
}
# Those of ml_dtypes.
ML_NAMES = {
    "bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "f8_e8m0": "float8_e8m0fnu",
    "f8_e4m3fnuz": "float8_e4m3fnuz", "f8_e5m2fnuz": "float8_e5m2fnuz",
}
# Those of PyTorch that differ from NumPy's.
TORCH_NAMES = {**ML_NAMES, "f4": "float4_e2m1fn_x2"}
# Integers below a byte, which NumPy lacks, and the type that holds them. A caller's "i4" is NumPy's name of 32 bits.
SMALL_INTEGERS = {"i4": "i8", "u4": "u8", "i2": "i8", "u2": "u8"}
_OURS = {theirs: ours for ours, theirs in {**NUMPY_NAMES, **ML_NAMES}.items() if ours != "boolean"}


def our_name(dtype: Any) -> str:
    """Our name ("bf16") of a dtype: ours, NumPy's, PyTorch's, or an object with that name."""
    if isinstance(dtype, str):
        plain = dtype.removeprefix("torch.")
        name = _OURS.get(plain, plain)
        if name in NUMPY_NAMES or name in TORCH_NAMES:
            return name
        if plain.lower() in NUMPY_NAMES or plain.lower() in TORCH_NAMES:
            return plain.lower()
        try:  # NumPy's other names: "half", "<f4"
            import numpy

            meant = numpy.dtype(plain)
            if meant.byteorder == (">" if sys.byteorder == "little" else "<"):
                raise UsageError(f"elements are read in this machine's byte order, not as {dtype!r}")
            return _OURS.get(meant.name, name)
        except (ImportError, TypeError):
            return name
    name = str(dtype).removeprefix("torch.")
    if name in _OURS:
        return _OURS[name]
    if isinstance(dtype, type):
        name = getattr(dtype, "__name__", name)
        if name in _OURS:
            return _OURS[name]
        if name in ("float", "int"):
            return "f64" if name == "float" else "i64"
    raise UsageError(f"no tensor has elements of type {dtype!r}")


_AS_F32 = "; Tensor.numpy('f32') casts it"


def numpy_dtype(name: str, castable: bool = True) -> "np.dtype[Any]":
    """NumPy's dtype for ours; from ml_dtypes for bf16 and the float8s. Errors suggest a cast only if the elements can be cast."""
    import numpy

    if name in NUMPY_NAMES:
        return numpy.dtype(NUMPY_NAMES[name])
    if name in ML_NAMES:
        try:
            import ml_dtypes
        except ImportError as error:
            raise ImportError(f"NumPy has no {name}: install ml_dtypes{_AS_F32 if castable else ''}") from error
        found: np.dtype[Any] = numpy.dtype(getattr(ml_dtypes, ML_NAMES[name]))
        return found
    if name in SMALL_INTEGERS:
        raise UsageError(f"NumPy has no integers of {name[1:]} bits: Tensor.numpy({SMALL_INTEGERS[name]!r}) casts them")
    if name not in TORCH_NAMES and not name.startswith("f6_"):
        raise UsageError(f"no dtype is called {name!r}: there are {', '.join([*NUMPY_NAMES, *TORCH_NAMES])}")
    raise UsageError(f"NumPy has no {name}{_AS_F32 if castable else ''}")


def as_numpy(bits: Any, name: str) -> Any:
    """An array of bits (uint16 for bf16) as an array of its dtype."""
    return bits.view(numpy_dtype(name)) if name in ML_NAMES else bits


def torch_dtype(name: str) -> Any:
    """PyTorch's dtype for ours."""
    import torch

    if name in SMALL_INTEGERS:
        raise UsageError(f"PyTorch has no integers of {name[1:]} bits: Tensor.torch({SMALL_INTEGERS[name]!r}) casts them")
    found = getattr(torch, TORCH_NAMES.get(name) or NUMPY_NAMES.get(name, ""), None)
    if found is None:
        raise UsageError(f"this version of PyTorch has no {name}; Tensor.torch('f32') casts it")
    return found


def of_array(value: Any) -> tuple[str, list[int], Any]:
    """The dtype, the shape and the contiguous bytes of an array: of NumPy, PyTorch or JAX, with DLPack, or a buffer."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        name = our_name(value.dtype)
        value = value.detach()
        if value.device.type != "cpu":
            value = value.cpu()
        shape = list(value.shape)
        if value.is_sparse or value.layout != torch.strided:
            raise UsageError("a sparse tensor of PyTorch cannot be saved: make it dense first")
        value = value.resolve_conj().resolve_neg()
        return name, shape, _bytes_of_torch(torch, value)
    if isinstance(value, (bytes, bytearray, memoryview, array)):
        return _of_buffer(value)
    try:
        import numpy
    except ImportError:
        return _of_buffer(value)
    if not isinstance(value, numpy.ndarray):
        value = numpy.from_dlpack(value) if hasattr(value, "__dlpack__") and not hasattr(value, "__array__") else numpy.asarray(value)
    if value.nbytes and value.__array_interface__["data"][0] == 0:
        raise UsageError("an array without memory cannot be saved: its address is null")
    masked = sys.modules.get("numpy.ma")
    if masked is not None and masked.is_masked(value):
        raise UsageError("a masked array cannot be saved: fill it first, with filled()")
    if value.dtype.byteorder == (">" if sys.byteorder == "little" else "<"):
        value = value.astype(value.dtype.newbyteorder("="))
    name = our_name(value.dtype.name)
    if name not in NUMPY_NAMES and name not in ML_NAMES:
        raise UsageError(f"no tensor has elements of type {value.dtype.name}")
    return name, list(value.shape), numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8)


def _of_buffer(value: Any) -> tuple[str, list[int], Any]:
    try:
        view = memoryview(value)
    except TypeError:
        raise UsageError(f"a {type(value).__name__} cannot be saved: it has neither DLPack nor the buffer protocol") from None
    names = {"B": "u8", "b": "i8", "H": "u16", "h": "i16", "I": "u32", "i": "i32", "Q": "u64", "q": "i64", "L": "u64", "l": "i64", "e": "f16",
             "f": "f32", "d": "f64", "?": "bool"}
    if view.format not in names:
        raise UsageError(f"a buffer of format {view.format!r} cannot be saved")
    return names[view.format], list(view.shape or ()), view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _bytes_of_torch(torch: Any, value: Any) -> Any:
    value = value.contiguous()
    if value.numel() == 0:
        return torch.empty(0, dtype=torch.uint8)
    return value.reshape(-1).view(torch.uint8)
