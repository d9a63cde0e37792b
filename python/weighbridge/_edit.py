# SPDX-License-Identifier: Apache-2.0
"""Edits of a file's metadata and tensor names: edit, undo_edit, settle_edit and their results; and what killed runs left in a folder."""

from __future__ import annotations

import os
from math import isfinite

from . import _core
from ._errors import UsageError
from ._jobs import Item
from ._model import _renamings, _texts
from ._progress import settings
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .typing import Limits, Progress, StrPath


class Step(Record):
    """One thing that settling an edit or undoing a journal does, or did.

    Attributes
    ----------
    way : str
        ``"rename"``, ``"exchange"``, ``"remove"`` or ``"write"``.
    name : str
        A file in the folder of the journal.
    other : str or None
        The other name, for ``"rename"`` and ``"exchange"``.
    offset, length : int
        The bytes of the file that ``"write"`` restores.
    """

    way: str
    name: str
    other: str | None
    offset: int
    length: int

    @classmethod
    def told(cls, each: dict[str, Any]) -> Step:
        """A step from the library's JSON."""
        return cls(each["way"], each["from"], each["to"], each["offset"], each["length"])


class Journal(Record):
    """What a killed run left in a folder where it published several files.

    Attributes
    ----------
    path : str
        Of the journal.
    own : bool
        Whether it is marked with this user's key.
    why : str or None
        Why it is not undone by itself.
    steps : list of Step
        What undoing it does.
    undone : bool
        Whether that was done.
    """

    path: str
    own: bool
    why: str | None
    steps: list[Step]
    undone: bool

    @classmethod
    def told(cls, each: dict[str, Any]) -> Journal:
        """A journal from the library's JSON."""
        return cls(**{**each, "steps": [Step.told(step) for step in each["steps"]]})


class Edited(Record):
    """What an edit does, or did.

    Attributes
    ----------
    format : str or None
        Of the file.
    way : str
        ``"nothing"``, ``"in-place"`` (only the header is written), ``"copied"`` (a new file; the system copies or shares the tensors),
        ``"converted"`` (a new file; every tensor was read and written) or ``"settings"`` (a JSON file or the chat template of a folder).
    written : bool
        Whether something was written.
    changes : list of Item
        What becomes, or became, of metadata and names.
    header, needed : int
        Bytes that the header has in the file, free space included, and bytes that the new one needs.
    size, size_after : int
        Bytes of the file before and after the edit (of the new file, if there is one).
    shared : int
        Bytes of a new file that share the old file's blocks on the disk.
    names : int
        The number of names (hard links) of the file.
    alone : bool
        In place: whether the system confirmed that no other process had the file open.
    left : str
        What was done first with an earlier edit that was killed: ``"nothing"``, ``"finished"`` or ``"undone"``.
    file : str or None
        Of a folder: the file in it that changes.
    undo : str or None
        The file from which :func:`undo_edit` restores.
    steps : list of Step
        Of :func:`settle_edit`, what it did.
    """

    format: str | None
    way: str
    written: bool
    changes: list[Item]
    header: int
    needed: int
    size: int
    size_after: int
    shared: int
    names: int
    alone: bool
    left: str
    file: str | None
    undo: str | None
    steps: list[Step]


def _edited(text: str) -> Edited:
    import json

    made = json.loads(text)
    made["changes"] = [Item(each["kind"], each["subject"], each["from"], each["to"]) for each in made["changes"]]
    made["steps"] = [Step.told(each) for each in made["steps"]]
    return Edited.of(made)


def _typed(value: Any) -> Any:
    """A value as the members of a JSON object that the library takes."""
    if isinstance(value, tuple):
        if len(value) != 2 or not isinstance(value[1], str):
            raise TypeError(f"a typed value is (value, type), as in (5, 'u32'), not {value!r}")
        return {"type": value[1], "value": _typed(value[0])}
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, int) and not -1 << 63 <= each < 1 << 64:
            raise UsageError(f"an integer that does not fit 64 bits cannot be stored: {each}")
        if isinstance(each, float) and not isfinite(each):
            raise UsageError(f"JSON has no {each}")
    return value


def edit(
    path: StrPath,
    *,
    set: Mapping[str, Any] | None = None,
    unset: str | Iterable[str] = (),
    rename: Mapping[str, str] | str | Iterable[str] | None = None,
    without: str | Iterable[str] = (),
    format: str | None = None,
    read_as: str | Iterable[str] = (),
    output: StrPath | None = None,
    in_place: bool = False,
    reserve: int | str = 0,
    overwrite: bool = False,
    dry_run: bool = False,
    limits: Limits | None = None,
    progress: Progress = None,
) -> Edited:
    """Changes the metadata of a file and the names of its tensors.

    Parameters
    ----------
    path : str or path
        The file.
    set : mapping
        Metadata to set: a str is text; a number gets the type of the value that it replaces; ``(5, "u32")`` gives a type; None removes
        the key. safetensors has only text.
    unset : str or iterable of str
        Keys to remove.
    rename : mapping, str or iterable of str
        From tensor names to new names, all at once. Or strings, as ``edit --rename`` takes them: ``"FROM=TO"``, or ``"s/PATTERN/TO/"``
        for every name that matches.
    without : str or iterable of str
        Globs of tensors to leave out. With `in_place`, their bytes stay in the file: GGUF allows that for the last tensors, zTensor
        1.x for all, other formats not.
    format : str, optional
        As for :func:`open`.
    read_as : str or iterable of str
        As for :func:`open`. The new file states these dtypes; it needs an `output`.
    output : str or path, optional
        The new file to write; `path` stays as it is.
    in_place : bool
        Change the file itself: its header, if the new one fits; else a new file replaces it. :func:`undo_edit` undoes that.
    reserve : int or str
        Bytes to leave free in the header of a new file: a number, or a text such as ``"4K"`` and ``"1MiB"``.
    overwrite : bool
        Replace an `output` that exists.
    dry_run : bool
        Change nothing, and return what would change.
    limits, progress
        As for :func:`verify`.

    Returns
    -------
    Edited

    Raises
    ------
    UsageError
        Neither `output` nor `in_place` is given, or both; a tensor or key that does not exist, a value that does not fit its type, a key that describes the structure of the file.
    InputOutputError
        Another process, or this one, has the file open: close the model first. Nothing has changed.

    Examples
    --------
    >>> wb.edit("model.safetensors", set={"license": "mit"}, output="licensed.safetensors").way
    'copied'
    >>> wb.edit("licensed.safetensors", set={"license": "apache-2.0"}, in_place=True, dry_run=True).changes[0].after
    'apache-2.0'
    """
    import json

    if (output is None) == (not in_place):
        raise UsageError("edit() needs output=PATH for a new file, or in_place=True to change this one" if output is None
                         else "edit() takes output or in_place, not both")

    if output is not None and not os.fspath(output):
        raise UsageError("output is empty: edit() needs the path of a new file")
    given = {key: _typed(value) for key, value in (set or {}).items()}
    options = dict(unset=_texts(unset), rename=_renamings(rename), without=_texts(without), format=format, read_as=_texts(read_as), output=None if output is None else os.fspath(output),
                   reserve=reserve or None, overwrite=overwrite)
    return _edited(_core.edit(os.fspath(path), json.dumps(given), options, dry_run, settings(limits, progress, what="edit")))


def undo_edit(path: StrPath, *, trust_journal: bool = False, limits: Limits | None = None) -> Edited:
    """Undoes the last edit in place of a file. A second call redoes it.

    Parameters
    ----------
    path : str or path
    trust_journal : bool
        Use the kept old header even if it is not marked with this user's key, as after an edit without a home folder.
    limits
        As for :func:`verify`.

    Raises
    ------
    UsageError
        There is no edit to undo, or the file has changed since.
    InputOutputError
        The kept old header is not this user's own.
    """
    return _edited(_core.undo_edit(os.fspath(path), trust_journal, settings(limits, None, what="edit")))


def settle_edit(path: StrPath, *, trust_journal: bool = False, limits: Limits | None = None) -> Edited:
    """Finishes or undoes an edit in place that was killed, as the next edit would; does nothing if there is none.

    Parameters
    ----------
    path : str or path
    trust_journal : bool
        Use its journal even if it is not marked with this user's key: it may also have come with the file.
    limits
        As for :func:`verify`.

    Raises
    ------
    InputOutputError
        The journal is not this user's own, or does not fit the file.
    """
    return _edited(_core.settle_edit(os.fspath(path), trust_journal, settings(limits, None, what="edit")))


def left_journals(folder: StrPath) -> list[Journal]:
    """Lists the journals that killed runs left in a folder where they published several files. Changes nothing.

    Returns
    -------
    list of Journal
    """
    import json

    return [Journal.told(each) for each in json.loads(_core.left_journals(os.fspath(folder)))["journals"]]


def recover_folder(folder: StrPath, *, trust_journal: bool = False) -> list[Journal]:
    """Undoes what killed runs left half published in a folder: the old files get their names back.

    Parameters
    ----------
    folder : str or path
    trust_journal : bool
        Undo journals that are not marked with this user's key, too. Look at :func:`left_journals` first.

    Returns
    -------
    list of Journal

    Raises
    ------
    InputOutputError
        A journal stays. The others are undone.
    """
    import json

    return [Journal.told(each) for each in json.loads(_core.recover_folder(os.fspath(folder), trust_journal))["journals"]]


__all__ = ("Edited", "Journal", "Step", "edit", "left_journals", "recover_folder", "settle_edit", "undo_edit")
