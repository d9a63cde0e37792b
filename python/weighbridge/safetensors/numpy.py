# SPDX-License-Identifier: Apache-2.0
"""``load``, ``load_file``, ``save`` and ``save_file`` with arrays of NumPy, as safetensors.numpy."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from . import TensorSpec, safe_open, serialize, serialize_file
from . import _all_numpy, _loaded, _opened

__all__ = ["load", "load_file", "save", "save_file"]


def _specs(tensors: dict[str, Any]) -> tuple[dict[str, TensorSpec], list[Any]]:
    held, out = [], {}
    for name, array in tensors.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"Key `{name}` is invalid, expected np.ndarray but received {type(array)}")
        if array.dtype.byteorder == (">" if sys.byteorder == "little" else "<"):
            array = array.astype(array.dtype.newbyteorder("="))
        array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        held.append(array)
        out[name] = TensorSpec(dtype=array.dtype.name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes)
    return out, held


def save(tensor_dict: dict[str, np.ndarray[Any, Any]], metadata: dict[str, str] | None = None) -> bytes:
    """A safetensors file in memory."""
    specs, held = _specs(tensor_dict)
    out = serialize(specs, metadata)
    del held
    return out


def save_file(tensor_dict: dict[str, np.ndarray[Any, Any]], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Writes a safetensors file."""
    specs, held = _specs(tensor_dict)
    serialize_file(specs, filename, metadata)
    del held


def load(data: bytes) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file in memory, copied."""
    return _loaded(data).numpy(copy=True)


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, np.ndarray[Any, Any]]:
    """The arrays of a file, in any container. Writable: pages are copied when they are written to."""
    if backend == "mmap":
        return _all_numpy(_opened(filename, str(filename)))
    with safe_open(filename, framework="np", backend=backend) as file:
        return file.get_tensors()
