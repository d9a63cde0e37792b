# SPDX-License-Identifier: Apache-2.0
"""The folder of a job. Owns its parts, which are kept until all are finished, the check of each, and the moment when
the output appears.

While the job is unfinished, ``OUT.job/`` is beside the output ``OUT``: ``job.json`` (what the job is),
``parts/part-00000.parquet``, ``done/00000.json`` (the size and the digests of that part), ``at/00000`` (the piece that
a worker is reading). Whatever is renamed into place is complete, and a part that is made twice is the same file. Parts
of a single file are ``part-00000.arrows``, streams of Arrow: only the file itself is encoded as Parquet."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import shutil
import time
import uuid
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq

from .._errors import InputOutputError, UsageError
from ._rows import RowsDigest, parquet_writer, regrouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

MANIFEST = "_weighbridge.json"
TOLD_EACH = 0.5  # seconds between a worker's reports of its rows


class Part:
    """What one task makes: pieces of the input, which a maker turns into rows."""

    def __init__(self, index: int, pieces: list[Any], size: int) -> None:
        self.index, self.pieces, self.size = index, pieces, size
        self.published = True  # as it is, not as rows of a single file

    @property
    def name(self) -> str:
        """The name of its file."""
        return f"part-{self.index:05d}.{'parquet' if self.published else 'arrows'}"

    def file(self, folder: str) -> str:
        """Its file in the folder of the job."""
        return os.path.join(folder, "parts", self.name)

    def record(self, folder: str) -> str:
        """The record of its file once that is complete."""
        return os.path.join(folder, "done", f"{self.index:05d}.json")

    def at(self, folder: str) -> str:
        """Which piece its worker is in, that worker's process, and the rows so far."""
        return os.path.join(folder, "at", f"{self.index:05d}")


def parts_of(pieces: Iterable[tuple[Any, int]], size: int, most: int = 10_000) -> list[Part]:
    """Pieces in order, as parts of at least `size`."""
    out: list[Part] = []
    held: list[Any] = []
    total = 0
    for piece, bytes_ in pieces:
        held.append(piece)
        total += bytes_
        if total >= size or len(held) >= most:
            out.append(Part(len(out), held, total))
            held, total = [], 0
    if held:
        out.append(Part(len(out), held, total))
    return out


def listing(files: list[tuple[Any, ...]]) -> str:
    """How many files an input has, and a digest by which to tell whether one of them has changed."""
    return f"{len(files)} files, {hashlib.sha256(repr(files).encode('utf-8', 'surrogatepass')).hexdigest()}"


def at_least(least: int, **given: int | None) -> None:
    """Raises UsageError unless each number is None or at least as large as required."""
    for name, value in given.items():
        if value is not None and value < least:
            raise UsageError(f"{name.replace('_', ' ')}: at least {least} is expected, not {value}")


def apart(sources: Iterable[str], output: str | os.PathLike[str]) -> Callable[[str], bool]:
    """Raises UsageError if the output would replace one of the sources. Returns a function that says whether a file is
    the output of an earlier run, or a part of it, inside a source that is a folder."""
    out = os.path.realpath(os.fspath(output))
    for source in sources:
        inside = os.path.realpath(source)
        if inside == out or inside.startswith(out + os.sep):
            raise UsageError(f"{source} is the input, and {os.fspath(output)} would replace it: choose another output")
    return lambda path: os.path.realpath(path) == out or os.path.realpath(path).startswith((out + os.sep, out + ".job" + os.sep))


class Maker:
    """Turns pieces of an input into rows. Pickled into each worker; opens what it needs when it is first used there."""

    def schema(self) -> pa.Schema:
        """The schema of every table, with the metadata of the output."""
        raise NotImplementedError

    def rows(self, piece: Any) -> Iterable[pa.Table]:
        """The rows of a piece. What is wrong with the input is a row too: an exception ends the job."""
        raise NotImplementedError

    def lost(self, piece: Any, message: str) -> pa.Table:
        """The row for a piece that kills every worker that reads it."""
        raise NotImplementedError


def file_digest(path: str) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        state = hashlib.sha256()
        while block := file.read(1 << 22):
            state.update(block)
        return state.hexdigest()


class _Hashed(io.BufferedWriter):
    """A new file, and the SHA-256 of what was written to it."""

    def __init__(self, path: str) -> None:
        super().__init__(io.FileIO(path, "w"))
        self.sha256 = hashlib.sha256()

    def write(self, data: Any, /) -> int:
        self.sha256.update(data)
        return super().write(data)

    def sync(self) -> None:
        """Lets what was written reach the disk."""
        self.flush()
        os.fsync(self.fileno())


def sync_folder(folder: str) -> None:
    """Syncs a folder, so that renames in it survive a crash."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_whole(path: str, text: str) -> None:
    temporary = f"{path}.{uuid.uuid4().hex}~"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def make_part(folder: str, maker: Maker, part: Part, lost: dict[int, str], told: Callable[[], Any] | None = None) -> dict[str, Any]:
    """Makes a part and its record. Runs in a worker; may run twice, and elsewhere at once.

    Parameters
    ----------
    lost : dict
        For the number of a piece: why it is not tried again.
    told : callable, optional
        Called when the file that reports the rows so far has changed.
    """
    schema = maker.schema()
    digest = RowsDigest()
    rules: Counter[str] = Counter()
    path, at = part.file(folder), part.at(folder)

    def tables() -> Iterable[pa.Table]:
        rows, last = 0, time.monotonic()

        def write() -> None:
            with open(at, "w", encoding="ascii") as file:
                file.write(f"{number} {os.getpid()} {rows}\n")

        for number, piece in enumerate(part.pieces):
            write()  # shows where a worker died
            for table in [maker.lost(piece, lost[number])] if number in lost else maker.rows(piece):
                yield table
                rows += table.num_rows
                if time.monotonic() - last > TOLD_EACH:
                    last = time.monotonic()
                    write()
                    if told is not None:
                        told()

    temporary = f"{path}.{uuid.uuid4().hex}~"
    try:
        with _Hashed(temporary) as file:
            with parquet_writer(file, schema) if part.published else pa.ipc.new_stream(file, schema) as writer:
                for table in regrouped(tables(), schema):
                    digest.add(table)
                    rules.update(table["rule"].drop_null().to_pylist())
                    writer.write_table(table)
            file.sync()
        record = {"rows": digest.rows, "digest": digest.hex, "rules": dict(sorted(rules.items())), "bytes": os.path.getsize(temporary),
                  "sha256": file.sha256.hexdigest()}
        os.replace(temporary, path)
        sync_folder(os.path.dirname(path))
        _write_whole(part.record(folder), json.dumps(record))
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    return record


class Job:
    """A job with its folder, locked for one process at a time."""

    def __init__(self, output: str | os.PathLike[str], what: dict[str, Any], parts: list[Part], *, overwrite: bool = False, restart: bool = False) -> None:
        self.output = os.path.abspath(os.fspath(output))
        self.single = self.output.endswith(".parquet")
        self.folder, self.parts = self.output + ".job", parts
        for part in parts:
            part.published = not self.single
        self.what = json.dumps(what, sort_keys=True)
        self.done: dict[int, dict[str, Any]] = {}
        self.rows, self.size, self.rules = 0, 0, Counter[str]()  # of the parts that are done
        self.total_size = sum(part.size for part in parts)
        parent = os.path.dirname(self.output)
        if not os.path.isdir(parent):
            raise UsageError(f"{parent}, the folder of the output, does not exist")
        os.makedirs(self.folder, exist_ok=True)
        self._lock = open(os.path.join(self.folder, "lock"), "w", encoding="ascii")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise UsageError(f"another process is working on {self.folder}: wait for it, or choose another output") from error
        try:
            self._prepare(overwrite, restart)
        except BaseException:
            self.close()
            raise

    def _prepare(self, overwrite: bool, restart: bool) -> None:
        aside = os.path.join(self.folder, "replaced")
        if os.path.exists(aside) and not os.path.lexists(self.output):  # before anything in the folder is dropped
            os.rename(aside, self.output)
        if restart:
            self._empty()
        known = os.path.join(self.folder, "job.json")
        there = None
        if os.path.exists(known):
            with open(known, encoding="utf-8") as file:
                there = file.read()
        if there is not None and there != self.what and not any(name.endswith(".json") for name in self._names("done")):
            there = None  # nothing of it would be lost
        if there is not None and there != self.what:
            raise UsageError(f"{self.folder} has the parts of another job ({_difference(there, self.what)}): finish that job, remove its folder, "
                             "or restart to drop them")
        if there is None:
            self._empty()  # of a job that was ended while it tidied up
        self.finished = there is not None and self._published()
        if os.path.lexists(self.output) and not overwrite and not self.finished:
            if there is None:
                self._remove()
            raise UsageError(f"{self.output} exists: choose another output, or overwrite it")
        if os.path.isdir(self.output) and not self.finished:
            others = [name for name in os.listdir(self.output) if name != MANIFEST and not name.endswith(".parquet")]
            if others or (os.listdir(self.output) and not os.path.exists(os.path.join(self.output, MANIFEST))):
                if there is None:
                    self._remove()
                raise UsageError(f"{self.output} is a folder that no job made, and is not replaced: choose another output")
        for name in ("parts", "done", "at"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        if there is None:
            _write_whole(known, self.what)
        for part in () if self.finished else self.parts:
            record = self._kept(part)
            if record is not None:
                self.note(part, record)

    def _published(self) -> bool:
        """Whether the interrupted run had already renamed the folder of parts."""
        if self.single or os.path.exists(os.path.join(self.folder, "parts")):
            return False
        try:
            with open(os.path.join(self.output, MANIFEST), encoding="utf-8") as file:
                parts = json.load(file)["parts"]
            records = []
            for part in self.parts:
                with open(part.record(self.folder), encoding="utf-8") as file:
                    records.append(json.load(file))
            if parts != [[part.name, record["sha256"]] for part, record in zip(self.parts, records)]:
                return False
        except (OSError, ValueError, KeyError, TypeError):
            return False
        for part, record in zip(self.parts, records):
            self.note(part, record)
        return True

    def _kept(self, part: Part) -> dict[str, Any] | None:
        """The record of a part that an earlier run finished; None unless its file has that digest."""
        path = part.file(self.folder)
        try:
            with open(part.record(self.folder), encoding="utf-8") as file:
                told: dict[str, Any] = json.load(file)
            if os.path.getsize(path) == told["bytes"] and file_digest(path) == told["sha256"]:
                return told
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return None

    def _names(self, name: str) -> list[str]:
        path = os.path.join(self.folder, name)
        return os.listdir(path) if os.path.isdir(path) else []

    def _at(self, part: Part, field: int) -> int | None:
        try:
            with open(part.at(self.folder), encoding="ascii") as file:
                return int(file.read().split()[field])
        except (OSError, ValueError, IndexError):
            return None

    def piece_of(self, part: Part) -> int | None:
        """The piece in which the last worker of a part was."""
        return self._at(part, 0)

    def note(self, part: Part, record: dict[str, Any]) -> None:
        """Counts a finished part."""
        self.done[part.index] = record
        self.rows += record["rows"]
        self.size += part.size
        self.rules.update(record["rules"])

    def rows_of(self, part: Part) -> int:
        """The rows that the worker of a part has made so far."""
        return self._at(part, 2) or 0

    def publish(self, schema: pa.Schema, told: dict[str, Any]) -> RowsDigest:
        """Lets the output appear: all of it, or nothing."""
        digest = RowsDigest()
        for part in self.parts:
            digest.merge(self.done[part.index]["digest"], self.done[part.index]["rows"])
        if self.finished:
            self._empty()
            self._remove()
            return digest
        told = {**told, "digest": digest.text, "rows": digest.rows, "parts": [[part.name, self.done[part.index]["sha256"]] for part in self.parts]}
        parts = os.path.join(self.folder, "parts")
        wanted = {part.name for part in self.parts}
        for name in os.listdir(parts):
            if name not in wanted:  # what a killed worker left
                os.unlink(os.path.join(parts, name))
        if self.single:
            whole = self._joined(schema, digest, parts)
        else:
            _write_whole(os.path.join(parts, MANIFEST), json.dumps(told, indent=1) + "\n")
            sync_folder(parts)
            whole = parts
        aside = None
        if os.path.isdir(self.output) and not os.path.islink(self.output):  # only a file is replaced by a rename
            aside = f"{self.folder}/replaced"
            os.rename(self.output, aside)
        elif os.path.lexists(self.output) and not self.single:
            os.unlink(self.output)
        os.rename(whole, self.output)
        sync_folder(os.path.dirname(self.output))
        self._empty()
        self._remove()
        return digest

    def _joined(self, schema: pa.Schema, digest: RowsDigest, parts: str) -> str:
        def tables() -> Iterable[pa.Table]:
            for part in self.parts:
                path = os.path.join(parts, part.name)
                if file_digest(path) != self.done[part.index]["sha256"]:
                    raise InputOutputError(f"{path} has other bytes than its worker wrote: the file system lost or changed some")
                with pa.OSFile(path) as file, pa.ipc.open_stream(file) as batches:
                    for batch in batches:
                        yield pa.Table.from_batches([batch])

        whole = os.path.join(self.folder, "whole.parquet")
        with _Hashed(whole) as file:
            with parquet_writer(file, schema) as writer:
                for table in regrouped(tables(), schema):  # so that its bytes do not depend on the division
                    writer.write_table(table)
                writer.add_key_value_metadata({"weighbridge.rows": digest.text})
            file.sync()
        if file_digest(whole) != file.sha256.hexdigest():
            raise InputOutputError(f"{whole} has other bytes than were written: the file system lost or changed some")
        return whole

    def _empty(self) -> None:
        for name in ("job.json", "parts", "done", "at", "whole.parquet", "replaced"):
            path = os.path.join(self.folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)

    def _remove(self) -> None:
        os.unlink(os.path.join(self.folder, "lock"))
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        """Releases the lock."""
        self._lock.close()


def _difference(one: str, two: str) -> str:
    try:
        a, b = json.loads(one), json.loads(two)
        return "another " + ", ".join(sorted(key for key in a.keys() | b.keys() if a.get(key) != b.get(key)))
    except (ValueError, AttributeError):
        return "its job.json cannot be read"
