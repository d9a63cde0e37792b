# SPDX-License-Identifier: Apache-2.0
"""search: the texts of an embedded corpus that are nearest in meaning to a query."""

from __future__ import annotations

import heapq
import os

import pyarrow as pa
import pyarrow.parquet as pq

from .._embed import Embedder
from .._errors import UsageError
from .._record import Record
from ._parts import at_least
from ._rows import parquet_files
from ._texts import missing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Hit(Record):
    """A text that was found.

    Attributes
    ----------
    score : float
        The cosine with the query.
    file : str
    place : int
        Of the text, as in the corpus.
    text : str or None
        None if the corpus was made without texts.
    """

    score: float
    file: str
    place: int
    text: str | None


def search(corpus: str | os.PathLike[str], query: str, model: str | os.PathLike[str], *, top: int = 10, embedding: str = "embedding",
           threads: int = 0, **options: Any) -> list[Hit]:
    """The texts nearest to a query in a corpus that :func:`embed_corpus` made, best first. Reads all vectors once, a group of rows at a time.

    Parameters
    ----------
    corpus : path
        The output of embed_corpus.
    query : str
    model : path
        The model that made the corpus. Another one, or the same with other options, raises UsageError: its vectors cannot be compared.
    top : int
        How many.
    **options
        As for :class:`weighbridge.Embedder`. Precision, pooling, normalize and max_length default to those of the corpus.
    """
    import numpy

    at_least(1, top=top)
    files = parquet_files(os.fspath(corpus))
    if not files or not os.path.exists(files[0]):
        raise missing(f"{corpus}: no Parquet file there")
    made: Embedder | None = None
    best: list[tuple[float, int, Hit]] = []
    count = 0
    for path in files:
        try:
            opened = pq.ParquetFile(path)
        except pa.ArrowInvalid as error:
            raise UsageError(f"{path} is not a Parquet file: give the output of embed ({str(error).splitlines()[0]})") from error
        with opened as file:
            names = file.schema_arrow.names
            if embedding not in names:
                raise UsageError(f"{path} has no column {embedding!r}")
            field = file.schema_arrow.field(embedding)
            if made is None:
                made = Embedder(model, threads=threads, **{**_options(field), **options})
                asked = _unit(made.encode([query]))[0]
            made.require_kind(field)
            columns = [name for name in ("file", "place", "text", embedding) if name in names]
            for batch in file.iter_batches(8192, columns=columns):
                table = pa.Table.from_batches([batch])
                vectors = table[embedding].combine_chunks()
                there = numpy.flatnonzero(vectors.is_valid().to_numpy(zero_copy_only=False))
                values = vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(there), -1).astype(numpy.float32)
                scores = _unit(values) @ asked
                for i in numpy.argsort(-scores, kind="stable")[:top]:
                    row = int(there[i])
                    if len(best) == top and float(scores[i]) <= best[0][0]:
                        break
                    told = {name: table[name][row].as_py() if name in columns else None for name in ("file", "place", "text")}
                    item = (float(scores[i]), -(count + row), Hit(float(scores[i]), **told))
                    (heapq.heappush if len(best) < top else heapq.heappushpop)(best, item)
                count += table.num_rows
    return [hit for _, _, hit in sorted(best, key=lambda one: (-one[0], -one[1]))]


def _options(field: pa.Field) -> dict[str, Any]:
    said = {key.decode(): value.decode() for key, value in (field.metadata or {}).items() if key.startswith(b"weighbridge.")}
    out: dict[str, Any] = {name: said[f"weighbridge.{name}"] for name in ("precision", "pooling") if f"weighbridge.{name}" in said}
    if "weighbridge.normalize" in said:
        out["normalize"] = said["weighbridge.normalize"] == "true"
    if said.get("weighbridge.max_length", "").isdigit():
        out["max_length"] = int(said["weighbridge.max_length"])
    return out


def _unit(vectors: Any) -> Any:
    import numpy

    return vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


__all__ = ("Hit", "search")
