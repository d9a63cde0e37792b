# SPDX-License-Identifier: Apache-2.0
"""What is done with whole models: hash, plan, convert, save."""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import _arrays, _core
from ._errors import UsageError
from ._model import Model, Tensor, _texts
from ._model import open as open_model
from ._progress import settings
from ._record import Record
from ._shown import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ._model import Limits, Progress


class Item(Record):
    """One thing that a conversion cannot carry over unchanged.

    Attributes
    ----------
    kind : str
        ``"dtype"``, ``"alias"``, ``"tokenizer"``, ...: what `allow` takes.
    subject : str
        ``tensors["w"].parts["data"]``, ``attributes["k"]``.
    before, after : str
        What it is, and what it becomes.
    """

    __slots__ = ("kind", "subject", "before", "after")
    if TYPE_CHECKING:
        kind: str
        subject: str
        before: str
        after: str

    def __str__(self) -> str:
        return shown(f"{self.kind}: {self.subject}: {self.before} -> {self.after}")


class Plan:
    """What a conversion would do, before a byte is written. Made by :func:`plan`; :meth:`execute` does exactly this."""

    def __init__(self, plan: _core.Plan) -> None:
        self._plan = plan

    @property
    def blockers(self) -> list[Item]:
        """What the target cannot hold, whatever the options."""
        return [Item(*item) for item in self._plan.blockers]

    @property
    def losses(self) -> list[Item]:
        """What a reader of the output cannot get back."""
        return [Item(*item) for item in self._plan.losses]

    @property
    def changes(self) -> list[Item]:
        """What is encoded in another way, without loss."""
        return [Item(*item) for item in self._plan.changes]

    @property
    def refused(self) -> list[Item]:
        """The losses that `allow` does not name. :meth:`execute` raises while there is one."""
        return [Item(*item) for item in self._plan.refused]

    @property
    def possible(self) -> bool:
        """Whether :meth:`execute` would start."""
        return self._plan.possible

    @property
    def output_size(self) -> int:
        """Bytes of the output; an upper bound with an encoding."""
        return self._plan.output_size

    @property
    def format(self) -> str:
        """The name of the target."""
        return self._plan.target_format

    def execute(self, path: str | os.PathLike[str], *, limits: Limits | None = None, progress: Progress = None) -> list[dict[str, Any]]:
        """Writes a temporary beside `path`, syncs it, reads it back, compares, and renames it.

        Returns
        -------
        list of dict
            What casts did to values: from, to, tensors, values, overflowed, flushed, largest_error.
        """
        return self._plan.execute(os.fspath(path), settings(limits, progress, what="convert"))

    def __repr__(self) -> str:
        state = "possible" if self.possible else "not possible"
        return f"<weighbridge.Plan {self._plan.source_format} -> {self.format}, {state}, {len(self.losses)} losses, {len(self.changes)} changes>"


def _options(allow: Iterable[str] | str, given: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    kinds = _texts(allow)
    if kinds:
        out["allow"] = ",".join(kinds)
    for name, value in given.items():
        if value is None:
            continue
        option = name.replace("_", "-")
        if option in ("level", "replace", "version", "shard-size"):
            out[option] = value
        elif isinstance(value, bool):
            out[option] = "true" if value else "false"
        elif option in ("cast", "dequantize"):
            out[option] = _arrays.our_name(value)
        else:
            out[option] = str(value)
    return out


_VIEW = ("only", "without", "rename", "set", "unset")


def _opened(source: Any, limits: Limits | None) -> Model:
    if isinstance(source, Model):
        return source
    if isinstance(source, Mapping):
        return Model(_core.build(_specs(source), None), "<arrays>")
    return open_model(source, limits=limits)


def _adapters(given: Any) -> list[tuple[str, float]]:
    """Paths with their scales, of a path, several, or a mapping from paths to scales."""
    if isinstance(given, (str, os.PathLike)):
        return [(os.fspath(given), 1.0)]
    if isinstance(given, Mapping):
        return [(os.fspath(path), float(scale)) for path, scale in given.items()]
    return [(os.fspath(path), 1.0) for path in given]


def _model_of(source: Any, limits: Limits | None, options: dict[str, Any] | None = None) -> _core.Model:
    """The model of what a caller gave: several joined, with the changes of Model.view() and the adapters, which are taken out of `options`."""
    taken = options if options is not None else {}
    on_duplicate, adapters = taken.pop("on_duplicate", None), taken.pop("merge_lora", None)
    if isinstance(source, (list, tuple)):
        handles = [_opened(each, limits)._handle for each in source]
        model = Model(_core.join(handles, on_duplicate or "error", settings(limits, None, what="open")), "<joined>")
    elif on_duplicate is not None:
        raise UsageError("on_duplicate is for several models: give a list of them")
    else:
        model = _opened(source, limits)
    changes = {name: taken.pop(name) for name in _VIEW if name in taken}
    handle = (model.view(**changes) if any(changes.values()) else model)._handle
    if adapters:
        dense = taken.get("dequantize")
        handle = _core.merge_lora(handle, _adapters(adapters), _arrays.our_name(dense) if dense is not None else "", settings(limits, None, what="merge"))
    return handle


def plan(
    source: Any,
    format: str,
    *,
    overwrite: bool = False,
    allow: Iterable[str] | str = (),
    cast: Any = None,
    encoding: str | None = None,
    level: int | None = None,
    digest: str | None = None,
    quantize: str | None = None,
    dequantize: Any = None,
    version: str | None = None,
    shard_size: int | None = None,
    limits: Limits | None = None,
    **more: Any,
) -> Plan:
    """What converting to a format would do. Writes nothing.

    Parameters
    ----------
    source : Model, path, or what :func:`open` takes, or a list of these
        The model. Several are joined into one: their tensors, metadata and tokenizer; `on_duplicate` says what happens if two have the same name.
    format : str
        The name of the target: ``"zt"``, ``"safetensors"``, ``"embd"``, ``"slm"``, ``"stb"``, ``"hf"``, ...
    overwrite : bool
        Let :meth:`Plan.execute` replace a file that exists.
    allow : str or list of str
        Kinds of loss to accept: ``"alias"``, ``"attribute"``, ``"tokenizer"``, ``"precision"``, ...
    cast : str or dtype, optional
        Cast every floating-point tensor. Accepts the loss of precision, but not overflow: that needs ``allow="overflow"``.
    dequantize : str or dtype, optional
        ``"f32"``, ``"f16"`` or ``"bf16"``: make quantized tensors dense. Accepts the loss of layout and precision. Other tensors keep
        their dtype.
    encoding, level, digest, quantize, version, shard_size
        As the flags of ``weighbridge convert``.
    **more
        Options of one format (``keep_gqa=True`` for slm), and what :meth:`Model.view` takes: only, without, rename, set, unset.
        ``on_duplicate``: ``"error"``, ``"first"`` or ``"last"``, for several models. ``merge_lora``: the path of a LoRA adapter, a list of
        paths, or a mapping from paths to scales.
    """
    model = _model_of(source, limits, more)
    given = dict(cast=cast, encoding=encoding, level=level, digest=digest, quantize=quantize, dequantize=dequantize, version=version, shard_size=shard_size,
                 replace=overwrite, **more)
    return Plan(_core.plan(model, format, _options(allow, given)))


def convert(source: Any, path: str | os.PathLike[str], *, format: str | None = None, overwrite: bool = False, allow: Iterable[str] | str = (),
            progress: Progress = None, limits: Limits | None = None, **options: Any) -> list[dict[str, Any]]:
    """Converts a model to the container that the extension of `path` names.

    Parameters
    ----------
    source : path, Model, or what :func:`open` takes, or a list of these
        The model. Several are joined into one, as in :func:`plan`.
    path : path
        The output. An extension names its format; a path that ends in ``/`` is a Hugging Face folder.
    format : str, optional
        In place of the extension.
    overwrite : bool
        Replace an output that exists.
    allow, progress, limits, **options
        As for :func:`plan`.

    Returns
    -------
    list of dict
        What casts did to values.

    Examples
    --------
    >>> wb.convert("model.safetensors", "model.zt", encoding="zstd")  # doctest: +SKIP
    """
    output = os.fspath(path)
    model = _model_of(source, limits, options)
    made = _options(allow, dict(options, replace=overwrite))
    given = settings(limits, progress, what="convert")
    if format is None:
        return _core.save(model, output, made, given)
    return _core.plan(model, format, made).execute(output, given)


def _tensor_spec(name: str, value: Any) -> tuple[str, list[int], Any]:
    if isinstance(value, Tensor):
        value = value.numpy()
    try:
        return _arrays.of_array(value)
    except UsageError as error:
        raise UsageError(f"tensor {name!r}: {error}") from None


def _specs(tensors: Mapping[str, Any]) -> list[tuple[str, str, list[int], Any]]:
    if not isinstance(tensors, Mapping):
        raise TypeError(f"tensors are a mapping from names to arrays, not a {type(tensors).__name__}")
    for name in tensors:
        if not isinstance(name, str):
            raise TypeError(f"the name of a tensor is a str, not {name!r}")
    return [(name, *_tensor_spec(name, value)) for name, value in tensors.items()]


def save(path: str | os.PathLike[str], tensors: Mapping[str, Any] | Model, metadata: Mapping[str, Any] | None = None, *, format: str | None = None,
         overwrite: bool = True, allow: Iterable[str] | str = (), progress: Progress = None, limits: Limits | None = None, **options: Any) -> None:
    """Saves arrays as a file of any container, by its extension.

    Parameters
    ----------
    path : path
        ``x.zt``, ``x.safetensors``, ``x.stb``, ...
    tensors : mapping from str to array
        Arrays of NumPy, PyTorch or JAX, :class:`Tensor`, and anything with DLPack or the buffer protocol.
    metadata : mapping, optional
        Attributes of the model: str, int, float, bool, None, bytes, lists and dicts of these, as far as the container holds them.
    overwrite : bool
        Replace a file that exists. The old one stays until the new one is complete.
    """
    if isinstance(tensors, Model):
        model = tensors._handle
        if metadata is not None:
            raise UsageError("metadata is for arrays: a model has its own")
    else:
        model = _core.build(_specs(tensors), dict(metadata) if metadata else None)
    made = _options(allow, dict(options, replace=overwrite))
    given = settings(limits, progress, what="save")
    if format is None:
        _core.save(model, os.fspath(path), made, given)
    else:
        _core.plan(model, format, made).execute(os.fspath(path), given)


def hash(file: Any, *, names: bool = True, version: int = 2, progress: Progress = None, limits: Limits | None = None) -> str:
    """The content digest of a model: equal for the same tensors in any container.

    Returns
    -------
    str
        ``"wb2:"`` and 64 digits.
    """
    return _core.hash(_model_of(file, limits), names, version, settings(limits, progress, what="hash"))


def formats() -> list[dict[str, Any]]:
    """The containers that this build knows: name, title, extensions, readable, writable."""
    return _core.formats()


__all__ = ("Item", "Plan", "convert", "formats", "hash", "plan", "save")
