# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as the difference from another: make, apply and fold patches."""

from __future__ import annotations

import json
import os

from . import _core
from ._jobs import _model_of, _written
from ._progress import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Unpack

    from ._model import Limits, Progress
    from ._options import ConvertOptions


def _handles(patches: Any, limits: Limits | None) -> list[_core.Model]:
    return [_model_of(each, limits) for each in (patches if isinstance(patches, (list, tuple)) else [patches])]


def _made(text: str) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(text)
    for key in ("path", "output"):
        said.pop(key, None)
    return said


def make_patch(base: Any, result: Any, path: str | os.PathLike[str], *, metadata: bool = True, overwrite: bool = False, progress: Progress = None,
               limits: Limits | None = None) -> dict[str, Any]:
    """Writes the patch that turns one model into another, bit by bit.

    Parameters
    ----------
    base, result : Model, path, mapping of arrays, or what :func:`open` takes
        The models, in any containers.
    path : path
        The patch: a file of zTensor.
    metadata : bool
        Whether the patch changes metadata, too.
    overwrite : bool
        Replace an existing file.
    progress, limits
        As for :func:`verify` and :func:`open`.

    Returns
    -------
    dict
        What the patch changes: `base` and `result` (content digests), `tensors`, `changed`, `added`, `removed`, `renamed`, `replaced`,
        `elements`, `differing`, `bytes`, `replaces_metadata`, `reencoded`.

    Examples
    --------
    >>> wb.make_patch("base.safetensors", "tuned.safetensors", "tuned.zt")["changed"]  # doctest: +SKIP
    """
    return _made(_core.make_patch(_model_of(base, limits), _model_of(result, limits), os.fspath(path), metadata, overwrite,
                                  settings(limits, progress, what="patch")))


def apply(base: Any, patches: Any, path: str | os.PathLike[str], *, format: str | None = None, progress: Progress = None,
          limits: Limits | None = None, **options: Unpack[ConvertOptions]) -> None:
    """Writes what patches make of a model. Checks the base before it writes anything, and the result by its digest.

    Parameters
    ----------
    base : Model, path, mapping of arrays, or what :func:`open` takes
        The model with the content digest that the first patch states.
    patches : path, Model, or a list of these
        A chain: each begins where the one before it ends.
    path : path
        The output. An extension names its format; a path that ends in ``/`` is a Hugging Face folder.
    format : str, optional
        In place of the extension.
    progress, limits
        As for :func:`verify` and :func:`open`.
    **options
        Those of :class:`ConvertOptions`.
    """
    given = settings(limits, progress, what="apply")
    _written(_core.patched(_model_of(base, limits), _handles(patches, limits), given), os.fspath(path), format, options, given)


def fold(patches: Any, path: str | os.PathLike[str], *, overwrite: bool = False, progress: Progress = None,
         limits: Limits | None = None) -> dict[str, Any]:
    """Writes one patch that does what several do one after the other. The models are not needed.

    Parameters
    ----------
    patches : list of path or Model
        At least two, each of which begins where the one before it ends.
    path, overwrite, progress, limits
        As for :func:`make_patch`.

    Returns
    -------
    dict
        As of :func:`make_patch`.
    """
    return _made(_core.fold_patches(_handles(patches, limits), os.fspath(path), overwrite, settings(limits, progress, what="fold")))


__all__ = ("apply", "fold", "make_patch")
