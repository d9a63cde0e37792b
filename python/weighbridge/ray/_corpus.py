# SPDX-License-Identifier: Apache-2.0
"""embed_corpus: the texts of many files to Parquet with a column of vectors."""

from __future__ import annotations

import os
import time

import pyarrow as pa
import pyarrow.parquet as pq

from .._errors import UsageError
from ._embed import Embed
from ._parts import Job, Maker, apart, at_least, listing, parts_of
from ._run import finish
from ._texts import File, Piece, files_of, pieces_of, rows_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from ._run import Progress, Report

PART_BYTES = 1 << 18  # at least: some seconds of work
OWN = ("file", "place", "text", "rule", "message")


class CorpusMaker(Maker):
    """Makes rows with vectors. Its schema is the driver's: a node whose model makes other vectors is an error."""

    def __init__(self, embed: Embed, field: pa.Field, column: str, keep: list[pa.Field], with_text: bool, batch_size: int) -> None:
        self.embed, self.field, self.column, self.keep, self.with_text, self.batch_size = embed, field, column, keep, with_text, batch_size

    def schema(self) -> pa.Schema:
        text = [pa.field("text", pa.large_string())] if self.with_text else []
        return pa.schema([pa.field("file", pa.string()), pa.field("place", pa.int64()), *self.keep, *text, self.field,
                          pa.field("rule", pa.string()), pa.field("message", pa.string())], metadata=self.field.metadata)

    def rows(self, piece: Piece) -> Iterator[pa.Table]:
        names = [field.name for field in self.keep]
        for rows in rows_of(piece, self.column, names):
            for i in range(0, len(rows), self.batch_size):
                yield self._table(piece.name, rows[i:i + self.batch_size])

    def _table(self, file: str, rows: list[Any]) -> pa.Table:
        places, texts, kept, rules, messages = map(list, zip(*rows))
        column = pa.array(texts, pa.large_string())
        columns: dict[str, Any] = {"file": pa.array([file] * len(rows), pa.string()), "place": pa.array(places, pa.int64()), "text": column,
                                   self.field.name: self.embed.vectors(column).cast(self.field.type),
                                   "rule": pa.array(rules, pa.string()), "message": pa.array(messages, pa.string())}
        for i, field in enumerate(self.keep):
            values = [row[i] for row in kept]
            try:
                columns[field.name] = pa.array(values, field.type)
            except (pa.ArrowException, TypeError, OverflowError):  # the column has another type in this file
                columns[field.name] = pa.array([_cast(value, field.type) for value in values], field.type)
        schema = self.schema()
        return pa.table([columns[name] for name in schema.names], schema=schema)

    def lost(self, piece: Piece, message: str) -> pa.Table:
        return self._table(piece.name, [(piece.first, None, [None] * len(self.keep), "input/worker-ended", message)])


def _cast(value: Any, kind: pa.DataType) -> Any:
    try:
        return pa.scalar(value).cast(kind).as_py()
    except (pa.ArrowException, TypeError, OverflowError):
        return None


def _kept_fields(files: list[File], keep: Sequence[str]) -> list[pa.Field]:
    """The fields of the first Parquet file, if all files are Parquet; otherwise strings, since lines of JSON have no types."""
    if all(file.form == "parquet" for file in files):
        for file in files:
            try:
                schema = pq.read_schema(file.path)
            except (OSError, pa.ArrowException):
                continue
            if all(name in schema.names for name in keep):
                return [pa.field(name, schema.field(name).type) for name in keep]
    return [pa.field(name, pa.string()) for name in keep]


def _stored(field: pa.Field) -> pa.Field:
    """The column of vectors in Parquet: a list, since pyarrow cannot read a null of a list of fixed size back."""
    return pa.field(field.name, pa.list_(field.type.value_type), metadata={**field.metadata, "weighbridge.dimension": str(field.type.list_size)})


def embed_corpus(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    model: str | os.PathLike[str],
    *,
    column: str = "text",
    keep: Sequence[str] = (),
    form: str | None = None,
    with_text: bool = True,
    embedding: str = "embedding",
    dtype: str = "f32",
    workers: int | None = None,
    threads: int = 1,
    batch_size: int = 256,
    part_bytes: int | None = None,
    address: str | None = None,
    cpus: int | None = None,
    overwrite: bool = False,
    restart: bool = False,
    progress: Callable[[Progress], Any] | None = None,
    **options: Any,
) -> Report:
    """Embeds the texts of a corpus on Ray. The rows and their bits do not depend on the number of workers, the batch size or failures on the way.

    Parameters
    ----------
    source : path
        A Parquet file, lines of JSON (``.jsonl``), lines of text, or a folder of such files.
    output : path
        ``NAME.parquet`` becomes one file, any other name a folder of them. It appears when it is complete. Until then, `output` ``.job`` keeps the
        finished parts, and the same call resumes the job. Both must be on a filesystem that every node sees.
    model : path
        What :class:`weighbridge.Embedder` opens, at the same path on each node.
    column : str
        The column of texts, in Parquet and JSON.
    keep : sequence of str
        Columns to copy to the output. If not all files are Parquet, they become strings.
    form : {"parquet", "jsonl", "text"}, optional
        The form of the input; by default, what the extension says.
    with_text : bool
        Copy the texts too.
    embedding, dtype, **options
        The name of the column of vectors; the others as for :class:`Embed`.
    workers, threads : int
        Actors, by default the processors of the cluster divided by `threads`; threads of each. An actor claims half a processor for each thread.
        With 0 workers, and where Ray is not installed, the job runs in this process.
    batch_size : int
        Texts to compute at once. Affects memory only.
    part_bytes : int, optional
        Bytes of text in a part. A part is lost and made again if its worker dies. By default the larger of 256 KiB and a thousandth of the input.
    address : str, optional
        The address of a cluster: ``"auto"`` or ``"HOST:PORT"``. Without it and RAY_ADDRESS, Ray is started here for the job, with `cpus` processors.
    overwrite : bool
        Replace an existing output.
    restart : bool
        Drop the parts of an earlier run.
    progress : callable, optional
        Called with a :class:`Progress` at least once a second.

    Returns
    -------
    Report

    Notes
    -----
    In Parquet, vectors are lists of variable size, because readers have no nulls in fixed-size lists. The columns are ``file``, ``place`` (the byte at which a line begins, or the number of a row), those of `keep`, ``text``, the vectors, ``rule`` and
    ``message``. Input that cannot be read becomes a row with a rule, and a null vector unless the text could be repaired. The schema's metadata holds
    :attr:`Embedder.facts`.
    """
    begin = time.monotonic()
    at_least(0, workers=workers)
    at_least(1, threads=threads, batch_size=batch_size, part_bytes=part_bytes, cpus=cpus)
    taken = [name for name in (*keep, embedding) if name in OWN] + ([embedding] if embedding in keep else [])
    if taken or len(set(keep)) < len(keep):
        raise UsageError(f"the output has one column of each name, and {', '.join(OWN)} are its own: "
                         f"{', '.join(taken) or 'a column is kept twice'}")
    files = files_of(source, form, apart([os.fspath(source)], output))
    part_bytes = part_bytes or max(PART_BYTES, sum(file.size for file in files) // 1000)
    plan = Embed(model, column=column, output=embedding, dtype=dtype, threads=threads, **options)
    field = _stored(plan.field())
    maker = CorpusMaker(plan.for_workers(), field, column, _kept_fields(files, keep), with_text, batch_size)
    parts = parts_of((piece for file in files for piece in pieces_of(file, column, part_bytes)), part_bytes)
    what = {"job": "embed", "input": listing([(file.name, file.size, file.changed) for file in files]), "kind": plan.embedder.kind, "column": column,
            "columns": [str(one) for one in maker.schema()], "part size": part_bytes, "form": form, "version": plan.embedder.facts["weighbridge.version"]}
    job = Job(output, what, parts, overwrite=overwrite, restart=restart)
    try:
        return finish(job, maker, begin, workers=workers, threads=threads, address=address, cpus=cpus, progress=progress,
                      told={key.split(".")[1]: value for key, value in plan.embedder.facts.items()})
    finally:
        job.close()


__all__ = ("embed_corpus",)
