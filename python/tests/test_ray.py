# SPDX-License-Identifier: Apache-2.0
"""Corpora and lakes in one process: batches, rows, findings, what is kept of a job that was stopped. python/scale tests the same on Ray."""
import json
import os
import pickle
import signal
import subprocess
import sys

import pytest

import weighbridge as wb

np = pytest.importorskip("numpy", reason="needs numpy")
pa = pytest.importorskip("pyarrow", reason="needs pyarrow")

import pyarrow.parquet as pq  # noqa: E402

import weighbridge.ray as wr  # noqa: E402

TEXTS = ["a truck", None, "a lorry on the road", "", "a truck"]


def word(i):
    """A number as letters, which is what the test's model knows."""
    return "".join("abcdefghij"[int(digit)] for digit in str(i))


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("".join(f"truck {word(i)} is on the road\n" for i in range(300)) + "no newline at the end")
    (folder / "deep/b.jsonl").write_text("".join(json.dumps({"id": i, "text": f"lorry {word(i)}"}) + "\n" for i in range(200)))
    pq.write_table(pa.table({"text": [f"query {word(i)}" for i in range(500)], "id": list(range(500))}), folder / "c.parquet", row_group_size=170)
    (folder / "ignored.png").write_bytes(b"\x89PNG")
    return folder


def table_of(output):
    return pa.concat_tables([pq.read_table(path) for path in sorted(output.glob("*.parquet"))] if output.is_dir() else [pq.read_table(output)])


# Batches

@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
@pytest.mark.parametrize("batch", ["table", "record batch", "chunks"])
def test_a_batch_gets_a_column_of_vectors(encoder_folder, kind, batch):
    column = pa.array(TEXTS).dictionary_encode() if kind == "dictionary" else pa.array(TEXTS, getattr(pa, kind)())
    table = pa.table({"id": range(5), "text": pa.chunked_array([column[:2], column[2:]]) if batch == "chunks" else column})
    embed = wr.Embed(encoder_folder, output="v")
    made = embed(table.to_batches()[0] if batch == "record batch" else table)
    assert made.schema.names == ["id", "text", "v"] and made["v"].type == pa.list_(pa.float32(), 32)
    expected = wb.Embedder(encoder_folder).encode([text or "" for text in TEXTS])
    for row, vector, text in zip(made["v"].to_pylist(), expected, TEXTS):
        assert row is None if text is None else np.array_equal(np.float32(row), vector)
    assert made.schema.field("v").metadata[b"weighbridge.model"] == wb.hash(encoder_folder).encode()


def test_batches_of_numpy(encoder_folder):
    texts = ["a truck", "a lorry"]
    made = wr.Embed(encoder_folder)({"text": np.array(texts, object), "id": np.arange(2)})
    assert np.array_equal(made["embedding"], wb.Embedder(encoder_folder).encode(texts)) and list(made) == ["text", "id", "embedding"]


def test_half_and_eight_bits(encoder_folder):
    exact = wb.Embedder(encoder_folder, normalize=True).encode(["a truck", "a lorry on the road"])
    table = pa.table({"text": ["a truck", None, "a lorry on the road"]})
    half = wr.Embed(encoder_folder, dtype="f16", normalize=True)(table)["embedding"]
    assert half.type == pa.list_(pa.float16(), 32) and half.null_count == 1
    assert np.array_equal(np.float16([row for row in half.to_pylist() if row is not None]), exact.astype(np.float16))
    codes = wr.Embed(encoder_folder, dtype="int8", normalize=True)(table)["embedding"]
    assert codes.type == pa.list_(pa.int8(), 32) and codes.null_count == 1
    rows = np.float32([row for row in codes.to_pylist() if row is not None])
    assert (abs(rows).max(axis=1) == 127).all()
    assert ((rows / np.linalg.norm(rows, axis=1, keepdims=True) * exact).sum(axis=1) > 0.9995).all()
    with pytest.raises(wb.UsageError, match="direction"):
        wr.Embed(encoder_folder, dtype="int8", normalize=False)(table)


def test_it_pickles_as_its_arguments_and_survives_fork(encoder_folder):
    embed = wr.Embed(encoder_folder, precision="int8", threads=2)
    table = pa.table({"text": TEXTS})
    made = embed(table)
    data = pickle.dumps(embed)
    assert len(data) < 500 and pickle.loads(data)(table).equals(made, check_metadata=True)
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writer, b"y" if embed(table).equals(made) else b"n")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"y"


def test_another_model_at_the_path_is_an_error(encoder_folder):
    kind = wb.Embedder(encoder_folder, precision="int8").kind
    table = pa.table({"text": ["a"]})
    wr.Embed(encoder_folder, precision="int8", kind=kind)(table)
    with pytest.raises(wb.UsageError, match="two kinds"):
        wr.Embed(encoder_folder, kind=kind)(table)


@pytest.mark.parametrize("arguments, batch, why", [
    ({"column": "body"}, {"text": ["a"]}, "no column 'body'"), ({"output": "text"}, {"text": ["a"]}, "has a column 'text' already"),
    ({}, {"text": [1]}, "texts"), ({"dtype": "f64"}, {"text": ["a"]}, "dtype")])
def test_what_a_batch_lacks_is_said(encoder_folder, arguments, batch, why):
    with pytest.raises((wb.UsageError, TypeError), match=why):
        wr.Embed(encoder_folder, **arguments)(pa.table(batch))


# Corpora

def test_rows_and_bits_do_not_depend_on_the_division(encoder_folder, corpus, tmp_path):
    seen = set()
    for i, (name, options) in enumerate([("one.parquet", {}), ("folder", dict(part_bytes=500)), ("batch", dict(part_bytes=3000, batch_size=7))]):
        report = wr.embed_corpus(corpus, tmp_path / name, encoder_folder, workers=0, keep=["id"], **options)
        assert report.rows == 1001 and report.findings == 0 and report.parts > (0, 20, 2)[i] and not (tmp_path / f"{name}.job").exists()
        assert wr.rows_digest(report.output) == report.digest
        seen.add(report.digest)
    assert len(seen) == 1
    found = table_of(tmp_path / "one.parquet")
    assert found.schema.names == ["file", "place", "id", "text", "embedding", "rule", "message"]
    assert found.schema.metadata[b"weighbridge.kind"] == wb.Embedder(encoder_folder).kind.encode()
    texts = found["text"].to_pylist()
    assert texts == [*(f"truck {word(i)} is on the road" for i in range(300)), "no newline at the end", *(f"query {word(i)}" for i in range(500)),
                     *(f"lorry {word(i)}" for i in range(200))]
    assert np.array_equal(np.float32(found["embedding"].to_pylist()), wb.Embedder(encoder_folder).encode(texts))
    assert found["id"].to_pylist()[301:] == [*map(str, range(500)), *map(str, range(200))]
    assert table_of(tmp_path / "folder").select(found.schema.names).equals(found)
    told = json.loads((tmp_path / "folder/_weighbridge.json").read_text())
    assert told["digest"] == report.digest and told["model"] == wb.hash(encoder_folder)


def test_the_digest_finds_what_was_lost_doubled_or_changed(encoder_folder, corpus, tmp_path):
    digest = wr.embed_corpus(corpus, tmp_path / "o.parquet", encoder_folder, workers=0).digest
    table = pq.read_table(tmp_path / "o.parquet")
    changed = table.to_pylist()
    changed[5]["embedding"][3] += 1e-3
    for name, other in {"lost": table.slice(1), "doubled": pa.concat_tables([table, table.slice(7, 1)]),
                        "changed": pa.Table.from_pylist(changed, table.schema)}.items():
        pq.write_table(other, tmp_path / f"{name}.parquet")
        assert wr.rows_digest(tmp_path / f"{name}.parquet") != digest, name
    pq.write_table(table.take(list(range(table.num_rows))[::-1]), tmp_path / "turned.parquet", row_group_size=13)
    assert wr.rows_digest(tmp_path / "turned.parquet") == digest


def test_what_cannot_be_read_is_a_row(encoder_folder, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"good\nbad \xff\xfe bytes\n\n" + b"x" * (17 << 20) + b"\nafter\n")
    (folder / "b.jsonl").write_bytes(b'{"text": "one"}\n{"text": \n{"other": 1}\n[]\n{"text": null}\n"plain"\n{"text": "\\ud800"}\n' + b"[" * 100_000 + b"\n")
    (folder / "c.parquet").write_bytes(b"PAR1 but no more")
    pq.write_table(pa.table({"body": ["a"]}), folder / "d.parquet")
    pq.write_table(pa.table({"text": [1]}), folder / "e.parquet")
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), folder / "f.parquet")
    whole = folder / "g.parquet"
    pq.write_table(pa.table({"text": [f"text {i} " * 20 for i in range(5000)]}), whole, compression="none", use_dictionary=False, row_group_size=1000)
    data = bytearray(whole.read_bytes())
    data[len(data) // 2:len(data) // 2 + 20_000] = bytes(20_000)
    whole.write_bytes(data)
    (folder / "h.txt").write_text("")
    report = wr.embed_corpus(folder, tmp_path / "out.parquet", encoder_folder, workers=0)
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    found = {(row["file"], row["place"]): row for row in rows}
    assert len(found) == len(rows) == report.rows
    rules = [(row["file"], row["rule"]) for row in rows if row["rule"] is not None and row["file"] != "g.parquet"]
    assert rules == [("a.txt", "input/utf8"), ("a.txt", "input/long-line"), ("b.jsonl", "input/json"), ("b.jsonl", "input/no-text"),
                     ("b.jsonl", "input/no-text"), ("b.jsonl", "input/utf8"), ("b.jsonl", "input/json"), ("c.parquet", "input/unreadable"),
                     ("d.parquet", "input/no-column"), ("e.parquet", "input/column-type")]
    assert [row["text"] for row in rows if row["file"] == "a.txt"] == ["good", "bad \ufffd\ufffd bytes", "", None, "after"]
    assert [row["text"] for row in rows if row["file"] == "b.jsonl"] == ["one", None, None, None, None, "plain", "\ufffd", None]
    damaged = [row for row in rows if row["file"] == "g.parquet"]
    assert len(damaged) > 1000 and damaged[-1]["rule"] in (None, "input/unreadable") and report.findings >= len(rules)
    assert all((row["embedding"] is None) == (row["text"] is None) for row in rows)


def test_a_line_belongs_to_one_piece(tmp_path):
    from weighbridge.ray._texts import files_of, pieces_of, rows_of

    lines = ["x" * n for n in (0, 1, 0, 30, 2, 9, 10, 11, 50, 0)]
    (tmp_path / "t.txt").write_text("\n".join(lines))
    for size in range(1, 130):
        pieces = [piece for file in files_of(tmp_path / "t.txt", None) for piece, _ in pieces_of(file, "text", size)]
        rows = [row for piece in pieces for rows in rows_of(piece, "text", []) for row in rows]
        assert [text for _, text, *_ in rows] == lines[:-1] and len({place for place, *_ in rows}) == len(rows), size


# Jobs that were stopped

class Stopped(Exception):
    pass


def stop_after(parts):
    def told(progress):
        if progress.done == parts:
            raise Stopped
    return told


@pytest.mark.parametrize("name", ["o.parquet", "o"])
def test_a_stopped_job_goes_on_where_it_ended(encoder_folder, corpus, tmp_path, name):
    digest = wr.embed_corpus(corpus, tmp_path / "whole", encoder_folder, workers=0, part_bytes=2000).digest
    job = tmp_path / f"{name}.job"
    with pytest.raises(Stopped):
        wr.embed_corpus(corpus, tmp_path / name, encoder_folder, workers=0, part_bytes=2000, progress=stop_after(5))
    assert not (tmp_path / name).exists() and len(list((job / "parts").iterdir())) == 5
    damaged = sorted((job / "parts").iterdir())[2]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    (job / "parts/part-00099.parquet.feed~").write_bytes(b"left by a worker")
    for other, why in ((dict(precision="int8"), "another kind"), (dict(part_bytes=999), "another part size"), (dict(column="b"), "another column")):
        with pytest.raises(wb.UsageError, match=why):
            wr.embed_corpus(corpus, tmp_path / name, encoder_folder, workers=0, **{"part_bytes": 2000, **other})
    report = wr.embed_corpus(corpus, tmp_path / name, encoder_folder, workers=0, part_bytes=2000)
    assert report.kept == 4 and report.digest == digest == wr.rows_digest(tmp_path / name) and not job.exists()
    assert name.endswith(".parquet") or not list((tmp_path / name).glob("*~"))


def test_an_input_that_changed_is_another_job(encoder_folder, corpus, tmp_path):
    with pytest.raises(Stopped):
        wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, part_bytes=2000, progress=stop_after(2))
    with open(corpus / "a.txt", "a") as file:
        file.write("one more")
    with pytest.raises(wb.UsageError, match="another input"):
        wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, part_bytes=2000)
    report = wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, part_bytes=2000, restart=True)
    assert report.kept == 0 and report.rows == 1001


def test_an_output_that_exists_stays_until_the_new_one_is_there(encoder_folder, corpus, tmp_path):
    for name in ("o.parquet", "o"):
        wr.embed_corpus(corpus / "a.txt", tmp_path / name, encoder_folder, workers=0)
        before = wr.rows_digest(tmp_path / name)
        with pytest.raises(wb.UsageError, match="exists"):
            wr.embed_corpus(corpus, tmp_path / name, encoder_folder, workers=0)
        assert not (tmp_path / f"{name}.job").exists()
        with pytest.raises(Stopped):
            wr.embed_corpus(corpus, tmp_path / name, encoder_folder, workers=0, overwrite=True, part_bytes=2000, progress=stop_after(1))
        assert wr.rows_digest(tmp_path / name) == before
        assert wr.embed_corpus(corpus, tmp_path / name, encoder_folder, workers=0, overwrite=True, part_bytes=2000).rows == 1001
        assert wr.rows_digest(tmp_path / name) != before


def test_two_processes_do_not_share_an_output(encoder_folder, corpus, tmp_path):
    def told(progress):
        with pytest.raises(wb.UsageError, match="another process"):
            wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0)

    assert wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, progress=told).rows == 1001


def test_a_job_whose_output_lies_in_its_input_goes_on(encoder_folder, corpus, tmp_path):
    """Its parts were files of the input when it was started again, which made it another job."""
    digest = wr.embed_corpus(corpus, tmp_path / "whole", encoder_folder, workers=0, part_bytes=2000).digest
    for name in ("o.parquet", "o"):
        with pytest.raises(Stopped):
            wr.embed_corpus(corpus, corpus / name, encoder_folder, workers=0, part_bytes=2000, progress=stop_after(3))
        report = wr.embed_corpus(corpus, corpus / name, encoder_folder, workers=0, part_bytes=2000)
        assert report.kept == 3 and report.digest == digest
        assert wr.embed_corpus(corpus, corpus / name, encoder_folder, workers=0, part_bytes=2000, overwrite=True).digest == digest
        os.rename(corpus / name, tmp_path / name)


def test_an_output_does_not_replace_its_input(encoder_folder, corpus, tmp_path):
    """With overwrite, the corpus or the lake was gone in the end."""
    wb.save(corpus / "m.zt", {"w": np.ones(3, np.float32)})
    for source, output in ((corpus, corpus), (corpus / "c.parquet", corpus / "c.parquet"), (corpus / "deep", corpus), (corpus / "c.parquet", tmp_path)):
        for job in (lambda: wr.embed_corpus(source, output, encoder_folder, workers=0, overwrite=True), lambda: wr.audit(source, output, workers=0, overwrite=True)):
            with pytest.raises(wb.UsageError, match="would replace it"):
                job()
    other = tmp_path / "photographs"
    other.mkdir()
    (other / "summer.png").write_bytes(b"\x89PNG")
    with pytest.raises(wb.UsageError, match="no job made"):
        wr.embed_corpus(corpus, other, encoder_folder, workers=0, overwrite=True)
    (other / "summer.png").rename(other / "summer.parquet")
    with pytest.raises(wb.UsageError, match="no job made"):
        wr.embed_corpus(corpus, other, encoder_folder, workers=0, overwrite=True)
    assert (other / "summer.parquet").exists() and (corpus / "deep/b.jsonl").exists() and not (tmp_path / "photographs.job").exists()


def test_a_job_without_a_finished_part_gives_way_to_another(encoder_folder, corpus, tmp_path):
    """A cluster that was not there left a folder, which refused the same output with another option."""
    with pytest.raises(Stopped):
        wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, progress=stop_after(0))
    assert (tmp_path / "o.job").exists()
    assert wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, precision="int8").rows == 1001


def test_restart_does_not_lose_an_output_that_was_about_to_be_replaced(encoder_folder, corpus, tmp_path, monkeypatch):
    """Ended between two renames, the old output is beside the new one: restart dropped both."""
    before = wr.embed_corpus(corpus / "a.txt", tmp_path / "o", encoder_folder, workers=0).digest
    monkeypatch.setattr(os, "rename", lambda source, target, real=os.rename: real(source, target) if str(target).endswith("replaced") else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, overwrite=True)
    monkeypatch.undo()
    assert not (tmp_path / "o").exists()
    with pytest.raises(Stopped):
        wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, overwrite=True, restart=True, part_bytes=2000, progress=stop_after(1))
    assert wr.rows_digest(tmp_path / "o") == before


def test_one_file_has_the_same_bytes_whatever_the_division(encoder_folder, corpus, tmp_path):
    """Its groups of rows were those of the parts."""
    made = set()
    for i, options in enumerate([{}, dict(part_bytes=500), dict(part_bytes=3000, batch_size=7), dict(batch_size=1000, threads=2)]):
        wr.embed_corpus(corpus, tmp_path / f"{i}.parquet", encoder_folder, workers=0, keep=["id"], **options)
        made.add((tmp_path / f"{i}.parquet").read_bytes())
    assert len(made) == 1


@pytest.mark.parametrize("what", ["part-00001.arrows", "whole.parquet"])
def test_bytes_that_the_file_system_changes_are_found(encoder_folder, corpus, tmp_path, monkeypatch, what):
    """The digest of a part was that of what was read back, and the single file was compared with the parts as they were read."""
    real = os.fsync

    def changing(handle):
        real(handle)
        path = os.readlink(f"/proc/self/fd/{handle}")
        if what in path:
            with open(path, "r+b") as file:
                file.seek(-100, os.SEEK_END)
                byte = file.read(1)[0]
                file.seek(-100, os.SEEK_END)
                file.write(bytes([byte ^ 1]))

    digest = wr.embed_corpus(corpus, tmp_path / "folder", encoder_folder, workers=0).digest
    monkeypatch.setattr(os, "fsync", changing)
    with pytest.raises(wb.InputOutputError, match=what):
        wr.embed_corpus(corpus, tmp_path / "o.parquet", encoder_folder, workers=0, part_bytes=6000)
    assert not (tmp_path / "o.parquet").exists()
    monkeypatch.undo()
    assert wr.embed_corpus(corpus, tmp_path / "o.parquet", encoder_folder, workers=0, part_bytes=6000).digest == digest == wr.rows_digest(tmp_path / "o.parquet")


def test_a_kept_column_of_a_dictionary_in_one_file(encoder_folder, tmp_path, monkeypatch):
    """Each part has dictionaries of its own, one for each block of its rows."""
    from weighbridge.ray._rows import regrouped

    monkeypatch.setattr(regrouped, "__defaults__", (100,))
    kinds = [f"kind {i // 9}" for i in range(900)]
    pq.write_table(pa.table({"text": [f"truck {word(i)}" for i in range(900)], "kind": pa.array(kinds).dictionary_encode()}), tmp_path / "i.parquet")
    report = wr.embed_corpus(tmp_path / "i.parquet", tmp_path / "o.parquet", encoder_folder, workers=0, keep=["kind"], part_bytes=6000)
    assert 1 < report.parts < 9 and pq.read_table(tmp_path / "o.parquet")["kind"].to_pylist() == kinds


def test_rows_are_told_while_a_part_is_made(encoder_folder, corpus, tmp_path, monkeypatch):
    """A part of a minute said nothing for a minute."""
    from weighbridge.ray import _parts

    monkeypatch.setattr(_parts, "TOLD_EACH", 0)
    seen = []
    wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=0, batch_size=100, progress=lambda progress: seen.append((progress.done, progress.rows)))
    assert [done for done, _ in seen] == [0] * (len(seen) - 1) + [1] and len(seen) > 10
    assert [rows for _, rows in seen] == sorted(rows for _, rows in seen) and seen[0][1] == 0 and 0 < seen[4][1] < seen[-1][1] == 1001


@pytest.mark.parametrize("option", [dict(workers=-1), dict(threads=0), dict(batch_size=0), dict(part_bytes=0), dict(cpus=0)])
def test_numbers_that_mean_nothing_are_refused(encoder_folder, corpus, tmp_path, option):
    """-1 workers were one, and 0 threads a division by zero."""
    with pytest.raises(wb.UsageError, match="at least"):
        wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, **{"workers": 0, **option})
    with pytest.raises(wb.UsageError, match="top: at least 1"):
        wr.search(tmp_path / "o", "lorry", encoder_folder, top=0)


def test_an_empty_line_of_json_is_no_finding(encoder_folder, tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "one"}\n\n \t\r\n{"text": "two"}\n\n')
    report = wr.embed_corpus(tmp_path / "a.jsonl", tmp_path / "o.parquet", encoder_folder, workers=0)
    assert (report.rows, report.findings, report.rules) == (2, 0, {})


def killed_at(number, output, job):
    """Runs a job in a child that is killed before its call of this number that changes a name. Returns whether it was."""
    if (child := os.fork()) == 0:
        signal.alarm(60)
        count = 0

        def guarded(real):
            def call(*arguments, **named):
                nonlocal count
                if str(arguments[0]).startswith(str(output)):
                    count += 1
                    if count == number:
                        os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **named)
            return call

        for name in ("replace", "rename", "unlink", "rmdir"):
            setattr(os, name, guarded(getattr(os, name)))
        status = 1
        try:
            job()
            status = 0
        finally:
            os._exit(status)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


@pytest.mark.parametrize("name", ["o.parquet", "o"])
def test_killed_at_each_rename_the_job_goes_on(encoder_folder, corpus, tmp_path, name):
    """Before each call that changes a name: nothing is half there, and the next run ends with the same rows."""
    digest = wr.embed_corpus(corpus, tmp_path / "whole", encoder_folder, workers=0).digest
    survived = 0
    for at in range(1, 200):
        output = tmp_path / str(at) / name
        output.parent.mkdir()
        if not killed_at(at, output, lambda: wr.embed_corpus(corpus, output, encoder_folder, workers=0, part_bytes=6000)):
            break
        if output.exists():
            assert wr.rows_digest(output) == digest
            if not (output.parent / f"{name}.job/job.json").exists():
                continue
        report = wr.embed_corpus(corpus, output, encoder_folder, workers=0, part_bytes=6000, overwrite=name.endswith(".parquet") and output.exists())
        assert report.digest == digest == wr.rows_digest(output)
        survived += 1
    assert survived > 8


# Searching

def test_search_and_vectors_of_another_kind(encoder_folder, corpus, tmp_path):
    for dtype, options in (("f32", {}), ("f16", {}), ("int8", {"normalize": True})):
        output = tmp_path / dtype
        wr.embed_corpus(corpus, output, encoder_folder, workers=0, precision="int8", dtype=dtype, part_bytes=3000, **options)
        hits = wr.search(output, "lorry bh", encoder_folder, top=3)
        assert hits[0].text == "lorry bh" and hits[0].file == "deep/b.jsonl" and hits[0].score > 0.999 and len(hits) == 3
        assert hits[0].score >= hits[1].score >= hits[2].score
        for other in (dict(precision="f32"), dict(pooling="cls"), dict(max_length=5)):
            with pytest.raises(wb.UsageError, match="two kinds"):
                wr.search(output, "lorry bh", encoder_folder, **other)
    with pytest.raises(wb.UsageError, match="no column 'v'"):
        wr.search(output, "lorry", encoder_folder, embedding="v")
    (tmp_path / "text.jsonl").write_text("{}")
    with pytest.raises(wb.UsageError, match="not a Parquet file"):
        wr.search(tmp_path / "text.jsonl", "lorry", encoder_folder)


# Lakes

def test_audit(encoder_folder, tmp_path):
    lake = tmp_path / "lake"
    lake.mkdir()
    tensors = {"a": np.arange(1000, dtype=np.float32).reshape(10, 100), "b": np.ones(7, np.float16)}
    for name in ("m.safetensors", "m.zt", "copy.gguf", "m.npz"):
        wb.save(lake / name, tensors)
    wb.save(lake / "renamed.zt", {"c": tensors["a"], "d": tensors["b"]})
    (lake / "cut.safetensors").write_bytes((lake / "m.safetensors").read_bytes()[:-5])
    (lake / "empty.gguf").write_bytes(b"")
    (lake / "README.md").write_text("nothing of a model")
    os.mkfifo(lake / "pipe")
    (lake / "gone.zt").symlink_to("nowhere")
    with open(os.fsencode(lake) + b"/odd \xff name.zt", "wb") as file:
        file.write((lake / "m.zt").read_bytes())
    subprocess.run(["cp", "-r", encoder_folder, lake / "folder"], check=True)
    report = wr.audit(lake, lake / "audit.parquet", workers=0)
    rows = pq.read_table(lake / "audit.parquet").to_pylist()
    by_path = {row["path"]: row for row in rows}
    assert wr.rows_digest(lake / "audit.parquet") == report.digest
    assert {path: row["verdict"] for path, row in by_path.items()} == {
        "README.md": "other", "copy.gguf": "valid", "cut.safetensors": "invalid", "empty.gguf": "invalid", "gone.zt": "unreadable",
        "folder/": "valid", "folder/config.json": "part", "folder/model.safetensors": "part", "folder/vocab.txt": "part", "m.npz": "valid",
        "m.safetensors": "valid", "m.zt": "valid", r"odd \xff name.zt": "valid", "renamed.zt": "valid"}
    assert {path for path, row in by_path.items() if row["digest"] == wb.hash(lake / "m.zt")} == {
        "copy.gguf", "m.npz", "m.safetensors", "m.zt", r"odd \xff name.zt"}
    assert by_path["renamed.zt"]["values"] == by_path["m.zt"]["values"] and by_path["renamed.zt"]["digest"] != by_path["m.zt"]["digest"]
    cut = by_path["cut.safetensors"]
    assert cut["rule"] == next(iter(wb.verify(lake / "cut.safetensors").findings)).rule and cut["expected"] and cut["severity"] == "error"
    assert by_path["folder/config.json"]["model"] == "folder/" and report.findings == sum(row["rule"] is not None for row in rows)


def test_audit_of_listings_and_addresses(tmp_path):
    pytest.importorskip("fsspec", reason="needs fsspec")
    lake = tmp_path / "lake"
    lake.mkdir()
    for i in range(5):
        wb.save(lake / f"{i}.safetensors", {"w": np.arange(i + 1, dtype=np.float32)})
    listing = tmp_path / "listing.txt"
    listing.write_text("".join(f"{path}\n" for path in sorted(lake.iterdir())) + f"{lake}/missing.zt\nfile://{lake}/2.safetensors\n")
    for name, source in {"folder": lake, "address": f"file://{lake}", "listing": listing, "paths": sorted(lake.iterdir())}.items():
        wr.audit(source, tmp_path / f"{name}.parquet", workers=0)
        rows = pq.read_table(tmp_path / f"{name}.parquet").to_pylist()
        assert [row["verdict"] for row in rows] == ["valid"] * 5 + (["unreadable", "valid"] if name == "listing" else [])
        assert [row["digest"] for row in rows[:5]] == [wb.hash(path) for path in sorted(lake.iterdir())]
    with pytest.raises(wb.MissingFileError):
        wr.audit(tmp_path / "nothing", tmp_path / "o.parquet", workers=0)


# The command

def command(*words):
    return subprocess.run([sys.executable, "-m", "weighbridge.ray", *map(str, words)], capture_output=True, text=True)


def test_the_command(encoder_folder, corpus, tmp_path):
    made = command("embed", corpus, "-o", tmp_path / "v.parquet", "--model", encoder_folder, "--workers", 0, "--json", "--keep", "id")
    assert made.returncode == 0 and "embed: 1 of 1 part, 1,001 rows" in made.stderr, made.stderr
    assert json.loads(made.stdout)["digest"] == wr.rows_digest(tmp_path / "v.parquet")
    again = command("embed", corpus, "-o", tmp_path / "v.parquet", "--model", encoder_folder, "--workers", 0)
    assert again.returncode == 2 and "exists" in again.stderr and "Traceback" not in again.stderr
    found = command("search", tmp_path / "v.parquet", "lorry d", "--model", encoder_folder, "--top", 1)
    assert found.stdout.endswith(": lorry d\n") and found.returncode == 0
    audit = command("audit", encoder_folder, "-o", tmp_path / "a.parquet", "--workers", 0)
    assert audit.returncode == 0 and "4 rows, 0 with a finding" in audit.stdout, audit
    (tmp_path / "x.zt").write_bytes(b"nothing")
    assert command("audit", tmp_path / "x.zt", "-o", tmp_path / "x.parquet", "--workers", 0, "--quiet").returncode == 1
    (tmp_path / "b.jsonl").write_text('{"text": "a"}\n{"text":\n{"body": "a"}\n{}\n')
    broken = command("embed", tmp_path / "b.jsonl", "-o", tmp_path / "b.parquet", "--model", encoder_folder, "--workers", 0)
    assert broken.returncode == 1 and "4 rows, 3 with a finding" in broken.stdout and "  1 input/json\n  2 input/no-text\n" in broken.stdout
    for words, status in ((["embed", tmp_path / "no", "-o", tmp_path / "y", "--model", encoder_folder], 4), (["audit"], 2),
                          (["search", corpus / "a.txt", "lorry", "--model", encoder_folder], 2),
                          (["search", tmp_path / "v.parquet", "lorry", "--model", encoder_folder, "--top", 0], 2),
                          (["embed", corpus, "-o", tmp_path / "y", "--model", encoder_folder, "--workers", -1], 2),
                          (["embed", corpus, "-o", tmp_path / "no/y", "--model", encoder_folder], 2),
                          (["embed", corpus, "-o", tmp_path / "y", "--model", tmp_path / "none"], 4)):
        said = command(*words)
        assert said.returncode == status and "Traceback" not in said.stderr, said


def test_without_ray_it_says_so(encoder_folder, corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'weighbridge\[ray\]'"):
        wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=2)


def test_an_audit_needs_no_ray(tmp_path, monkeypatch):
    """Nor a number of workers, where it is not installed."""
    import importlib.util

    monkeypatch.setattr("weighbridge.ray._run.find_spec", lambda name: None if name == "ray" else importlib.util.find_spec(name))
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "lake").mkdir()
    wb.save(tmp_path / "lake/a.zt", {"w": np.zeros(3, "f4")})
    (tmp_path / "lake/b.zt").write_bytes((tmp_path / "lake/a.zt").read_bytes()[:-9])
    report = wr.audit(tmp_path / "lake", tmp_path / "out.parquet")
    assert (report.rows, report.deaths) == (2, 0) and pq.read_table(tmp_path / "out.parquet")["verdict"].to_pylist() == ["valid", "invalid"]
    with pytest.raises(ImportError, match="needs the package ray"):
        wr.audit(tmp_path / "lake", tmp_path / "out.parquet", workers=2, overwrite=True, restart=True)
