# SPDX-License-Identifier: Apache-2.0
"""What is done with whole models: hash, plan, convert, save."""

from __future__ import annotations

import os
import warnings
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
    from collections.abc import Sequence
    from typing import Any

    from typing_extensions import Unpack

    from .typing import ConvertOptions, Limits, ModelSource, Progress, StrPath


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

    kind: str
    subject: str
    before: str
    after: str

    def __str__(self) -> str:
        return shown(f"{self.kind}: {self.subject}: {self.before} -> {self.after}")


class LossWarning(UserWarning):
    """A conversion lost something beside the weights that needs no consent, and got none: pass ``allow="file"`` to give it."""


class Cast(Record):
    """What a conversion did to the values of tensors of one dtype.

    Attributes
    ----------
    before, after : str
        The dtypes.
    tensors, values : int
        How many there were.
    overflowed, flushed : int
        Values beyond the range of the new dtype, which became infinite, NaN or its largest value; and values that became 0.
    largest_error : float
        The largest absolute difference of a finite value that did not overflow.
    """

    before: str
    after: str
    tensors: int
    values: int
    overflowed: int
    flushed: int
    largest_error: float


class Written(Record):
    """What a conversion wrote.

    Attributes
    ----------
    path : str
        The output.
    format : str
        The name of its container.
    size : int
        Bytes of the output, of all files together if it is a folder.
    losses : list of Item
        What a reader of the output cannot get back. Those that `allow` does not name and no option asks for were warned of: :class:`LossWarning`.
    changes : list of Item
        What is encoded in another way, without loss.
    casts : list of Cast
        What casts did to values.
    """

    path: str
    format: str
    size: int
    losses: list[Item]
    changes: list[Item]
    casts: list[Cast]

    @classmethod
    def _made(cls, path: str, told: _core._Written) -> Written:
        """The record of what was written, after a warning of the losses that nobody consented to."""
        format, size, losses, changes, casts, silent = told
        if silent:
            first = ", ".join(Item(*each).subject for each in silent[:_MOST_NAMED]) + (
                f" and {len(silent) - _MOST_NAMED:,} more" if len(silent) > _MOST_NAMED else "")
            warnings.warn(shown(f"{path}: {len(silent):,} {'loss' if len(silent) == 1 else 'losses'} that allow does not name: {first}"), LossWarning,
                          stacklevel=3)
        return cls(path, format, size, [Item(*each) for each in losses], [Item(*each) for each in changes],
                   [Cast(*each) for each in casts])


_MOST_NAMED = 3


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

    def execute(self, path: StrPath, *, limits: Limits | None = None, progress: Progress = None) -> Written:
        """Writes a temporary beside `path`, syncs it, reads it back, compares, and renames it.

        Returns
        -------
        Written
        """
        return Written._made(os.fspath(path), self._plan.execute(os.fspath(path), settings(limits, progress, what="convert")))

    def __repr__(self) -> str:
        state = "possible" if self.possible else "not possible"
        return f"<weighbridge.Plan {self._plan.source_format} -> {self.format}, {state}, {len(self.losses)} losses, {len(self.changes)} changes>"


_DTYPES = {name.replace("-", "_") for of, name, type, *_ in _core.options() if of == "convert" and type == "dtype"}


_REPEATED = {name.replace("-", "_") for of, name, *_, repeats in _core.options() if of == "convert" and repeats}


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options as the extension module takes them: dtypes by our names, and lists."""
    out: dict[str, Any] = {}
    for name, value in given.items():
        if name in _DTYPES and value is not None and not (isinstance(value, str) and value == "auto"):
            value = _arrays.our_name(value)
        out[name] = _texts(value) if name in _REPEATED and value is not None else value
    return out


def _require_names(function: str, given: Mapping[str, Any], own: tuple[str, ...] = ()) -> None:
    """Raises TypeError for a name that is neither an option of conversions nor an argument of the function, as Python 3.13 says it."""
    for name in given:
        if name not in _NAMES:
            from difflib import get_close_matches

            near = get_close_matches(name, sorted({*_NAMES, *own, *_MEANT}), 1)
            hint = f". Did you mean {_MEANT.get(near[0], near[0])!r}?" if near else ". The options are those of weighbridge.typing.ConvertOptions"
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{hint}")


# Words of other programs, and of version 0.2, for options.
_MEANT = {"dtype": "cast", "force": "overwrite", "filter": "only", "glob": "only", "exclude": "without", "replace": "overwrite"}
_NAMES = frozenset(name.replace("-", "_") for of, name, _, python, *_ in _core.options() if python and of in ("convert", "view", "inputs"))
_VIEW = [name for of, name, *_ in _core.options() if of == "view"]


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
    return [each if isinstance(each, tuple) else (os.fspath(each), 1.0) for each in given]


def _whole(source: Any, limits: Limits | None, taken: dict[str, Any]) -> Model:
    """The model of what a caller gave: several joined."""
    on_duplicate = taken.pop("on_duplicate", None)
    if isinstance(source, (list, tuple)):
        handles = [_opened(each, limits)._handle for each in source]
        return Model(_core.join(handles, on_duplicate or "error", settings(limits, None, what="open")), "<joined>")
    if on_duplicate is not None:
        raise UsageError("on_duplicate is for several models: give a list of them")
    return _opened(source, limits)


def _model_of(source: Any, limits: Limits | None, options: dict[str, Any] | None = None) -> _core.Model:
    """The same with the changes of Model.view() and the adapters, which are taken out of `options`."""
    taken = options if options is not None else {}
    model, adapters, resize = _whole(source, limits, taken), taken.pop("merge_lora", None), bool(taken.pop("resize_vocab", False))
    if resize and not adapters:
        raise UsageError("resize_vocab is for an adapter: give it as merge_lora")
    changes = {name: taken.pop(name) for name in _VIEW if name in taken}
    handle = (model.view(**changes) if any(changes.values()) else model)._handle
    if adapters:
        dense = taken.get("dequantize")
        handle = _core.merge_lora(handle, _adapters(adapters), _options({"dequantize": dense})["dequantize"] or "", resize, settings(limits, None, what="merge"))
    return handle


def plan(source: ModelSource | Sequence[ModelSource], format: str, *, limits: Limits | None = None, **options: Unpack[ConvertOptions]) -> Plan:
    """What converting to a format would do. Writes nothing.

    Parameters
    ----------
    source : Model, path, or what :func:`open` takes, or a list of these
        The model. Several are joined into one: their tensors, metadata and tokenizer; `on_duplicate` says what happens if two have the same name.
    format : str
        The name of the target: ``"zt"``, ``"safetensors"``, ``"embd"``, ``"slm"``, ``"stb"``, ``"hf"``, ...
    **options
        Those of :class:`ConvertOptions`: `overwrite`, `allow`, `cast`, `dequantize`, `quantize`, `encoding`, `only`, ...
    """
    _require_names("plan", options, ("source", "format", "limits"))
    more = dict(options)
    return Plan(_core.plan(_model_of(source, limits, more), format, _options(more)))


def convert(source: ModelSource | Sequence[ModelSource], path: StrPath, *, format: str | None = None, statement: StrPath | None = None, progress: Progress = None, limits: Limits | None = None, **options: Unpack[ConvertOptions]) -> Written:
    """Converts a model to the container that the extension of `path` names.

    Parameters
    ----------
    source : path, Model, or what :func:`open` takes, or a list of these
        The model. Several are joined into one, as in :func:`plan`.
    path : path
        The output. An extension names its format; a path that ends in ``/`` is a Hugging Face folder.
    format : str, optional
        In place of the extension.
    statement : path, optional
        Also write how the file was made: digests of the source, of `path` and of other files, and the options. :func:`verify` checks it.
    progress, limits
        As for :func:`verify` and :func:`open`.
    **options
        Those of :class:`ConvertOptions`: `overwrite`, `allow`, `cast`, `dequantize`, `quantize`, `encoding`, `only`, ...

    Returns
    -------
    Written
        Losses that `allow` does not name are warned of too (:class:`LossWarning`). All but those of the kind ``"file"`` raise before anything is written.

    Examples
    --------
    >>> wb.convert("model.safetensors", "model.zt", encoding="zstd").format
    'zt'
    >>> wb.convert("model.safetensors", "half.safetensors", cast="f16").casts[0].after
    'f16'
    """
    _require_names("convert", options, _CONVERT)
    output, more = os.fspath(path), _options(options)
    given = settings(limits, progress, what="convert")
    if statement is None:
        return Written._made(output, _written(_model_of(source, limits, more), output, format, more, given))
    stated, replace = os.fspath(statement), bool(options.get("overwrite"))
    _core.check_output(stated, replace)
    whole = _whole(source, limits, more)
    # What is told and what is done are the same values: an iterator can be read once.
    adapters, changes = _adapters(more.pop("merge_lora", None) or []), {name: more.pop(name) for name in _VIEW if name in more}
    view = whole._changes(**changes) if any(changes.values()) else {}
    written = Written._made(output, _written(_model_of(whole, limits, {**more, **view, "merge_lora": adapters}), output, format, more, given))
    _core.state(stated, output, whole._handle, view, more, adapters, replace, settings(limits, None, what="hash"))
    return written


_CONVERT = ("source", "path", "format", "statement", "progress", "limits")


def _written(model: _core.Model, path: str, format: str | None, options: Mapping[str, Any], given: _core.Settings) -> _core._Written:
    if format is None:
        return _core.save(model, path, _options(options), given)
    return _core.plan(model, format, _options(options)).execute(path, given)


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


def save(path: StrPath, tensors: Mapping[str, Any] | Model, metadata: Mapping[str, Any] | None = None, *, format: str | None = None,
         progress: Progress = None, limits: Limits | None = None, **options: Unpack[ConvertOptions]) -> Written:
    """Saves arrays as a file of any container, by its extension.

    Parameters
    ----------
    path : path
        ``x.zt``, ``x.safetensors``, ``x.stb``, ...
    tensors : mapping from str to array
        Arrays of NumPy, PyTorch or JAX, :class:`Tensor`, and anything with DLPack or the buffer protocol.
    metadata : mapping, optional
        Attributes of the model: str, int, float, bool, None, bytes, lists and dicts of these, as far as the container holds them.
    **options
        Those of :class:`ConvertOptions`. An existing file is refused without ``overwrite=True``; then it stays until the new one is complete.

    Returns
    -------
    Written
        As of :func:`convert`.

    Examples
    --------
    >>> wb.save("two.safetensors", {"a": numpy.zeros((2, 3)), "b": numpy.arange(4)}, {"made by": "me"}).size
    232
    """
    _require_names("save", options, ("path", "tensors", "metadata", "format", "progress", "limits"))
    if isinstance(tensors, Model):
        model = tensors._handle
        if metadata is not None:
            raise UsageError("metadata is for arrays: a model has its own")
    else:
        model = _core.build(_specs(tensors), dict(metadata) if metadata else None)
    output = os.fspath(path)
    return Written._made(output, _written(model, output, format, options, settings(limits, progress, what="save")))


def hash(file: ModelSource, *, names: bool = True, version: int = 2, progress: Progress = None, limits: Limits | None = None) -> str:
    """The content digest of a model: equal for the same tensors in any container.

    Returns
    -------
    str
        ``"wb2:"`` and 64 digits.
    """
    return _core.hash(_model_of(file, limits), names, version, settings(limits, progress, what="hash"))


class Format(Record):
    """A container that this build knows.

    Attributes
    ----------
    name, title : str
        What `format` of :func:`open` and :func:`convert` takes; and its name for people.
    extensions : list of str
        Of its files, without a dot.
    readable, writable : bool
        Whether this build reads and writes it.
    """

    name: str
    title: str
    extensions: list[str]
    readable: bool
    writable: bool


def formats() -> list[Format]:
    """The containers that this build knows."""
    return [Format(**each) for each in _core.formats()]


__all__ = ("Cast", "Format", "Item", "LossWarning", "Plan", "Written", "convert", "formats", "hash", "plan", "save")
