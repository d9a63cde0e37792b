# SPDX-License-Identifier: Apache-2.0
"""Checks of whole files, which change nothing: verify, check, doctor, explain, check_cache; and salvage, which writes what is whole."""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import _core
from ._errors import Finding, UsageError
from ._progress import settings
from ._record import Record
from ._shown import shown
from ._sources import to_input, to_optional_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal, overload

    from ._derivation import Derivation
    from ._jobs import Written
    from ._manifest import ManifestVerdict
    from .typing import Limits, ModelSource, Pem, Progress, Source, StrPath
else:

    def overload(function: object) -> object:
        return function


class Verdict(Record):
    """What :func:`verify` found. Truthy if the file is valid.

    Attributes
    ----------
    valid : bool
        No finding is an error: warnings and unsupported tensors leave a file valid.
    findings : list of Finding
        At most 1,000, in order; `total` counts all.
    format : str
        The container; empty if the content matches none.
    checked : str
        What was checked, in one phrase: ``"structure only: safetensors has no checksums"``.
    not_known_safe : list of str
        What loading the file, or a file of the folder, with Python is not known to do safely: functions and classes that pickles name
        (``"module.name"``), and what was not looked into. At most 100. Such a file is valid, but the command does not call it "ok".
    tensors, total, errors, warnings : int
        Counts.
    """

    valid: bool
    findings: list[Finding]
    format: str = ""
    checked: str = ""
    not_known_safe: Sequence[str] = ()
    tensors: int = 0
    total: int = 0
    errors: int = 0
    warnings: int = 0

    def __bool__(self) -> bool:
        return self.valid

    def raise_if_invalid(self) -> None:
        """Raises the first error, if there is one."""
        from ._errors import make

        for finding in self.findings:
            if finding.severity == "error":
                raise make(finding.asdict(), finding.message)


@overload
def verify(
    file: Source, *, format: str | None = None, checksum_form: str | None = None, read_as: str | Iterable[str] = (), scheme: str | Iterable[str] = (),
    read_all: bool = False, recursive: Literal[False] = False, limits: Limits | None = None, progress: Progress = None
) -> Verdict: ...
@overload
def verify(
    file: StrPath, *, recursive: Literal[True], format: str | None = None, checksum_form: str | None = None,
    read_as: str | Iterable[str] = (), scheme: str | Iterable[str] = (), read_all: bool = False, limits: Limits | None = None,
    progress: Progress = None
) -> dict[str, Verdict]: ...
@overload
def verify(
    file: StrPath,
    *,
    manifest: Source,
    public_key: Pem | None = None,
    roots: Pem | None = None,
    only_file: Iterable[str] | str = (),
    ignore: Iterable[str] | str = (),
    ignore_unsigned: bool = False,
    cache: bool | StrPath = False,
    limits: Limits | None = None,
    progress: Progress = None,
) -> ManifestVerdict: ...
@overload
def verify(
    file: Source, *, derived_from: ModelSource, statement: StrPath | None = None, imatrix: Source | None = None, report: bool = False,
    limits: Limits | None = None, progress: Progress = None
) -> Derivation: ...
def verify(
    file: Source,
    *,
    format: str | None = None,
    checksum_form: str | None = None,
    read_as: str | Iterable[str] = (),
    scheme: str | Iterable[str] = (),
    read_all: bool = False,
    recursive: bool = False,
    manifest: Source | None = None,
    public_key: Pem | None = None,
    roots: Pem | None = None,
    only_file: Iterable[str] | str = (),
    ignore: Iterable[str] | str = (),
    ignore_unsigned: bool = False,
    cache: bool | StrPath = False,
    derived_from: ModelSource | None = None,
    statement: StrPath | None = None,
    imatrix: Source | None = None,
    report: bool = False,
    limits: Limits | None = None,
    progress: Progress = None,
) -> Verdict | dict[str, Verdict] | ManifestVerdict | Derivation:
    """Checks every rule of a file's format: its structure, then its tensor data where a rule needs it. With `manifest`, compares a file or folder
    with a signed list of files instead. With `derived_from`, makes the tensors of a GGUF again from a model, and compares every byte.

    Parameters
    ----------
    file, format, checksum_form, read_as, scheme, limits
        As for :func:`open`.
    read_all : bool
        Read every byte once, also where no rule needs it (bad sectors), and warn of tensors with NaN (``"values/nan"``).
    recursive : bool
        `file` is a folder: check every model beneath it, each once, in the order of names.
    manifest : path, buffer or file object, optional
        What :func:`manifest` or another program of OpenSSF Model Signing wrote. `file` is then the path of a file or folder of any kind.
    public_key, roots : path or bytes, optional
        The public key, or the root certificates (PEM), to check the signature with. Without either, the signature is not checked.
    only_file, ignore : str or list of str
        Globs of the entries to check, and of files to accept although the manifest does not list them.
    ignore_unsigned : bool
        Accept all files that the manifest does not list.
    cache : bool or path
        Do not read files again that have not changed since the last check with this cache. True: it is in ``$XDG_CACHE_HOME`` or ``~/.cache``.
    derived_from : Model, path, or what :func:`open` takes, optional
        The model that the GGUF `file` is said to be made from.
    statement, imatrix : path
        What ``convert(..., statement=...)`` wrote, whose digests must be right and whose options are taken; the importance matrix.
    report : bool
        Also compare the values of tensors that differ.
    progress : bool or callable, optional
        True shows a bar (tqdm); a callable gets (bytes done, bytes in all).

    Returns
    -------
    Verdict, dict of str to Verdict, ManifestVerdict or Derivation
        With `recursive`, a verdict for each path. An invalid file raises nothing: its findings say what is wrong. Only what cannot be read raises.
    """
    of_a_file = dict(format=format, checksum_form=checksum_form, read_as=read_as, scheme=scheme, read_all=read_all, recursive=recursive)
    if manifest is not None:
        from ._manifest import verify_manifest

        _without_effect("with manifest", **of_a_file, derived_from=derived_from, statement=statement, imatrix=imatrix, report=report)
        return verify_manifest(_path(file, "manifest"), manifest, public_key, roots, only_file, ignore, ignore_unsigned, cache, limits, progress)
    _without_effect("without manifest", public_key=public_key, roots=roots, only_file=only_file, ignore=ignore, ignore_unsigned=ignore_unsigned, cache=cache)
    if derived_from is not None:
        from ._derivation import verify_derivation

        _without_effect("with derived_from", **of_a_file)
        return verify_derivation(file, derived_from, statement, imatrix, report, limits, progress)
    _without_effect("without derived_from", statement=statement, imatrix=imatrix, report=report)
    if recursive:
        return {path: verify(path, format=format, checksum_form=checksum_form, read_as=read_as, scheme=scheme, read_all=read_all, limits=limits,
                             progress=progress)
                for path in _core.find_models(_path(file, "recursive"), settings(limits, progress, what="verify"))}
    from ._model import _texts

    found = _core.verify(to_input(file), dict(format=format, checksum_form=checksum_form, read_as=_texts(read_as), scheme=_texts(scheme)), read_all,
                         settings(limits, progress, what="verify"))
    found["findings"] = [Finding.told(finding) for finding in found["findings"]]
    return Verdict(**found)


def _without_effect(when: str, **given: Any) -> None:
    """Raises TypeError for an argument that was given and would be passed over."""
    for name, value in given.items():
        if value is not None and value is not False and not (isinstance(value, (str, list, tuple)) and not value):
            raise TypeError(f"{name} has no effect {when}")


def _path(file: Source, why: str) -> str:
    """The path of what has to be one."""
    if not isinstance(file, (str, os.PathLike)):
        raise TypeError(f"{why} needs the path of a file or folder, not {type(file).__name__}")
    return os.fspath(file)


class Breach(Record):
    """Something that a policy does not accept.

    Attributes
    ----------
    demand : str
        The key of the policy: ``"dtypes"``; ``"valid"`` if the model is invalid, which no policy accepts.
    finding : Finding
        What is wrong, and where.
    """

    demand: str
    finding: Finding


class PolicyVerdict(Record):
    """What :func:`check` found. Truthy if the model meets the policy.

    Attributes
    ----------
    passed : bool
        No demand is broken.
    policy : str
        Its name.
    format : str or None
        The container; None if the content matches none.
    checked : str
        As of :func:`verify`.
    breaches : list of Breach
        What the policy does not accept, at most 1,000.
    findings : list of Finding
        The others: warnings and unsupported tensors that it accepts.
    not_known_safe : list of str
        As of :func:`verify`, without what the policy accepts.
    """

    passed: bool
    policy: str
    format: str | None
    checked: str
    breaches: list[Breach]
    findings: list[Finding]
    not_known_safe: list[str]

    def __bool__(self) -> bool:
        return self.passed


def check(
    file: Source,
    policy: StrPath | Mapping[str, Any] = "download",
    *,
    format: str | None = None,
    manifest: Source | None = None,
    limits: Limits | None = None,
    progress: Progress = None,
) -> PolicyVerdict:
    """Checks a model against a policy: its formats, dtypes, names and shapes, size, NaN, code beside the weights, digests, signature.

    Parameters
    ----------
    file, format, limits
        As for :func:`open`.
    policy : str, path or mapping
        ``"download"``, ``"publish"``, ``"strict"``, a JSON file, or the policy itself: docs/policies.md.
    manifest : path, buffer or file object, optional
        The signed list of files, for a policy with ``keys``.
    progress
        As for :func:`verify`.

    Returns
    -------
    PolicyVerdict
        A model that breaks the policy raises nothing. A policy that is not one raises UsageError.
    """
    import json

    name = "policy" if isinstance(policy, Mapping) else os.fspath(policy)
    text = json.dumps(dict(policy)) if isinstance(policy, Mapping) else _core.ready_policy(name)
    if not text:
        try:
            with open(name, encoding="utf-8") as opened:
                text = opened.read()
        except FileNotFoundError as error:
            raise UsageError(f"there is no policy {name!r}, and no such file: the ready ones are {', '.join(_core.ready_policies())}") from error
    found = json.loads(_core.check(to_input(file), text, name, to_optional_input(manifest), dict(format=format),
                                   settings(limits, progress, what="check")))
    found["breaches"] = [Breach(each["demand"], Finding.told(each["finding"])) for each in found["breaches"]]
    found["findings"] = [Finding.told(each) for each in found["findings"]]
    return PolicyVerdict.of(found)


class Advice(Record):
    """Something to do about a file.

    Attributes
    ----------
    what : str
        ``"fetch-rest"`` (download the bytes from `start` to `end`), ``"fetch-again"``, ``"fetch-object"`` (of a Git LFS pointer), ``"fetch-file"``
        (the missing file `name`), ``"salvage"``, ``"trim"`` (keep the bytes from `start` to `end`), ``"rename"`` (to the extension `name`),
        ``"decompress"`` (with the program `name`), ``"compare"`` (with a published SHA-256), ``"distrust"`` (do not load it with Python;
        with `name` ``"code"``, not where its code would run), ``"rewrite"``.
    name : str or None
        A file, an extension or a program.
    start : int
        First byte.
    end : int or None
        Byte past the last; None if it is not known.
    """

    what: str
    name: str | None
    start: int
    end: int | None


class ByteRange(Record):
    """A range of bytes of a file.

    Attributes
    ----------
    offset, length : int
        First byte, and number of bytes.
    """

    offset: int
    length: int


class Diagnosis(Record):
    """What :func:`doctor` found. Truthy if nothing is wrong.

    Attributes
    ----------
    condition : str
        ``"sound"``, ``"suspicious"``, ``"incomplete"``, ``"damaged"``, ``"foreign"`` or ``"unproven"`` (valid, but loading it with Python
        is not known to be safe, or tensors have a type that weighbridge does not read).
    what : str
        What the file is, as a phrase.
    format : str or None
        The container; None if the content matches none.
    named_like : str or None
        The format that the extension means, if the content is of another.
    size, full_size : int, int or None
        Bytes that are there, and that the file should have, as its own header or a pointer says.
    sha256 : str or None
        Of the whole file, as a Git LFS pointer says.
    tensors, whole : int
        Tensors that the index lists, and those without a known fault.
    damaged, missing : list of str
        The names of the other tensors, and of files of the model that are not there. At most 1,000 each.
    zeros, trailing : ByteRange or None
        A range of zeros that points to damage, and the bytes after the end of the model.
    advice : list of Advice
        What to do, the most useful first.
    not_known_safe : list of str
        As of :func:`verify`.
    findings : list of Finding
        As of :func:`verify`.
    """

    condition: str
    what: str
    format: str | None
    named_like: str | None
    size: int
    full_size: int | None
    sha256: str | None
    tensors: int
    whole: int
    damaged: list[str]
    missing: list[str]
    zeros: ByteRange | None
    trailing: ByteRange | None
    advice: list[Advice]
    not_known_safe: list[str]
    findings: list[Finding]

    def __bool__(self) -> bool:
        return self.condition == "sound"


def doctor(
    file: Source, *, format: str | None = None, read_as: str | Iterable[str] = (), limits: Limits | None = None, progress: Progress = None
) -> Diagnosis:
    """Says what a file really is, what is wrong with it, which tensors are whole and what to do. Changes nothing.

    Parameters
    ----------
    file, format, read_as, limits
        As for :func:`open`.
    progress
        As for :func:`verify`.

    Returns
    -------
    Diagnosis
    """
    from ._model import _texts

    return _diagnosis(_core.diagnose(to_input(file), dict(format=format, read_as=_texts(read_as)), settings(limits, progress, what="doctor")))


def _diagnosis(text: str) -> Diagnosis:
    import json

    found = json.loads(text)
    for key in ("zeros", "trailing"):
        found[key] = ByteRange(**found[key]) if found[key] else None
    found["advice"] = [Advice(each["what"], each["name"], each["from"], each["to"] or None) for each in found["advice"]]
    found["findings"] = [Finding.told(each) for each in found["findings"]]
    return Diagnosis.of(found)


class Salvaged(Record):
    """What :func:`salvage` wrote.

    Attributes
    ----------
    written : Written
        The new file.
    diagnosis : Diagnosis
        What the old file is. `damaged` and `missing` name what the new one lacks.
    """

    written: Written
    diagnosis: Diagnosis


def salvage(file: Source, path: StrPath, *, read_as: str | Iterable[str] = (), overwrite: bool = False, limits: Limits | None = None,
            progress: Progress = None) -> Salvaged:
    """Writes the tensors of a damaged file that are whole to a new file, as ``weighbridge doctor FILE --salvage OUT`` does.

    Parameters
    ----------
    file, read_as, limits
        As for :func:`open`.
    path : path
        The output. Its extension names the format.
    overwrite : bool
        Replace an existing `path`.
    progress
        As for :func:`verify`.

    Returns
    -------
    Salvaged
        Losses are warned of too (:class:`LossWarning`), as by :func:`convert`.

    Raises
    ------
    UsageError
        No tensor is whole.

    Examples
    --------
    >>> _ = open("cut.safetensors", "wb").write(open("model.safetensors", "rb").read()[:-5])
    >>> saved = wb.salvage("cut.safetensors", "saved.safetensors")
    >>> saved.diagnosis.condition, saved.diagnosis.whole, len(saved.diagnosis.damaged)
    ('incomplete', 23, 1)
    """
    from ._jobs import Written
    from ._model import _texts

    text, format, size, losses, casts = _core.salvage(to_input(file), os.fspath(path), dict(read_as=_texts(read_as)), overwrite,
                                                      settings(limits, progress, what="salvage"))
    return Salvaged(Written._made(os.fspath(path), (format, size, losses, [], casts, losses)), _diagnosis(text))


class Span(Record):
    """A range of a file that is one thing.

    Attributes
    ----------
    kind : str
        ``"file"``, ``"structure"``, ``"entry"``, ``"field"``, ``"tensor"``, ``"block"``, ``"element"``, ``"padding"`` or ``"unclaimed"``.
    offset, size : int
        First byte, and number of bytes.
    what : str
        Its name.
    value : str or None
        What it holds, as text.
    """

    kind: str
    offset: int
    size: int
    what: str
    value: str | None


class Explanation(Record):
    """What :func:`explain` found out about a range of a file. ``str()`` gives the path from the file to the innermost span.

    Attributes
    ----------
    path : str
        Of the file; for a tensor, of the file that holds it.
    format : str or None
        None if the content matches no format.
    size, offset, length : int
        Bytes of the file, and the range.
    spans : list of Span
        Those with bytes of the range: the file, then outer ones before what is in them.
    left_out : int
        The number of further spans.
    bytes_at, data : int, bytes
        Bytes in and around the range, and where they begin.
    findings : list of Finding
        What is wrong there, as from :func:`verify`.
    """

    path: str
    format: str | None
    size: int
    offset: int
    length: int
    spans: list[Span]
    left_out: int
    bytes_at: int
    data: bytes
    findings: list[Finding]

    def __str__(self) -> str:
        return shown(" > ".join(f"{span.what}: {span.value}" if span.value else span.what for span in self.spans))


def explain(file: Source, where: int | slice | str, *, limits: Limits | None = None) -> Explanation:
    """Says what bytes of a file are: the structures, fields, tensors and elements around them.

    Parameters
    ----------
    file, limits
        As for :func:`open`. A folder only if `where` is a str.
    where : int, slice or str
        An offset; a range, ``slice(1000, 1064)``; or a tensor or one of its elements, ``"w[3, 5]"``.

    Returns
    -------
    Explanation
    """
    import base64
    import json

    name, begin, end = "", 0, 1
    if isinstance(where, str):
        if not where:
            raise ValueError("the name of a tensor is expected, not an empty text")
        name = where
    elif isinstance(where, slice):
        if where.start is None or where.stop is None or where.step not in (None, 1) or not 0 <= where.start < where.stop:
            raise ValueError("a range needs an end after its beginning, both at least 0")
        begin, end = where.start, where.stop
    elif where < 0:
        raise ValueError("an offset is at least 0")
    else:
        begin, end = where, where + 1
    found = json.loads(_core.explain(to_input(file), begin, end - begin, name, settings(limits, None, what="explain")))
    found["findings"] = [Finding.told(each) for each in found["findings"]]
    found["spans"] = [Span.of(each) for each in found["spans"]]
    found["bytes_at"], found["data"] = found["bytes"]["offset"], base64.b64decode(found["bytes"]["data"])
    return Explanation.of(found)


class CacheEntry(Record):
    """One file of a cache of the Hugging Face Hub.

    Attributes
    ----------
    path : str
        Of the file.
    state : str
        ``"sound"``, ``"damaged"``, ``"unfinished"``, ``"missing"``, ``"stray"`` or ``"unknown"``.
    used_by : str or None
        A file of a snapshot that refers to it.
    size : int
        In bytes.
    found : str or None
        The digest of its bytes, if it is damaged.
    """

    path: str
    state: str
    used_by: str | None
    size: int
    found: str | None


def check_cache(folder: StrPath, *, limits: Limits | None = None, progress: Progress = None) -> list[CacheEntry]:
    """Checks a cache of the Hugging Face Hub without a network: the name of each file is its digest.

    Returns
    -------
    list of CacheEntry
    """
    import json

    return [CacheEntry.of(each) for each in json.loads(_core.check_cache(os.fspath(folder), settings(limits, progress, what="hash")))["entries"]]


__all__ = ("Advice", "Breach", "ByteRange", "CacheEntry", "Diagnosis", "Explanation", "PolicyVerdict", "Salvaged", "Span", "Verdict", "check",
           "check_cache", "doctor", "explain", "salvage", "verify")
