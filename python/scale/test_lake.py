# SPDX-License-Identifier: Apache-2.0
"""A generated lake of a thousand files: an audit on Ray finds exactly what its expected table says."""
import collections
import importlib.util
import json
import os
import pathlib
import signal

import pyarrow.parquet as pq
import pytest

import weighbridge.ray as wr

ROOT = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2]))


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """The folder, and the expected rows by path."""
    spec = importlib.util.spec_from_file_location("make_lake", ROOT / "tools/make_lake.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("lake") / "lake"
    rows = module.make(folder)
    assert sum(path.is_file() for path in folder.rglob("*")) == 1000
    assert {row["damage"] for row in rows} == {None, "another extension", "a shard is missing", *module.DAMAGE}
    return folder, {row["path"]: row for row in rows}


def groups(pairs):
    out = collections.defaultdict(set)
    for key, path in pairs:
        out[key].add(path)
    return sorted(map(sorted, out.values()))


def holds(output, expected):
    """Whether a table is what is expected: a verdict for each file and no other, the rule of each damage, the same weights and no others."""
    rows = pq.read_table(output).to_pylist()
    verdicts = {row["path"]: row["verdict"] for row in rows}
    assert verdicts == {path: row["verdict"] for path, row in expected.items()}
    for row in rows:
        wanted = expected[row["path"]]
        assert (row["severity"] == "error") <= (row["verdict"] in ("invalid", "unreadable"))
        assert wanted["rule"] is None or wanted["rule"] in {one["rule"] for one in rows if one["path"] == row["path"]}
    errors = {row["path"] for row in rows if row["severity"] == "error"}
    assert errors == {path for path, row in expected.items() if row["verdict"] == "invalid"}
    known = {path for path, row in expected.items() if row["content"] is not None}
    found = groups((row["digest"], row["path"]) for row in rows if row["path"] in known)
    assert found == groups((row["content"], path) for path, row in expected.items() if path in known)
    assert len({row["digest"] for row in rows if row["path"] in known} & {row["digest"] for row in rows if row["path"] not in known} - {None}) == 0
    formats = {row["format"] for row in rows if row["verdict"] == "valid"}
    assert formats >= {"safetensors", "gguf", "zt", "zt2", "zt0", "stb", "embd", "slm", "slm-adapter", "npy", "npz", "pytorch", "hdf5", "keras", "onnx",
                       "llama2c", "hf"}
    return rows


def test_an_audit_finds_exactly_that(ray, lake, tmp_path):
    folder, expected = lake
    killed = []

    def told(progress):
        at = [path.read_text().split() for path in pathlib.Path(tmp_path / "a.parquet.job/at").glob("*")] if not killed else []
        if progress.done >= 3 and at and at[-1]:
            killed.append(int(at[-1][1]))
            os.kill(killed[0], signal.SIGKILL)

    report = wr.audit(folder, tmp_path / "a.parquet", workers=2, progress=told)
    holds(tmp_path / "a.parquet", expected)
    alone = wr.audit(folder, tmp_path / "alone.parquet", workers=0)
    assert report.digest == alone.digest and killed


def test_one_query_answers(lake, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    folder, expected = lake
    output = str(tmp_path / "a.parquet")
    wr.audit(folder, output, workers=0)
    broken = duckdb.sql(f"SELECT DISTINCT path FROM '{output}' WHERE severity = 'error'").fetchall()
    assert {path for path, in broken} == {path for path, row in expected.items() if row["verdict"] == "invalid"}
    same = duckdb.sql(f"SELECT list(DISTINCT path) FROM '{output}' WHERE digest IS NOT NULL GROUP BY digest HAVING count(DISTINCT path) > 1").fetchall()
    pairs = [(row["content"], path) for path, row in expected.items() if row["content"] is not None]
    assert sorted(sorted(paths) for paths, in same if set(paths) <= {path for _, path in pairs}) == [one for one in groups(pairs) if len(one) > 1]
    assert json.loads(json.dumps(wr.audit(folder, output, workers=0, overwrite=True).asdict()))["rows"] > 1000
