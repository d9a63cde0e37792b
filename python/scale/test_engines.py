# SPDX-License-Identifier: Apache-2.0
"""The same bits in every engine that speaks Arrow."""
import os

import numpy as np
import pytest

import weighbridge as wb
import weighbridge.arrow as wa

TEXTS = ["a truck", None, "a lorry on the road", "", "truck", "query"] * 700


@pytest.fixture(scope="module")
def expected(encoder_folder):
    return dict(zip(TEXTS[:6], wb.Embedder(encoder_folder).encode([text or "" for text in TEXTS[:6]])))


def same(rows, expected):
    """rows: (number, vector) in any order."""
    assert len(rows) == len(TEXTS)
    for i, vector in sorted(rows):
        assert vector is None if TEXTS[i] is None else np.array_equal(np.float32(vector), expected[TEXTS[i]]), i


def test_duckdb(encoder_folder, expected):
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    connection = duckdb.connect()
    wa.duckdb_function(connection, encoder_folder, threads=1)
    docs = pa.table({"id": range(len(TEXTS)), "text": TEXTS})
    assert docs.num_rows == len(TEXTS)
    made = connection.sql("SELECT id, embed(text) AS v FROM docs")
    assert connection.sql("SELECT DISTINCT typeof(embed(text)) FROM docs").fetchall() == [("FLOAT[32]",)]
    same(made.fetchall(), expected)
    assert connection.sql("SELECT array_cosine_similarity(embed('a truck'), embed('a truck'))").fetchall()[0][0] == pytest.approx(1)
    assert connection.sql("SELECT embed(text) FROM docs WHERE id < 0").fetchall() == []


def test_pyarrow(encoder_folder, expected):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    wa.pyarrow_function(encoder_folder, "embed_test", precision="f32")
    made = pc.call_function("embed_test", [pa.chunked_array([TEXTS[:7], TEXTS[7:]])])
    same(list(enumerate(made.to_pylist())), expected)
    table = ds.dataset(pa.table({"id": range(len(TEXTS)), "text": TEXTS})).to_table(
        columns={"id": ds.field("id"), "v": pc.Expression._call("embed_test", [ds.field("text")])})
    same([(row["id"], row["v"]) for row in table.to_pylist()], expected)


def test_polars(encoder_folder, expected):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"id": range(len(TEXTS)), "text": TEXTS})
    for made in (frame.with_columns(v=wa.polars_expression("text", encoder_folder)),
                 frame.lazy().with_columns(v=wa.polars_expression(pl.col("text"), wb.Embedder(encoder_folder))).collect()):
        assert made.schema["v"] == pl.Array(pl.Float32, 32)
        same(list(zip(made["id"], made["v"].to_list())), expected)


def test_daft(encoder_folder, expected):
    daft = pytest.importorskip("daft")
    from daft.functions import embed_text

    daft.attach_provider(wa.daft_provider())
    frame = daft.from_pydict({"id": list(range(len(TEXTS))), "text": TEXTS})
    made = frame.with_column("v", embed_text(frame["text"], provider="weighbridge", model=str(encoder_folder), threads=1)).to_pydict()
    same(list(zip(made["id"], made["v"])), expected)
    with pytest.raises(wb.UsageError, match="path"):
        embed_text(frame["text"], provider="weighbridge")


def test_spark(encoder_folder, expected):
    pytest.importorskip("pyspark", reason="needs pyspark, a source archive of 456 MB, and Java")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = __import__("sys").executable
    spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "512m")
             .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100").getOrCreate())
    try:
        frame = spark.createDataFrame(list(enumerate(TEXTS)), "id long, text string")
        made = wa.spark_vectors(frame, str(encoder_folder), threads=1)
        assert made.schema["embedding"].simpleString() == "embedding:array<float>"
        same([(row.id, row.embedding) for row in made.collect()], expected)
        with pytest.raises(wb.UsageError, match="'body'"):
            wa.spark_vectors(frame, encoder_folder, column="body")
    finally:
        spark.stop()
