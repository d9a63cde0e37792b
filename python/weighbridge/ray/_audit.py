# SPDX-License-Identifier: Apache-2.0
"""audit: what each file of a lake of models is, what is wrong with it, and which files hold the same weights."""

from __future__ import annotations

import os
import re
import time

import pyarrow as pa

from .. import _core
from .._checks import verify
from .._errors import Error, Finding, UsageError
from .._jobs import formats, hash
from .._model import open as open_model
from ._parts import Job, Maker, apart, at_least, listing, parts_of
from ._run import finish
from ._texts import missing, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from ._run import Progress, Report

SCHEMA = pa.schema([
    pa.field("path", pa.string()), pa.field("model", pa.string()), pa.field("verdict", pa.string()), pa.field("format", pa.string()),
    pa.field("size", pa.int64()), pa.field("tensors", pa.int64()), pa.field("digest", pa.string()), pa.field("values", pa.string()),
    pa.field("checked", pa.string()), pa.field("rule", pa.string()), pa.field("severity", pa.string()), pa.field("kind", pa.string()),
    pa.field("message", pa.string()), pa.field("file", pa.string()), pa.field("offset", pa.int64()), pa.field("tensor", pa.string()),
    pa.field("expected", pa.string()), pa.field("found", pa.string()), pa.field("findings", pa.int64())])
PART_BYTES, PART_FILES = 256 << 20, 64
_SPLIT = re.compile(r"^(?P<name>.*)-(?P<part>\d{5})-of-\d{5}\.gguf$", re.S)


class Group:
    """Files that are checked together: one, or a model with its files."""

    def __init__(self, main: str | None, files: list[tuple[str, str, int]]) -> None:
        self.main, self.files = main, files  # main: the path of a folder or a first part; files: (name in the table, path or address, size)


def _walk(root: str) -> list[Group]:
    out: list[Group] = []
    for folder, folders, names in os.walk(root):
        folders.sort()
        files = []
        for name in sorted(names):
            full = os.path.join(folder, name)
            try:
                if os.path.isfile(full) or os.path.islink(full):  # a link that leads nowhere is a finding
                    files.append((printable(os.path.relpath(full, root)), os.path.abspath(full), os.path.getsize(full) if os.path.exists(full) else 0))
            except OSError:
                files.append((printable(os.path.relpath(full, root)), os.path.abspath(full), 0))
        if any(name == "config.json" or name.endswith(".index.json") for name in names):
            out.append(Group(os.path.abspath(folder), files))
            continue
        splits: dict[str, list[tuple[str, str, int]]] = {}
        for file in files:
            found = _SPLIT.match(file[1])
            if found:
                splits.setdefault(found["name"], []).append(file)
            else:
                out.append(Group(None, [file]))
        for split in splits.values():
            first = split[0][1] if "-00001-of-" in os.path.basename(split[0][1]) else None
            out.append(Group(first, split))
    return out


def _listed(source: Any) -> list[Group]:
    """The files of a source, in groups."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if "://" in path:
            return _bucket(path)
        if os.path.isdir(path):
            return _walk(path)
        if not os.path.isfile(path):
            raise missing(f"{path}: no such folder or listing")
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            source = [line.rstrip("\r\n") for line in file if line.strip()]
    paths = [os.fspath(path) for path in source]
    out = []
    for path in paths:
        if "://" in path:
            out.append(Group(None, [(printable(path), path, 0)]))
        elif os.path.isdir(path):
            out.append(Group(os.path.abspath(path), [(printable(path), os.path.abspath(path), 0)]))
        else:
            out.append(Group(None, [(printable(path), os.path.abspath(path), os.path.getsize(path) if os.path.exists(path) else 0)]))
    if not out:
        raise UsageError("the listing names no file")
    return out


def _bucket(address: str) -> list[Group]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(f"listing {address} needs the package fsspec: pip install fsspec, and the package for its protocol") from error
    files, root = url_to_fs(address)
    found = files.find(root, detail=True)
    if not found:
        raise missing(f"{address}: no files there")
    return [Group(None, [(printable(os.path.relpath(path, root)), str(files.unstrip_protocol(path)), int(told.get("size") or 0))])
            for path, told in sorted(found.items())]


class AuditMaker(Maker):
    """Rows of findings."""

    def __init__(self, limits: dict[str, int] | None, values: bool) -> None:
        self.limits, self.values = limits, values
        self.extensions = tuple("." + extension for one in formats() for extension in one.extensions)

    def schema(self) -> pa.Schema:
        return SCHEMA.with_metadata({"weighbridge.version": _core.__version__})

    def rows(self, piece: Group) -> Iterator[pa.Table]:
        covered: dict[str, str] = {}
        if piece.main is not None:
            # A folder has the name of its files' folder, and a slash.
            name = next((name for name, path, _ in piece.files if path == piece.main), None) or os.path.dirname(piece.files[0][0]) + "/"
            name = "./" if name == "/" else name
            try:
                with open_model(piece.main, limits=self.limits) as model:
                    covered = {os.path.realpath(path): name for path in model._handle.files()}
            except (Error, OSError):
                pass  # its files are checked one by one
            if covered:
                size = sum(size for _, path, size in piece.files if os.path.realpath(path) in covered)
                yield self._table(self._look(name, piece.main, size, name))
        for name, path, size in piece.files:
            if path == piece.main and covered:
                continue
            if "://" not in path and os.path.realpath(path) in covered:
                yield self._table([{"path": name, "model": covered[os.path.realpath(path)], "verdict": "part", "size": size, "findings": 0}])
            else:
                yield self._table(self._look(name, path, size, None))

    def lost(self, piece: Group, message: str) -> pa.Table:
        return self._table([{"path": name, "verdict": "unreadable", "size": size, "rule": "input/worker-ended", "severity": "error", "kind": "limit",
                             "message": message, "findings": 1} for name, _, size in piece.files])

    def _table(self, rows: list[dict[str, Any]]) -> pa.Table:
        columns = [pa.array([printable(value) if isinstance(value := row.get(field.name), str) else value for row in rows], field.type)
                   for field in SCHEMA]
        return pa.table(columns, schema=self.schema())

    def _look(self, name: str, path: str, size: int, model: str | None) -> list[dict[str, Any]]:
        """The rows of a file: one for each finding, or one that has none."""
        row: dict[str, Any] = {"path": name, "model": model, "size": size}
        try:
            verdict = verify(path, limits=self.limits)
        except MemoryError:  # another worker may have more
            raise
        except Exception as error:  # whatever it is, the other files go on
            return [{**row, "verdict": "unreadable", **_finding(error, path), "findings": 1}]
        row.update(format=verdict.format or None, tensors=verdict.tensors, checked=verdict.checked, findings=verdict.total)
        if not verdict.format and not path.lower().endswith(self.extensions):
            return [{**row, "verdict": "other", "checked": None, "findings": 0}]
        findings = [_finding(finding, path) for finding in verdict.findings]
        state = "valid" if verdict.valid else "invalid"
        if verdict.valid:
            try:
                with open_model(path, limits=self.limits) as opened:
                    row["digest"] = hash(opened)
                    row["values"] = hash(opened, names=False) if self.values else None
            except MemoryError:
                raise
            except Exception as error:
                findings.append(_finding(error, path))
                row["findings"] += 1
        return [{**row, "verdict": state, **finding} for finding in findings or [{}]]


def _finding(error: BaseException | Finding, path: str) -> dict[str, Any]:
    if isinstance(error, Finding):
        finding = error
    elif isinstance(error, Error):
        finding = error.finding
    else:
        rule = "io/open" if isinstance(error, OSError) else "input/failed"
        finding = Finding(rule, "error", "io", f"{type(error).__name__}: {error}")
    fields = {key: getattr(finding, key) for key in ("rule", "severity", "kind", "message", "offset", "tensor", "expected", "found")}
    fields["expected"], fields["found"] = finding.expected or None, finding.found or None
    fields["file"] = None if finding.file is None else os.path.basename(finding.file) if os.path.isabs(finding.file) else finding.file
    if fields["file"] == os.path.basename(path):
        fields["file"] = None
    return fields


def audit(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    values: bool = True,
    limits: dict[str, int] | None = None,
    workers: int | None = None,
    address: str | None = None,
    cpus: int | None = None,
    overwrite: bool = False,
    restart: bool = False,
    progress: Callable[[Progress], Any] | None = None,
) -> Report:
    """Verifies all files of a lake of models, and writes a table with a row for each finding, and one for each file without findings. The work is
    divided among workers of Ray; where that is not installed, or with 0 workers, it is done in this process.

    Parameters
    ----------
    source : path, or sequence of paths
        A folder; an fsspec address to list (``s3://bucket/models``); a file with one path or address per line; or paths and addresses.
    output : path
        As for :func:`embed_corpus`.
    values : bool
        Also compute the digest without tensor names, which reads each file once more.
    limits : dict, optional
        For each file, as for :func:`weighbridge.open`.
    workers, address, cpus, overwrite, restart, progress
        As for :func:`embed_corpus`. A worker takes one thread.

    Returns
    -------
    Report

    Notes
    -----
    ``verdict`` is ``valid``, ``invalid``, ``unreadable``, ``part`` (of the model that ``model`` names) or ``other`` (not a model, by content and name).
    ``digest`` is equal for the same tensors in any container, ``values`` also if tensors have other names. A Hugging Face folder, shards with their index
    and a split GGUF are one model with its files as parts, unless it cannot be opened: then each file is checked alone.
    """
    begin = time.monotonic()
    at_least(0, workers=workers)
    at_least(1, cpus=cpus)
    groups = _listed(source)
    given = [os.fspath(path) for path in ([source] if isinstance(source, (str, os.PathLike)) else source)]
    ours = apart([path for path in given if "://" not in path], output)
    for group in groups:
        group.files = [file for file in group.files if "://" in file[1] or not ours(file[1])]
    groups = [group for group in groups if group.files]
    parts = parts_of(((group, sum(size for _, _, size in group.files) + PART_BYTES // PART_FILES * len(group.files)) for group in groups), PART_BYTES)
    files = [(path, size, _changed(path)) for group in groups for _, path, size in group.files]
    maker = AuditMaker(limits, values)
    what = {"job": "audit", "input": listing(files), "limits": limits, "values": values, "version": _core.__version__}
    job = Job(output, what, parts, overwrite=overwrite, restart=restart)
    try:
        return finish(job, maker, begin, workers=workers, threads=1, address=address, cpus=cpus, progress=progress, told={"version": _core.__version__})
    finally:
        job.close()


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


__all__ = ("audit",)
