# SPDX-License-Identifier: Apache-2.0
"""Columns of texts to columns of vectors by the Arrow C data interface, with pyarrow, Polars and DuckDB."""
import gc

import pytest

import weighbridge as wb

np = pytest.importorskip("numpy", reason="needs numpy")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
TEXTS = ["a truck", None, "a lorry on the road, which is longer than the others", "", "a truck"]


@pytest.fixture(scope="module")
def expected(embedder):
    return embedder.encode([text or "" for text in TEXTS])


def rows(column):
    return [None if row is None else np.array(row, np.float32) for row in column.to_pylist()]


def same(found, expected):
    assert len(found) == len(TEXTS)
    for row, vector, text in zip(found, expected, TEXTS):
        assert (row is None) == (text is None)
        assert text is None or np.array_equal(row, vector)


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_each_kind_of_text_column(embedder, expected, kind):
    made = embedder.embed_arrow(pa.array(TEXTS, getattr(pa, kind)()))
    out = pa.array(made)
    out.validate(full=True)
    assert out.type == pa.list_(pa.float32(), embedder.dimension) and out.null_count == 1 and len(made) == 5
    same(rows(out), expected)
    same(rows(pa.array(made)), expected)  # each consumer gets its own


def test_a_slice_with_its_own_bitmap(embedder, expected):
    out = pa.array(embedder.embed_arrow(pa.array(["x"] * 11 + TEXTS + ["y"]).slice(11, 5)))
    same(rows(out), expected)


def test_chunks_stay_chunks(embedder, expected):
    column = pa.chunked_array([TEXTS[:2], [], TEXTS[2:]], pa.string())
    made = embedder.embed_arrow(column)
    out = pa.chunked_array(made)
    out.validate(full=True)
    assert [len(chunk) for chunk in out.chunks] == [2, 0, 3]
    same(rows(out), expected)
    with pytest.raises(ValueError, match="several chunks"):
        pa.array(made)
    empty = embedder.embed_arrow(pa.chunked_array([], pa.string()))
    assert len(pa.array(empty)) == 0 and pa.chunked_array(empty).num_chunks == 0


def test_the_schema_names_the_model(embedder, encoder_folder):
    made = embedder.embed_arrow(pa.array(["a"]))
    field = pa.field(made)
    assert field.metadata == {key.encode(): value.encode() for key, value in embedder.facts.items()}
    assert field.metadata[b"weighbridge.model"] == wb.hash(encoder_folder).encode() and embedder.facts["weighbridge.version"] == wb.__version__


def test_vectors_of_two_kinds_are_not_mixed(embedder, encoder_folder, tmp_path):
    wb.convert(encoder_folder, tmp_path / "same.zt", allow="file")
    same = wb.Embedder(tmp_path / "same.zt", normalize=True, threads=1)
    assert same.kind == embedder.kind and np.array_equal(same.encode(["a truck"]), embedder.encode(["a truck"]))
    field = pa.field(embedder.embed_arrow(pa.array(["a"])))
    for made in (field, pa.schema([field.with_name("v")]), pa.table({"v": pa.array(["a"])}, pa.schema([pa.field("v", pa.string(), metadata=field.metadata)])),
                 embedder.kind):
        same.require_kind(made)
    for other in (dict(precision="int8"), dict(pooling="cls"), dict(normalize=False), dict(max_length=9), dict(lower_case=False)):
        with pytest.raises(wb.UsageError, match="two kinds"):
            wb.Embedder(encoder_folder, **{"normalize": True, **other}).require_kind(field)
    with pytest.raises(wb.UsageError, match="two kinds"):
        embedder.require_kind(pa.field("v", pa.float32()))


def test_the_memory_lives_as_long_as_the_column(embedder, expected):
    out = pa.array(embedder.embed_arrow(pa.array(TEXTS)))
    gc.collect()
    same(rows(out), expected)


def test_other_columns_are_refused(embedder):
    with pytest.raises(TypeError, match="utf8"):
        embedder.embed_arrow(pa.array([1, 2]))
    with pytest.raises(TypeError, match="dictionary"):
        embedder.embed_arrow(pa.array(["a", "a"]).dictionary_encode())
    with pytest.raises(TypeError, match="one column"):
        embedder.embed_arrow(pa.table({"text": ["a"]}))
    with pytest.raises(TypeError, match="Arrow is expected"):
        embedder.embed_arrow(["a"])


def test_polars(embedder, expected):
    pl = pytest.importorskip("polars", reason="needs polars")
    out = pl.Series(embedder.embed_arrow(pl.Series(TEXTS)))
    assert out.dtype == pl.Array(pl.Float32, embedder.dimension)
    same([None if row is None else np.array(row, np.float32) for row in out.to_list()], expected)


def test_duckdb(embedder, expected):
    duckdb = pytest.importorskip("duckdb", reason="needs duckdb")
    column = duckdb.sql("select unnest(?) as text", params=[TEXTS]).to_arrow_table()["text"]
    vectors = pa.table({"vector": pa.chunked_array(embedder.embed_arrow(column))})
    found = duckdb.sql("select vector from vectors").fetchall()
    same([None if row is None else np.array(row, np.float32) for row, in found], expected)


def test_a_column_that_was_taken_is_refused(embedder):
    class Taken:
        def __init__(self, column):
            self.stream = column.__arrow_c_stream__()
            pa.ChunkedArray._import_from_c_capsule(self.stream)

        def __arrow_c_stream__(self, requested_schema=None):
            return self.stream

    with pytest.raises(ValueError, match="another consumer"):
        embedder.embed_arrow(Taken(pa.chunked_array([["a"]])))

    class Wrong:
        def __init__(self, given):
            self.given = given

        def __arrow_c_array__(self, requested_schema=None):
            return self.given

    for given in ((), (1,), [], 3, (None, None)):
        with pytest.raises((TypeError, ValueError)):
            embedder.embed_arrow(Wrong(given))
