# SPDX-License-Identifier: Apache-2.0
"""Rows on their way to Parquet: groups of a fixed size, and a digest of the rows that does not depend on their order or division."""

from __future__ import annotations

import hashlib
import itertools
import os

import numpy
import pyarrow as pa
import pyarrow.parquet as pq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

# Fixed, so that the bytes of a part depend on its rows alone. A block fits in the cache: pyarrow takes half the time for a group of blocks that it
# takes for one array of all rows. A group has a whole number of blocks.
ROWS_IN_GROUP, ROWS_IN_BLOCK = 8192, 1024
_MODULUS = 1 << 256


def regrouped(tables: Iterable[pa.Table], schema: pa.Schema, rows: int = ROWS_IN_GROUP) -> Iterator[pa.Table]:
    """The same rows in tables of `rows` and of the rest, whose chunks are blocks."""
    block = min(rows, ROWS_IN_BLOCK)
    blocks = _blocks(tables, schema, block)
    while group := list(itertools.islice(blocks, rows // block)):
        yield pa.concat_tables(group)


def _blocks(tables: Iterable[pa.Table], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of one chunk each, of `rows` and of the rest."""
    held: list[pa.Table] = []
    count = 0
    for table in tables:
        while table.num_rows:
            some = table.slice(0, rows - count)
            table = table.slice(some.num_rows)
            held.append(some)
            count += some.num_rows
            if count == rows:
                yield pa.concat_tables(held).combine_chunks().cast(schema)
                held, count = [], 0
    if held:
        yield pa.concat_tables(held).combine_chunks().cast(schema)


def parquet_writer(to: Any, schema: pa.Schema) -> pq.ParquetWriter:
    """For the rows of an output. The numbers of vectors are stored as they are: looking for equal ones and compressing
    the rest takes longer than writing them, and saves a twentieth."""
    floats = {field.name for field in schema if pa.types.is_list(field.type) and pa.types.is_floating(field.type.value_type)}
    sink = pa.BufferOutputStream()
    pq.write_table(schema.empty_table(), sink)
    with pq.ParquetFile(pa.BufferReader(sink.getvalue())) as file:  # which knows by what path Parquet names a column inside another
        leaves = [file.schema.column(i).path for i in range(len(file.schema))]
    others = [leaf for leaf in leaves if leaf.split(".")[0] not in floats]
    return pq.ParquetWriter(to, schema, compression={leaf: "zstd" if leaf in others else "none" for leaf in leaves}, use_dictionary=others,
                            write_statistics=others)


class RowsDigest:
    """A digest of a set of rows: the sum of their SHA-256s. Sums of parts add up to that of the whole, so that it depends neither on the order
    of the rows nor on their division. It reveals rows that were lost, duplicated or changed; it does not protect against forgery."""

    def __init__(self, total: int = 0, rows: int = 0) -> None:
        self.total, self.rows = total, rows

    def add(self, table: pa.Table) -> RowsDigest:
        """Adds the rows of a table."""
        for batch in table.to_batches():
            self._add(batch)
        return self

    def _add(self, batch: pa.RecordBatch) -> None:
        vectors: list[Any] = []
        others = []
        for name, column in zip(batch.schema.names, batch.columns):
            if pa.types.is_fixed_size_list(column.type) or pa.types.is_list(column.type) and pa.types.is_primitive(column.type.value_type):
                vectors += _bytes_of(column)
            else:
                others.append((name, column.to_pylist()))
        names = repr([name for name, _ in others]).encode()
        plain = zip(*(values for _, values in others)) if others else iter([()] * batch.num_rows)
        heads = [names + repr(row).encode("utf-8", "surrogatepass") for row in plain]
        sha256, join = hashlib.sha256, b"".join
        digests = join([sha256(join(row)).digest() for row in zip(heads, *vectors)])
        sums = numpy.frombuffer(digests, "<u4").reshape(-1, 8).sum(0, numpy.uint64).tolist()  # of 32 bits each, so that none overflows
        self.total = (self.total + sum(number << 32 * i for i, number in enumerate(sums))) % _MODULUS
        self.rows += batch.num_rows

    def merge(self, total: str, rows: int) -> RowsDigest:
        """Adds another digest."""
        self.total = (self.total + int(total, 16)) % _MODULUS
        self.rows += rows
        return self

    @property
    def hex(self) -> str:
        """The sum, as 64 digits."""
        return f"{self.total:064x}"

    @property
    def text(self) -> str:
        """``"wbr1:"``, 64 digits, ``":"`` and the number of rows."""
        return f"wbr1:{self.hex}:{self.rows}"


def _bytes_of(column: Any) -> tuple[list[bytes], list[memoryview]]:
    """For each list of a column: a byte that is 0 for null, and the bytes of its numbers, in the column's own memory."""
    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        ends = range(column.offset * size, (column.offset + len(column) + 1) * size, size) if size else [0] * (len(column) + 1)
    else:
        ends = column.offsets.to_pylist()
    values = column.values
    bytes_ = values.type.bit_width // 8
    data = memoryview(values.buffers()[1]).cast("B")[values.offset * bytes_:] if len(values) else memoryview(b"")
    rows = [data[first * bytes_:end * bytes_] for first, end in zip(ends, ends[1:])]
    flags = [b"\1"] * len(rows)
    if column.null_count:
        for i, valid in enumerate(column.is_valid().to_pylist()):
            if not valid:
                flags[i], rows[i] = b"\0", data[:0]
    return flags, rows


def parquet_files(output: str) -> list[str]:
    """The files of an output: itself, or those in the folder, in order."""
    if os.path.isdir(output):
        return [os.path.join(output, name) for name in sorted(os.listdir(output)) if name.endswith(".parquet")]
    return [output]


def rows_digest(output: str | os.PathLike[str]) -> str:
    """The digest of the rows of an output, which is read again. Equal for the same rows in the same columns, whatever
    the number of files and workers.

    Parameters
    ----------
    output : path
        A Parquet file, or a folder of them.

    Returns
    -------
    str
        As in :class:`Report`: ``"wbr1:"``, 64 digits, ``":"`` and the number of rows.
    """
    digest = RowsDigest()
    for path in parquet_files(os.fspath(output)):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_IN_GROUP):
                digest.add(pa.Table.from_batches([batch]))
    return digest.text
