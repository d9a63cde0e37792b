# SPDX-License-Identifier: Apache-2.0
"""What is done with whole files: verify, hash, plan, convert, save."""

from __future__ import annotations

import os
from collections.abc import Mapping
from . import _arrays, _core
from ._errors import Finding, UsageError
from ._model import Model, Tensor, _texts
from ._model import open as open_model
from ._progress import settings
from ._record import Record
from ._sources import to_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ._model import Limits, Progress


class Verdict(Record):
    """What :func:`verify` found. True in a condition if the file is valid.

    Attributes
    ----------
    valid : bool
        No finding is an error: warnings and unsupported tensors leave a file valid.
    findings : list of Finding
        At most 1,000, in order; `total` counts all.
    format : str
        Of the container; empty if the content matches none.
    checked : str
        What was checked, in one phrase: ``"structure only: safetensors has no checksums"``.
    tensors, total, errors, warnings : int
        Counts.
    """

    __slots__ = ("valid", "findings", "format", "checked", "tensors", "total", "errors", "warnings")
    _defaults = {"format": "", "checked": "", "tensors": 0, "total": 0, "errors": 0, "warnings": 0}
    if TYPE_CHECKING:
        valid: bool
        findings: list[Finding]
        format: str
        checked: str
        tensors: int
        total: int
        errors: int
        warnings: int

    def __bool__(self) -> bool:
        return self.valid

    def raise_if_invalid(self) -> None:
        """Raises the first error, if there is one."""
        from ._errors import make

        for finding in self.findings:
            if finding.severity == "error":
                raise make(finding.asdict(), finding.message)


def verify(file: Any, *, format: str | None = None, checksum_form: str | None = None, limits: Limits | None = None, progress: Progress = None) -> Verdict:
    """Checks every rule of a file's format: its structure, then its payload in one pass.

    Parameters
    ----------
    file, format, checksum_form, limits
        As for :func:`open`.
    progress : bool or callable, optional
        True shows a bar (tqdm); a callable gets (bytes done, bytes in all).

    Returns
    -------
    Verdict
        An invalid file raises nothing: its findings say what is wrong. Only what cannot be read raises.
    """
    if file is None:
        raise TypeError("a path, a buffer or a file object is expected, not None")
    found = _core.verify(to_input(file), format or "", checksum_form or "", settings(limits, progress, what="verify"))
    found["findings"] = [Finding(**finding) for finding in found["findings"]]
    return Verdict(**found)


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
        return f"{self.kind}: {self.subject}: {self.before} -> {self.after}"


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
        elif option == "cast":
            out[option] = _arrays.our_name(value)
        else:
            out[option] = str(value)
    return out


_VIEW = ("only", "without", "rename", "set", "unset")


def _model_of(source: Any, limits: Limits | None, options: dict[str, Any] | None = None) -> _core.Model:
    """The model of what a caller gave, with the changes of Model.view() that are taken out of `options`."""
    if isinstance(source, Model):
        model = source
    elif isinstance(source, Mapping):
        model = Model(_core.build(_specs(source), None), "<arrays>")
    else:
        model = open_model(source, limits=limits)
    changes = {name: options.pop(name) for name in _VIEW if name in options} if options else {}
    return (model.view(**changes) if any(changes.values()) else model)._handle


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
    version: str | None = None,
    shard_size: int | None = None,
    limits: Limits | None = None,
    **more: Any,
) -> Plan:
    """What converting to a format would do. Writes nothing.

    Parameters
    ----------
    source : Model, path, or what :func:`open` takes
        The model.
    format : str
        The name of the target: ``"zt"``, ``"safetensors"``, ``"embd"``, ``"slm"``, ``"stb"``, ``"hf"``, ...
    overwrite : bool
        Let :meth:`Plan.execute` replace a file that exists.
    allow : str or list of str
        Kinds of loss to accept: ``"alias"``, ``"attribute"``, ``"tokenizer"``, ``"precision"``, ...
    cast : str or dtype, optional
        Cast every floating-point tensor. Accepts the loss of precision, but not overflow: that needs ``allow="overflow"``.
    encoding, level, digest, quantize, version, shard_size
        As the flags of ``weighbridge convert``.
    **more
        Options of one format (``keep_gqa=True`` for slm), and what :meth:`Model.view` takes: only, without, rename, set, unset.
    """
    model = _model_of(source, limits, more)
    given = dict(cast=cast, encoding=encoding, level=level, digest=digest, quantize=quantize, version=version, shard_size=shard_size,
                 replace=overwrite, **more)
    return Plan(_core.plan(model, format, _options(allow, given)))


def convert(source: Any, path: str | os.PathLike[str], *, format: str | None = None, overwrite: bool = False, allow: Iterable[str] | str = (),
            progress: Progress = None, limits: Limits | None = None, **options: Any) -> list[dict[str, Any]]:
    """Converts a model to the container that the extension of `path` names.

    Parameters
    ----------
    source : path, Model, or what :func:`open` takes
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


__all__ = ("Item", "Plan", "Verdict", "convert", "formats", "hash", "plan", "save", "verify")
