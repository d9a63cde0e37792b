# SPDX-License-Identifier: Apache-2.0
"""``load``, ``load_file``, ``save`` and ``save_file`` with arrays of MLX, as safetensors.mlx."""

from __future__ import annotations

import os
from typing import Any

import mlx.core as mx
import numpy

from . import numpy as _arrays

__all__ = ["load", "load_file", "save", "save_file"]


def _to_numpy(tensors: dict[str, Any]) -> dict[str, Any]:
    return {name: numpy.asarray(array) for name, array in tensors.items()}


def _from_numpy(arrays: dict[str, Any]) -> dict[str, Any]:
    return {name: mx.array(array) for name, array in arrays.items()}


def save(tensors: dict[str, Any], metadata: dict[str, str] | None = None) -> bytes:
    """A safetensors file in memory."""
    return _arrays.save(_to_numpy(tensors), metadata)


def save_file(tensors: dict[str, Any], filename: str | os.PathLike[str], metadata: dict[str, str] | None = None) -> None:
    """Writes a safetensors file."""
    _arrays.save_file(_to_numpy(tensors), filename, metadata)


def load(data: bytes) -> dict[str, Any]:
    """The tensors of a file in memory."""
    return _from_numpy(_arrays.load(data))


def load_file(filename: str | os.PathLike[str], *, backend: str = "mmap") -> dict[str, Any]:
    """The tensors of a file, in any container."""
    return _from_numpy(_arrays.load_file(filename, backend=backend))
