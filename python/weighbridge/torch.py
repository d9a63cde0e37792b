# SPDX-License-Identifier: Apache-2.0
"""Models of any container in modules of PyTorch."""

from __future__ import annotations

import os
from typing import Any

import torch

from ._errors import MissingTensorError, UsageError
from ._model import Model
from ._model import open as _open

__all__ = ["load_state_dict", "state_dict"]


def state_dict(file: Model | str | os.PathLike[str], *, device: Any = None) -> dict[str, torch.Tensor]:
    """The tensors of a file in any container, by name. On the CPU, memory of the file, copied when it is written to."""
    model = file if isinstance(file, Model) else _open(file)
    return model.torch(device=device)


def load_state_dict(
    module: torch.nn.Module, file: Model | str | os.PathLike[str], strict: bool = True, *, device: Any = None, prefix: str = ""
) -> tuple[list[str], list[str]]:
    """Loads a file in any container into a module, one tensor at a time.

    Parameters
    ----------
    module : torch.nn.Module
    file : Model or path
    strict : bool
        Raise if the file lacks a parameter or buffer of the module, or has one that the module lacks.
    device : optional
        Where a tensor is moved before it is copied; by default where the module's own is.
    prefix : str
        Of the file's names: ``"bert."`` loads ``bert.x`` into ``x``.

    Returns
    -------
    (missing, unexpected) : lists of str
    """
    model = file if isinstance(file, Model) else _open(file)
    own = module.state_dict(keep_vars=True)
    missing = [name for name in own if prefix + name not in model]
    unexpected = [name for name in model if not name.startswith(prefix) or name[len(prefix) :] not in own]
    if strict and missing:
        raise MissingTensorError(f"{model.name} lacks {', '.join(map(repr, missing[:5]))}{' and more' if len(missing) > 5 else ''}")
    if strict and unexpected:
        raise UsageError(f"the module lacks {', '.join(map(repr, unexpected[:5]))}{' and more' if len(unexpected) > 5 else ''}")
    there = {name: (target, model[prefix + name]) for name, target in own.items() if prefix + name in model}
    for name, (target, tensor) in there.items():  # before the module is changed
        if tensor.shape != tuple(target.shape):
            raise UsageError(f"{name}: the file has shape {tensor.shape}, the module {tuple(target.shape)}")
    with torch.no_grad():
        for target, tensor in there.values():
            target.copy_(tensor.torch(device=device))
    return missing, unexpected
