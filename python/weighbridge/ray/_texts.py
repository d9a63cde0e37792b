# SPDX-License-Identifier: Apache-2.0
"""Texts of files: which files an input has, their division into pieces, and the rows of a piece. What cannot be read is a row with a finding."""

from __future__ import annotations

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq

from .._errors import Finding, MissingFileError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

FORMS = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "text", ".md": "text"}
MOST_BYTES = 16 << 20  # of a line
READ_ROWS = 1024  # fixed, so that the rows before damage do not depend on an option

Row = tuple[int, "str | None", "list[Any]", "str | None", "str | None"]  # place, text, kept, rule, message


class File:
    """A file of the input: its name in the output, where it is, and its form."""

    def __init__(self, name: str, path: str, form: str) -> None:
        self.name, self.path, self.form = name, path, form
        stat = os.stat(path)
        self.size, self.changed = stat.st_size, stat.st_mtime_ns


class Piece:
    """A share of a file: bytes of a text, whose lines begin there, or rows of a Parquet file."""

    def __init__(self, name: str, path: str, form: str, first: int, end: int) -> None:
        self.name, self.path, self.form, self.first, self.end = name, path, form, first, end


def printable(name: str) -> str:
    """A name or message as valid Unicode; bytes that are not UTF-8 appear as escapes."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") if not name.isascii() else name


def missing(message: str) -> MissingFileError:
    """The exception for a missing input."""
    return MissingFileError(message, Finding("io/open", "error", "io", message))


def files_of(source: str | os.PathLike[str], form: str | None, ours: Callable[[str], bool] = lambda path: False) -> list[File]:
    """The files of an input, sorted by name: one file, or those of a folder whose extension names a form, and which are
    not `ours`."""
    path = os.fspath(source)
    if form is not None and form not in ("parquet", "jsonl", "text"):
        raise UsageError(f"the form is parquet, jsonl or text, not {form!r}")
    if os.path.isfile(path):
        return [File(printable(os.path.basename(path)), os.path.abspath(path), form or FORMS.get(os.path.splitext(path)[1].lower(), "text"))]
    if not os.path.isdir(path):
        raise missing(f"{path}: no such file or folder")
    out = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in names:
            known = FORMS.get(os.path.splitext(name)[1].lower())
            full = os.path.join(folder, name)
            if known is not None and (form is None or known == form) and not name.startswith((".", "_")) and os.path.isfile(full) and not ours(full):
                out.append(File(printable(os.path.relpath(full, path)), os.path.abspath(full), known))
    if not out:
        raise UsageError(f"{path} has no file that ends in {', '.join(FORMS)}")
    return sorted(out, key=lambda file: (file.name, file.path))


def pieces_of(file: File, column: str, size: int) -> list[tuple[Piece, int]]:
    """The pieces of a file, of about `size` bytes of text each, and how many bytes each has."""
    if file.form != "parquet":
        starts = range(0, file.size, size)
        return [(Piece(file.name, file.path, file.form, at, min(at + size, file.size)), min(size, file.size - at)) for at in starts]
    try:
        with pq.ParquetFile(file.path) as opened:
            rows, bytes_ = opened.metadata.num_rows, 1
            for group in range(opened.metadata.num_row_groups):
                told = opened.metadata.row_group(group)
                bytes_ += sum(told.column(i).total_uncompressed_size for i in range(told.num_columns)
                              if told.column(i).path_in_schema.split(".")[0] == column)
    except (OSError, pa.ArrowException):
        return [(Piece(file.name, file.path, file.form, 0, 0), 1)]  # reading it says what is wrong
    step = max(1, min(rows, size * rows // bytes_))
    return [(Piece(file.name, file.path, file.form, at, min(at + step, rows)), bytes_ * min(step, rows - at) // rows)
            for at in range(0, rows, step)] or [(Piece(file.name, file.path, file.form, 0, 0), 1)]


def rows_of(piece: Piece, column: str, keep: list[str]) -> Iterator[list[Row]]:
    """The rows of a piece, some at a time."""
    try:
        if piece.form == "parquet":
            yield from _parquet(piece, column, keep)
        else:
            yield from _lines(piece, column, keep)
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, MemoryError):  # pyarrow's is an ArrowException too; another worker may have more memory
            raise
        yield [(piece.first, None, [None] * len(keep), "input/unreadable", printable(f"{type(error).__name__}: {error}".splitlines()[0]))]


def _parquet(piece: Piece, column: str, keep: list[str]) -> Iterator[list[Row]]:
    nothing: list[Any] = [None] * len(keep)
    with pq.ParquetFile(piece.path) as file:
        missing = [name for name in (column, *keep) if name not in file.schema_arrow.names]
        if missing:
            yield [(piece.first, None, nothing, "input/no-column", f"the file has no column {missing[0]!r}")]
            return
        kind = file.schema_arrow.field(column).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not (pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain)):
            yield [(piece.first, None, nothing, "input/column-type", f"the column {column!r} is of type {kind}, not text")]
            return
        at = 0
        groups = []
        for group in range(file.metadata.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if at + count > piece.first and at < piece.end:
                groups.append((group, at))
            at += count
        if not groups:
            return
        at = groups[0][1]
        for batch in file.iter_batches(READ_ROWS, row_groups=[group for group, _ in groups], columns=[column, *keep]):
            first, end = max(piece.first - at, 0), min(piece.end - at, batch.num_rows)
            if first < end:
                some = batch.slice(first, end - first)
                kept = zip(*(some.column(some.schema.get_field_index(name)).to_pylist() for name in keep)) if keep else iter([()] * len(some))
                yield [(at + first + i, text, list(others), None, None)
                       for i, (text, others) in enumerate(zip(some.column(some.schema.get_field_index(column)).to_pylist(), kept))]
            at += batch.num_rows
            if at >= piece.end:
                return


def _lines(piece: Piece, column: str, keep: list[str]) -> Iterator[list[Row]]:
    some: list[Row] = []
    with open(piece.path, "rb") as file:
        if piece.first:
            file.seek(piece.first - 1)  # a line belongs to the piece in which it begins
            _skip(file)
        at = file.tell()
        while at < piece.end:
            line = file.readline(MOST_BYTES + 1)
            end = at + len(line)
            if len(line) > MOST_BYTES:
                if not line.endswith(b"\n"):
                    _skip(file)
                    end = file.tell()
                some.append((at, None, [None] * len(keep), "input/long-line", f"the line has more than {MOST_BYTES:,} bytes"))
            elif piece.form == "text" or line.strip():  # an empty line is not JSON
                some.append(_line(at, line.rstrip(b"\r\n"), piece.form, column, keep))
            at = end
            if len(some) == READ_ROWS:
                yield some
                some = []
    if some:
        yield some


def _skip(file: Any) -> None:
    while (rest := file.readline(1 << 20)) and not rest.endswith(b"\n"):
        pass


def _line(at: int, line: bytes, form: str, column: str, keep: list[str]) -> Row:
    nothing: list[Any] = [None] * len(keep)
    rule = message = None
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        text = line.decode("utf-8", "replace")
        rule, message = "input/utf8", f"byte {error.start} of the line is not UTF-8: read with replacement characters"
    if form == "text":
        return at, text, nothing, rule, message
    try:
        made = json.loads(text)
    except (ValueError, RecursionError) as error:
        return at, None, nothing, "input/json", f"the line is not JSON: {error}"
    found = made if isinstance(made, str) else made.get(column) if isinstance(made, dict) else None
    if found is None and isinstance(made, dict) and column in made:
        return at, None, [_kept(made.get(name)) for name in keep], None, None  # null in, null out
    if not isinstance(found, str):
        return at, None, nothing, "input/no-text", f"the line has no text under {column!r}"
    try:
        found.encode()
    except UnicodeEncodeError:
        found = found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        rule, message = "input/utf8", "the text has an unpaired surrogate: read with replacement characters"
    others = [_kept(made.get(name)) for name in keep] if isinstance(made, dict) else nothing
    return at, found, others, rule, message


def _kept(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=True, sort_keys=True)
