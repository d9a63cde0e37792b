# SPDX-License-Identifier: Apache-2.0
"""Checkpoints as the difference from another: make, apply and fold patches."""

from __future__ import annotations

import json
import os

from . import _core
from ._jobs import Written, _model_of, _require_names, _written
from ._progress import settings
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from typing_extensions import Unpack

    from .typing import ConvertOptions, Limits, ModelSource, Progress, StrPath


class Patch(Record):
    """What a patch changes.

    Attributes
    ----------
    base, result : str
        Content digests of the models.
    tensors : int
        Tensors of the result.
    changed, added, removed, renamed : int
        Tensors with elements that differ; tensors that only the result or only the base has; tensors with another name.
    replaced : int
        Tensors that are stored as they are: they have another shape, dtype or layout, or are smaller this way.
    elements, differing : int
        Elements of the tensors that changed, and those of them that differ. Tensors that are stored as dense differences count all.
    bytes : int
        Stored bytes of the changes.
    replaces_metadata : bool
        Whether it changes metadata, which neither digest covers.
    reencoded : bool
        Whether another tool compressed it again, so that it is read in order: valid, and slower.
    """

    base: str
    result: str
    tensors: int
    changed: int
    added: int
    removed: int
    renamed: int
    replaced: int
    elements: int
    differing: int
    bytes: int
    replaces_metadata: bool
    reencoded: bool


def _handles(patches: Any, limits: Limits | None) -> list[_core.Model]:
    return [_model_of(each, limits) for each in (patches if isinstance(patches, (list, tuple)) else [patches])]


def make_patch(base: ModelSource, result: ModelSource, path: StrPath, *, metadata: bool = True, overwrite: bool = False, progress: Progress = None, limits: Limits | None = None) -> Patch:
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
    Patch

    Examples
    --------
    >>> wb.make_patch("model.safetensors", "tuned.safetensors", "tuned.patch.zt").changed
    1
    """
    return Patch.of(json.loads(_core.make_patch(_model_of(base, limits), _model_of(result, limits), os.fspath(path), metadata, overwrite,
                                                settings(limits, progress, what="patch"))))


def apply(base: ModelSource, /, patches: ModelSource | Sequence[ModelSource], path: StrPath, *, format: str | None = None, progress: Progress = None,
          limits: Limits | None = None, **options: Unpack[ConvertOptions]) -> Written:
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

    Returns
    -------
    Written
        As of :func:`convert`.
    """
    _require_names("apply", options, ("patches", "path", "format", "progress", "limits"))
    given, output = settings(limits, progress, what="apply"), os.fspath(path)
    return Written._made(output, _written(_core.patched(_model_of(base, limits), _handles(patches, limits), given), output, format, options, given))


def fold(patches: Sequence[ModelSource], path: StrPath, *, overwrite: bool = False, progress: Progress = None,
         limits: Limits | None = None) -> Patch:
    """Writes one patch that does what several do one after the other. The models are not needed.

    Parameters
    ----------
    patches : list of path or Model
        At least two, each of which begins where the one before it ends.
    path, overwrite, progress, limits
        As for :func:`make_patch`.

    Returns
    -------
    Patch
    """
    return Patch.of(json.loads(_core.fold_patches(_handles(patches, limits), os.fspath(path), overwrite, settings(limits, progress, what="fold"))))


__all__ = ("Patch", "apply", "fold", "make_patch")
