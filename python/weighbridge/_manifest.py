# SPDX-License-Identifier: Apache-2.0
"""Signed lists of files: OpenSSF Model Signing."""

from __future__ import annotations

import os

from . import _core
from ._errors import Finding
from ._model import _texts
from ._progress import settings
from ._record import Record
from ._sources import to_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .typing import Limits, Pem, Progress, Source, StrPath


class Manifest(Record):
    """What :func:`manifest` wrote.

    Attributes
    ----------
    path, output : str
        What is listed, and the manifest.
    name : str
        Of the model's folder or file, as the manifest has it.
    method : str
        How it is signed: ``"key"``, ``"certificate"`` or ``"none"``.
    files, entries, bytes : int
        Files, entries (files, or ranges of them), and the bytes of all files.
    range_size : int or None
        Bytes of a range; None if the entries are whole files.
    format, content_digest : str or None
        The container of the model, and its content digest; None if its tensors are not listed.
    tensors : int or None
        Tensors whose digests are listed; None if tensors are not listed.
    ignored : list of str
        Paths that the manifest leaves out.
    """

    path: str
    output: str
    name: str
    method: str
    files: int
    entries: int
    bytes: int
    range_size: int | None
    format: str | None
    content_digest: str | None
    tensors: int | None
    ignored: list[str]


class FileDifference(Record):
    """A file that is not what a manifest says.

    Attributes
    ----------
    what : str
        ``"missing"``, ``"additional"`` or ``"changed"``.
    file : str
        Its path in the folder.
    expected, found : str or None
        SHA-256 of its first entry that differs.
    ranges : list of str
        The entries that differ, if they are ranges.
    tensors : list of str or None
        Tensors that differ, are missing or were added; None if tensors were not compared.
    """

    what: str
    file: str
    expected: str | None
    found: str | None
    ranges: list[str]
    tensors: list[str] | None


class ManifestVerdict(Record):
    """What :func:`verify` found with a manifest. Truthy if the files match the manifest and its signature is not
    invalid.

    A signature that was not checked is not invalid: test ``signature == "valid"`` if you need a valid one.

    Attributes
    ----------
    valid : bool
        No finding is an error.
    signature : str
        ``"valid"``, ``"unchecked"``, ``"none"`` or ``"invalid"``.
    method : str
        ``"key"``, ``"certificate"``, ``"sigstore"`` or ``"none"``.
    signer : str or None
        The fingerprint of the key, or the subject of the certificate.
    unchecked : str or None
        Why the signature was not checked.
    differences : list of FileDifference
        Files that are not what the manifest says.
    compared, remembered, bytes : int
        Files that were compared; those of them that were not read, because `cache` has their digests; and the bytes of all.
    ignored : list of str
        Paths that the manifest leaves out.
    findings : list of Finding
        Errors and warnings, as in the output of ``weighbridge verify --json``.
    """

    valid: bool
    signature: str
    method: str
    signer: str | None
    unchecked: str | None
    differences: list[FileDifference]
    compared: int
    remembered: int
    bytes: int
    ignored: list[str]
    findings: list[Finding]

    def __bool__(self) -> bool:
        return self.valid


def _pem(given: Pem | None) -> str:
    """The text of a key or certificate: bytes are the text itself, anything else is a path."""
    if given is None:
        return ""
    if isinstance(given, bytes):
        if not given:
            raise ValueError("the key or certificate is empty")
        return given.decode("ascii", "replace")
    with open(given, "rb") as file:
        text = file.read(1 << 20).decode("ascii", "replace")
    if not text:  # which would mean that none was given
        raise ValueError(f"{os.fspath(given)!r} is empty, so it is not a key or certificate")
    return text


def manifest(
    path: StrPath,
    output: StrPath,
    *,
    key: Pem | None = None,
    certificate: Pem | None = None,
    chain: Iterable[Pem] = (),
    per_tensor: bool = False,
    range_size: int | str | None = None,
    ignore: Iterable[str] | str = (),
    allow_symlinks: bool = False,
    overwrite: bool = False,
    limits: Limits | None = None,
    progress: Progress = None,
) -> Manifest:
    """Lists the files of a model with their SHA-256, and signs the list: OpenSSF Model Signing 1.0.

    Parameters
    ----------
    path, output
        A file or a folder, and the manifest to write.
    key : path or bytes, optional
        Private key (PEM) on the curve P-256, P-384 or P-521. None: the list is not signed. Wheels cannot sign (:class:`UnsupportedError`).
    certificate, chain : path or bytes, and a list of them
        The signer's certificate; the certificates between it and the root.
    per_tensor : bool
        Also list the content digest of each tensor.
    range_size : int or str, optional
        List ranges of this size (``"64MiB"``, or bytes) instead of whole files.
    ignore : str or list of str
        Paths or globs to leave out.
    allow_symlinks, overwrite : bool
        Follow links to files; replace `output` if it exists and is a manifest.

    Returns
    -------
    Manifest
    """
    import json

    if certificate is not None and key is None:
        raise TypeError("a certificate needs its private key: give key too")
    options = dict(per_tensor=per_tensor, range_size=range_size, ignore=_texts(ignore), allow_symlinks=allow_symlinks, output=os.fspath(output),
                   overwrite=overwrite)
    made = json.loads(_core.manifest(os.fspath(path), _pem(key), _pem(certificate), [_pem(each) for each in chain], options,
                                     settings(limits, progress, what="hash")))
    return Manifest.of({**made, "range_size": made["shard_size"]})


def verify_manifest(
    path: StrPath, manifest: Source, public_key: Pem | None, roots: Pem | None, only_file: Iterable[str] | str, ignore: Iterable[str] | str,
    ignore_unsigned: bool, cache: bool | StrPath, limits: Limits | None, progress: Progress,
) -> ManifestVerdict:
    import json

    where = _core.manifest_cache(os.fspath(path)) if cache is True else os.fspath(cache) if cache else None
    options = dict(only_file=_texts(only_file), ignore=_texts(ignore), ignore_unsigned=ignore_unsigned, cache=where)
    found = json.loads(_core.verify_manifest(os.fspath(path), to_input(manifest), _pem(public_key), _pem(roots), options,
                                             settings(limits, progress, what="verify")))
    found["differences"] = [FileDifference.of(each) for each in found["differences"]]
    found["findings"] = [Finding.told(each) for each in found["findings"]]
    return ManifestVerdict.of(found)


__all__ = ("FileDifference", "Manifest", "ManifestVerdict", "manifest")
