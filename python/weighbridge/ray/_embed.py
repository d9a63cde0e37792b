# SPDX-License-Identifier: Apache-2.0
"""Embed: batches of Arrow with a column of texts in, the same batches with a column of vectors out. Needs no Ray: any engine may call it."""

from __future__ import annotations

import functools
import os
import sys

import pyarrow as pa

from .._embed import Embedder
from .._errors import UsageError
from ._parts import at_least
from ._run import workers_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ray.data import Dataset

DTYPES = ("f32", "f16", "int8")


class Embed:
    """Adds the vectors of a column of texts to batches: a class for ``map_batches`` of Ray Data, and a function for any Arrow batches.

    It pickles as its arguments. The first batch in each process opens the model, mapped, so processes of a node share its pages.

    Parameters
    ----------
    model : path
        What :class:`weighbridge.Embedder` opens, at the same path on each node.
    column, output : str
        The names of the texts, and of the vectors. A null text has a null vector.
    dtype : {"f32", "f16", "int8"}
        The type of the vectors. f32 is what the model computed, without a copy. f16 is rounded to nearest. int8 keeps the direction of each vector: its
        largest element becomes 127 or -127, and the cosine of two vectors needs no scale. It is for models that normalize.
    threads : int, optional
        By default the processors that Ray gives to the actor, at least 1.
    kind : str, optional
        The required :attr:`Embedder.kind`: a node with another model at this path then raises an error instead of making other vectors.
    **options
        As for :class:`weighbridge.Embedder`: precision, pooling, normalize, max_length, lower_case, heads.
    """

    def __init__(self, model: str | os.PathLike[str], *, column: str = "text", output: str = "embedding", dtype: str = "f32",
                 threads: int | None = None, kind: str | None = None, **options: Any) -> None:
        if dtype not in DTYPES:
            raise UsageError(f"dtype is one of {', '.join(DTYPES)}, not {dtype!r}")
        self._arguments = dict(column=column, output=output, dtype=dtype, threads=threads, kind=kind, **options)
        self._model = os.path.abspath(model)
        self._column, self._output, self._dtype, self._threads, self._kind, self._options = column, output, dtype, threads, kind, options
        self._embedder: Embedder | None = None
        self._process = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), self._model, **self._arguments), ()

    def for_workers(self) -> Embed:
        """The same, to be pickled: workers refuse a model of another kind."""
        made = type(self)(self._model, **{**self._arguments, "kind": self.embedder.kind})
        made._embedder, made._process = self._embedder, self._process  # for this process
        return made

    @property
    def embedder(self) -> Embedder:
        """The model, opened in this process."""
        if self._embedder is None or self._process != os.getpid():
            made = Embedder(self._model, threads=self._threads or _own_cpus(), **self._options)
            if self._kind is not None:
                made.require_kind(self._kind)
            if self._dtype == "int8" and not made._embedder.normalize:
                raise UsageError("int8 keeps the direction of vectors, not their length: give normalize=True, or another dtype")
            self._embedder, self._process = made, os.getpid()
        return self._embedder

    def field(self) -> pa.Field:
        """The column of vectors: its type, with metadata on which weights made it, and how."""
        item = {"f32": pa.float32(), "f16": pa.float16(), "int8": pa.int8()}[self._dtype]
        facts = {**self.embedder.facts, "weighbridge.dtype": self._dtype}
        return pa.field(self._output, pa.list_(item, self.embedder.dimension), metadata=facts)

    def vectors(self, texts: Any) -> pa.ChunkedArray:
        """The vectors of a column of texts: utf8, large_utf8, string_view or a dictionary of them; an array or chunks."""
        if not hasattr(texts, "__arrow_c_stream__"):
            texts = pa.chunked_array([texts] if isinstance(texts, pa.Array) else [pa.array(texts, pa.large_string())])
        if isinstance(texts, pa.ChunkedArray) and pa.types.is_dictionary(texts.type):
            texts = texts.cast(texts.type.value_type)
        if isinstance(texts, pa.ChunkedArray) and pa.types.is_null(texts.type):
            texts = texts.cast(pa.string())
        made = pa.chunked_array(self.embedder.embed_arrow(texts))
        return made if self._dtype == "f32" else _narrowed(made, self._dtype)

    def __call__(self, batch: Any) -> Any:
        """A table or a record batch of pyarrow with the column of vectors; or a dict of NumPy arrays, as with Ray's batch_format="numpy"."""
        if isinstance(batch, pa.RecordBatch):
            return self._of_batch(batch)
        if isinstance(batch, dict):
            return self._of_arrays(batch)
        if not isinstance(batch, pa.Table):
            raise UsageError(f"a table of pyarrow is expected, not a {type(batch).__name__}: give map_batches batch_format=\"pyarrow\"")
        self._check(batch.column_names)
        return batch.append_column(self.field(), self.vectors(batch[self._column]))

    def _of_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self._check(batch.schema.names)
        vectors = self.vectors(batch.column(self._column)).combine_chunks()
        return pa.RecordBatch.from_arrays([*batch.columns, vectors], schema=batch.schema.append(self.field()))

    def _of_arrays(self, batch: dict[str, Any]) -> dict[str, Any]:
        import numpy

        self._check(list(batch))
        texts = pa.array([None if text is None else str(text) for text in batch[self._column]], pa.large_string())
        if texts.null_count:
            raise UsageError("NumPy arrays cannot hold a null vector for a null text: give map_batches batch_format=\"pyarrow\"")
        vectors = self.vectors(texts).combine_chunks()
        return {**batch, self._output: vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(texts), -1) if len(texts)
                else numpy.empty((0, self.embedder.dimension))}

    def _check(self, names: list[str]) -> None:
        if self._column not in names:
            raise UsageError(f"the batch has no column {self._column!r}; there are {', '.join(map(repr, names))}")
        if self._output in names:
            raise UsageError(f"the batch has a column {self._output!r} already: name another output")


def _own_cpus() -> int:
    """The processors that Ray gives to this actor, rounded down; 1 elsewhere."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return 1
    try:
        return max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
    except AssertionError:  # Ray's own, in the process that drives the job
        return 1


def _narrowed(vectors: pa.ChunkedArray, dtype: str) -> pa.ChunkedArray:
    import numpy

    chunks = []
    for chunk in vectors.chunks:
        values = chunk.values.to_numpy(zero_copy_only=True).reshape(len(chunk), chunk.type.list_size)
        if dtype == "f16":
            narrow = pa.array(values.astype(numpy.float16).reshape(-1), pa.float16())
        else:
            largest = numpy.abs(values).max(axis=1, keepdims=True, initial=0)
            narrow = pa.array(numpy.rint(values * (numpy.float32(127) / numpy.where(largest > 0, largest, 1))).astype(numpy.int8).reshape(-1))
        mask = chunk.is_null() if chunk.null_count else None
        chunks.append(pa.FixedSizeListArray.from_arrays(narrow, chunk.type.list_size, mask=mask))
    return pa.chunked_array(chunks, pa.list_(pa.float16() if dtype == "f16" else pa.int8(), vectors.type.list_size))


def embed(dataset: Dataset, model: str | os.PathLike[str], *, workers: int | None = None, batch_size: int = 256, **arguments: Any) -> Dataset:
    """A Ray Data dataset with a column of vectors: ``map_batches`` with :class:`Embed`, and actors that leave room for Ray's readers.

    Parameters
    ----------
    dataset : ray.data.Dataset
    workers : int, optional
        Actors; by default the processors of the cluster divided by `threads`. Each claims half a processor for each thread: actors that claim whole ones
        starve the tasks that read, and the job waits forever.
    model, **arguments
        As for :class:`Embed`.
    """
    from ray.data import ActorPoolStrategy

    threads = int(arguments.setdefault("threads", 1) or 1)
    at_least(1, workers=workers, batch_size=batch_size, threads=threads)
    return dataset.map_batches(Embed, fn_constructor_args=(os.path.abspath(model),), fn_constructor_kwargs=arguments, batch_format="pyarrow",
                               batch_size=batch_size, num_cpus=0.5 * threads, compute=ActorPoolStrategy(size=workers or workers_of(threads)),
                               zero_copy_batch=True)


__all__ = ("Embed", "embed")
