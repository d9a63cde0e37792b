# SPDX-License-Identifier: Apache-2.0
"""Vectors in engines that use Arrow: functions for DuckDB, pyarrow, Polars, Daft and Spark.

Each takes a :class:`weighbridge.Embedder`, or the arguments of one: ``model``, ``precision`` and so on. Texts go in and vectors come out in
Arrow batches. The vector of a null text is null, and the vector of a text has the same bits in every engine, batch and retry.
"""

from __future__ import annotations

from ._embed import Embedder
from ._errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _embedder(model: Any, options: dict[str, Any]) -> Embedder:
    if isinstance(model, Embedder):
        if options:
            raise UsageError(f"an Embedder has its options already: {', '.join(options)}")
        return model
    return Embedder(model, **options)


def duckdb_function(connection: Any, model: Any, name: str = "embed", **options: Any) -> None:
    """Adds a function from VARCHAR to FLOAT[dimension] to a DuckDB connection.

    Examples
    --------
    >>> connection = duckdb.connect()
    >>> weighbridge.arrow.duckdb_function(connection, "all-MiniLM-L6-v2")
    >>> rows = connection.sql("SELECT id, embed(text) AS v FROM 'docs.parquet'").fetchall()
    """
    import pyarrow

    embedder = _embedder(model, options)

    def embed(texts: Any) -> Any:
        made = pyarrow.chunked_array(embedder.embed_arrow(texts))
        return made.combine_chunks() if made.num_chunks != 1 else made.chunk(0)

    embed.__annotations__ = {}  # DuckDB evaluates them
    connection.create_function(name, embed, ["VARCHAR"], f"FLOAT[{embedder.dimension}]", type="arrow", null_handling="special")


def pyarrow_function(model: Any, name: str = "embed", **options: Any) -> None:
    """Registers a compute function with pyarrow, for ``pyarrow.compute.call_function`` and dataset expressions. A name can be registered only once.

    Examples
    --------
    >>> weighbridge.arrow.pyarrow_function("all-MiniLM-L6-v2")
    >>> vectors = pyarrow.compute.call_function("embed", [pyarrow.array(["a"])])
    """
    import pyarrow
    import pyarrow.compute

    embedder = _embedder(model, options)

    def embed(context: Any, texts: Any) -> Any:
        if isinstance(texts, pyarrow.Scalar):
            texts = pyarrow.array([texts.as_py()], texts.type)
        return pyarrow.array(embedder.embed_arrow(texts))

    pyarrow.compute.register_scalar_function(embed, name, {"summary": "the vector of a text", "description": repr(embedder)},
                                             {"text": pyarrow.string()}, pyarrow.list_(pyarrow.float32(), embedder.dimension))


def polars_expression(column: Any, model: Any, **options: Any) -> Any:
    """A Polars expression: the vectors of a column, as ``Array(Float32, dimension)``.

    Examples
    --------
    >>> frame = polars.read_parquet("docs.parquet")
    >>> frame.with_columns(v=weighbridge.arrow.polars_expression("text", "all-MiniLM-L6-v2")).columns
    ['id', 'text', 'v']
    """
    import polars

    embedder = _embedder(model, options)
    texts = polars.col(column) if isinstance(column, str) else column
    return texts.map_batches(lambda series: polars.Series(series.name, embedder.embed_arrow(series)),
                             return_dtype=polars.Array(polars.Float32, embedder.dimension), is_elementwise=True)


def spark_vectors(frame: Any, model: Any, column: str = "text", output: str = "embedding", **options: Any) -> Any:
    """A Spark DataFrame with a column of vectors, by ``mapInArrow``. The package and the model must be on each node.

    Examples
    --------
    >>> frame = pyspark.sql.SparkSession.builder.getOrCreate().read.parquet("docs.parquet")
    >>> weighbridge.arrow.spark_vectors(frame, os.path.abspath("all-MiniLM-L6-v2"), threads=1).columns
    ['id', 'text', 'embedding']
    """
    import pyspark.sql.types as types

    embedder = _embedder(model, options)
    if column not in frame.columns or output in frame.columns:
        raise UsageError(f"the frame has the columns {frame.columns}: {column!r} must be one of them, and {output!r} must not")

    def embed(batches: Any) -> Any:
        import pyarrow

        for batch in batches:
            texts = batch.column(batch.schema.get_field_index(column))
            vectors = pyarrow.array(embedder.embed_arrow(texts)).cast(pyarrow.list_(pyarrow.float32()))
            yield pyarrow.RecordBatch.from_arrays([*batch.columns, vectors], names=[*batch.schema.names, output])

    return frame.mapInArrow(embed, types.StructType([*frame.schema.fields, types.StructField(output, types.ArrayType(types.FloatType()))]))


def daft_provider(name: str = "weighbridge") -> Any:
    """A provider for Daft's ``embed_text``. The model is a path.

    Examples
    --------
    >>> daft.attach_provider(weighbridge.arrow.daft_provider())
    >>> frame = daft.read_parquet("docs.parquet")
    >>> vectors = daft.functions.embed_text(frame["text"], provider="weighbridge", model="all-MiniLM-L6-v2")
    >>> frame.with_column("v", vectors).column_names
    ['id', 'text', 'v']
    """
    from ._daft import WeighbridgeProvider

    return WeighbridgeProvider(name)


__all__ = ("daft_provider", "duckdb_function", "polars_expression", "pyarrow_function", "spark_vectors")
