# SPDX-License-Identifier: Apache-2.0
"""Jobs on Ray: the rows and bits of one process, whatever ends on the way."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import command, left_running

import weighbridge as wb
import weighbridge.ray as wr
from weighbridge.ray._run import finish
from weighbridge.ray._parts import Job, Maker, Part

ROWS = 3000


def word(i):
    return "".join("abcdefghij"[int(digit)] for digit in str(i))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text("".join(f"truck {word(i)} is on the road\n" for i in range(ROWS // 2)))
    pq.write_table(pa.table({"text": [f"lorry {word(i)}" for i in range(ROWS // 2)]}), folder / "b.parquet", row_group_size=700)
    return folder


@pytest.fixture(scope="module")
def expected(corpus, encoder_folder, tmp_path_factory):
    """The digest of one process without Ray."""
    return wr.embed_corpus(corpus, tmp_path_factory.mktemp("one") / "o", encoder_folder, workers=0).digest


@pytest.fixture(scope="module")
def one_file(corpus, encoder_folder, tmp_path_factory):
    """What one process without Ray writes."""
    output = tmp_path_factory.mktemp("one") / "o.parquet"
    wr.embed_corpus(corpus, output, encoder_folder, workers=0)
    return output.read_bytes()


# Pipelines of Ray Data

def test_two_actors_on_two_processors_do_not_starve_the_readers(ray, corpus, encoder_folder):
    dataset = ray.data.read_parquet(str(corpus / "b.parquet"))
    table = pa.concat_tables(ray.get(wr.embed(dataset, encoder_folder, batch_size=100).to_arrow_refs()))
    texts = table["text"].to_pylist()
    assert sorted(texts) == sorted(f"lorry {word(i)}" for i in range(ROWS // 2))
    found = np.array(table["embedding"].to_pylist(), np.float32)
    assert np.array_equal(found, wb.Embedder(encoder_folder).encode(texts))


def test_embed_as_the_class_of_map_batches(ray, corpus, encoder_folder):
    dataset = ray.data.from_arrow(pa.table({"text": pa.array(["a truck", None, "a lorry"] * 50)}))
    made = dataset.map_batches(wr.Embed, fn_constructor_args=(str(encoder_folder),), batch_format="pyarrow", concurrency=1, num_cpus=0.5)
    rows = made.take_all()
    assert sum(row["embedding"] is None for row in rows) == 50 and len(rows) == 150


def test_an_actor_of_ray_data_that_is_killed(ray, corpus, encoder_folder, tmp_path):
    """Ray starts it anew and takes its batches again: the same vectors."""
    class Killed(wr.Embed):
        def __call__(self, batch):
            if len(list(tmp_path.iterdir())) < 2:
                (tmp_path / str(os.getpid())).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(batch)

    dataset = ray.data.read_parquet(str(corpus / "b.parquet"))
    made = dataset.map_batches(Killed, fn_constructor_args=(str(encoder_folder),), fn_constructor_kwargs={"threads": 1}, batch_format="pyarrow", batch_size=200,
                               concurrency=2, num_cpus=0.5)
    table = pa.concat_tables(ray.get(made.to_arrow_refs()))
    assert sorted(table["text"].to_pylist()) == sorted(f"lorry {word(i)}" for i in range(ROWS // 2))
    assert np.array_equal(np.array(table["embedding"].to_pylist(), np.float32), wb.Embedder(encoder_folder).encode(table["text"].to_pylist()))


# Whole jobs

@pytest.mark.parametrize("options", [dict(workers=1), dict(workers=2, batch_size=33, part_bytes=9000), dict(workers=3, threads=1, part_bytes=30_000)],
                         ids=["1 worker", "2 workers", "3 workers"])
def test_the_bytes_of_one_process(ray, corpus, encoder_folder, expected, one_file, tmp_path, options):
    report = wr.embed_corpus(corpus, tmp_path / "o.parquet", encoder_folder, **options)
    assert report.digest == expected == wr.rows_digest(tmp_path / "o.parquet") and report.deaths == 0 and not (tmp_path / "o.parquet.job").exists()
    assert (tmp_path / "o.parquet").read_bytes() == one_file


def test_a_job_leaves_processors_to_others(ray, corpus, encoder_folder, tmp_path):
    """Its actors claim half of each: a task that claims a whole one runs while they work."""
    seen = []

    def told(progress):
        if not seen and progress.workers:
            seen.append(ray.get(ray.remote(num_cpus=1)(lambda: "ran").remote(), timeout=60))

    wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, part_bytes=5000, progress=told)
    assert seen == ["ran"]


def pids_of(job):
    """The workers of a job that is running: each says which piece it takes."""
    out = set()
    for path in pathlib.Path(f"{job}.job/at").glob("*"):
        words = path.read_text().split()
        if len(words) == 3 and pathlib.Path(f"/proc/{words[1]}").exists():
            out.add(int(words[1]))
    return out


def test_workers_that_are_killed(ray, corpus, encoder_folder, expected, tmp_path):
    killed = set()

    def told(progress):
        if len(killed) < 4 and progress.done > len(killed):
            for pid in sorted(pids_of(tmp_path / "o") - killed)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)

    report = wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=2, part_bytes=7000, progress=told)
    assert len(killed) == 4 and report.deaths >= 3 and report.findings == 0
    assert report.digest == expected == wr.rows_digest(tmp_path / "o")


class Fatal(Maker):
    """Rows of numbers; one piece ends each worker that takes it, as memory does that runs out, another only the first."""

    def __init__(self, folder):
        self.folder = folder

    def schema(self):
        return pa.schema([("n", pa.int64()), ("rule", pa.string())])

    def rows(self, piece):
        if piece == 13 or piece == 20 and not (self.folder / "once").exists():
            (self.folder / ("each" if piece == 13 else "once")).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield pa.table({"n": [piece] * 3, "rule": pa.nulls(3, pa.string())}, self.schema())

    def lost(self, piece, message):
        return pa.table({"n": [piece], "rule": [message]}, self.schema())


def test_what_ends_each_worker_is_a_row(ray, tmp_path):
    job = Job(tmp_path / "o", {"job": "test"}, [Part(i, list(range(10 * i, 10 * i + 10)), 10) for i in range(3)])
    report = finish(job, Fatal(tmp_path), time.monotonic(), workers=2, threads=1, address=None, cpus=None, progress=None, told={})
    job.close()
    rows = [row for path in sorted((tmp_path / "o").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert [row["n"] for row in rows] == [n for n in range(30) for _ in range(1 if n == 13 else 3)]
    assert [row["rule"] for row in rows if row["rule"]] == ["3 workers died while they read it"] and report.findings == 1 and report.deaths == 4


class Failing(wr.Embed):
    """Raises in some batches, in the folder that its text names."""

    def vectors(self, texts):
        folder = pathlib.Path(self._options.pop("folder")) if "folder" in self._options else self._folder
        self._folder = folder
        if len(list(folder.glob("o.job/done/*"))) > 2 and not (folder / "enough").exists():
            (folder / "enough").touch()
            if (folder / "how").read_text() == "limit":  # of the system, which this process then meets
                resource.setrlimit(resource.RLIMIT_AS, (1 << 34, 1 << 34))
                bytearray(1 << 35)
            raise {"memory": MemoryError, "disk": OSError}[(folder / "how").read_text()](28, "no room")
        return super().vectors(texts)


def failing(how, encoder_folder, corpus, tmp_path):
    from weighbridge.ray._corpus import CorpusMaker, _stored
    from weighbridge.ray._parts import parts_of
    from weighbridge.ray._texts import files_of, pieces_of

    (tmp_path / "how").write_text(how)
    pieces = [piece for file in files_of(corpus, None) for piece in pieces_of(file, "text", 9000)]
    embed = Failing(encoder_folder, threads=1, folder=str(tmp_path))
    maker = CorpusMaker(embed, _stored(wr.Embed(encoder_folder).field()), "text", [], True, 256)
    job = Job(tmp_path / "o", {"job": "test"}, parts_of(pieces, 9000))
    try:
        return finish(job, maker, time.monotonic(), workers=1, threads=1, address=None, cpus=None, progress=None, told={})
    finally:
        job.close()


@pytest.mark.parametrize("how", ["memory", "limit"])
def test_a_worker_out_of_memory(ray, corpus, encoder_folder, expected, tmp_path, how):
    report = failing(how, encoder_folder, corpus, tmp_path)
    assert report.deaths == 1 and report.findings == 0 and report.digest == expected == wr.rows_digest(tmp_path / "o")


def test_a_full_disk_ends_the_job_and_keeps_its_parts(ray, corpus, encoder_folder, expected, tmp_path):
    with pytest.raises(OSError, match="no room"):
        failing("disk", encoder_folder, corpus, tmp_path)
    assert not (tmp_path / "o").exists()
    report = failing("disk", encoder_folder, corpus, tmp_path)
    assert report.kept > 2 and report.digest == expected


def test_a_node_with_another_model_is_an_error(ray, corpus, encoder_folder, tmp_path):
    from weighbridge.ray._corpus import CorpusMaker

    field = wr.Embed(encoder_folder).field()
    maker = CorpusMaker(wr.Embed(encoder_folder, kind="wbv1:" + "0" * 64), field, "text", [], True, 10)
    from weighbridge.ray._texts import files_of, pieces_of

    job = Job(tmp_path / "o", {"job": "test"}, [Part(0, [pieces_of(files_of(corpus, None)[0], "text", 1000)[0][0]], 1)])
    with pytest.raises(wb.UsageError, match="two kinds"):
        finish(job, maker, time.monotonic(), workers=1, threads=1, address=None, cpus=None, progress=None, told={})
    job.close()


# The command, and a cluster

def test_the_command_starts_and_stops_its_own_ray(no_ray, corpus, encoder_folder, expected, tmp_path):
    made = command("embed", corpus, "-o", tmp_path / "o.parquet", "--model", encoder_folder, "--cpus", 2, "--json")
    assert made.returncode == 0, made.stderr
    assert json.loads(made.stdout)["digest"] == expected == wr.rows_digest(tmp_path / "o.parquet")
    assert "1 of 1 part, 3,000 rows" in made.stderr and not left_running()


def test_a_cluster_that_is_not_there_is_said_at_once(no_ray, corpus, encoder_folder, tmp_path):
    """Ray tried for minutes, with lines of its own."""
    made = command("embed", corpus, "-o", tmp_path / "o", "--model", encoder_folder, "--address", "127.0.0.1:1", timeout=60)
    assert made.returncode == 4 and "cannot be reached at 127.0.0.1:1" in made.stderr and "rpc_client" not in made.stderr, made.stderr


def test_a_driver_that_is_killed(no_ray, corpus, encoder_folder, expected, tmp_path):
    words = ["embed", corpus, "-o", tmp_path / "o", "--model", encoder_folder, "--cpus", 2]
    code = "import sys, weighbridge.ray._corpus as c; c.embed_corpus.__kwdefaults__['part_bytes'] = 3000; import weighbridge.ray.__main__ as m; sys.exit(m.main(sys.argv[1:]))"
    run = [sys.executable, "-c", code, *map(str, words)]
    job = subprocess.Popen(run, stderr=subprocess.DEVNULL)
    done = tmp_path / "o.job/done"
    while len(list(done.glob("*.json")) if done.exists() else []) < 4 and job.poll() is None:
        time.sleep(0.02)
    job.kill()
    assert job.wait() == -signal.SIGKILL and not (tmp_path / "o").exists()
    while left_running():  # its raylet sees that the driver is gone
        time.sleep(0.1)
    again = subprocess.run([*run, "--json"], capture_output=True, text=True)
    report = json.loads(again.stdout)
    assert again.returncode == 0 and report["kept"] >= 4 and report["digest"] == expected == wr.rows_digest(tmp_path / "o")


def test_interrupted_it_says_how_to_go_on(no_ray, corpus, encoder_folder, tmp_path):
    job = subprocess.Popen([sys.executable, "-m", "weighbridge.ray", "embed", corpus, "-o", tmp_path / "o", "--model", encoder_folder, "--cpus", "2"],
                           stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "o.job/job.json").exists():
        time.sleep(0.05)
    time.sleep(2)
    job.send_signal(signal.SIGINT)
    said = job.communicate(timeout=60)[1]
    assert job.returncode == 130 and "run the same command again to resume" in said and "Traceback" not in said, said


@pytest.mark.parametrize("how", ["removed", "raylet killed"])
def test_a_node_that_is_lost(no_ray, corpus, encoder_folder, expected, tmp_path, how):
    """Two nodes of Ray's own cluster utility; one is lost while the job runs."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False})
    try:
        second = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        removed = []

        def told(progress):
            if progress.done >= 2 and not removed:
                removed.append(True)
                if how == "removed":
                    cluster.remove_node(second, allow_graceful=False)
                else:
                    os.kill(second.all_processes["raylet"][0].process.pid, signal.SIGKILL)

        report = wr.embed_corpus(corpus, tmp_path / "o", encoder_folder, workers=2, part_bytes=1500, progress=told)
        assert removed and report.digest == expected == wr.rows_digest(tmp_path / "o")
    finally:
        ray.shutdown()
        cluster.shutdown()
