#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What weighbridge.ray costs beside the vectors alone, what the start of a worker costs, how a job grows with its workers, and how fast the same pipeline
of Ray Data is with other makers of vectors. By processor time, which other work on the machine changes less than the clock.

usage: scale.py FOLDER --cli WEIGHBRIDGE --model FOLDER [--texts FILE] [-n TURNS] [--parts jobs,start,growth,peers] [--json FILE]

Run it with an interpreter that has weighbridge[ray]. FOLDER keeps the texts and the outputs. TEXTS is an STS-B file (sentence, sentence, score in CSV);
without it, texts are made. Each figure of a job is compared with the time of the calls that make vectors in the same process, so that both saw the
same machine. Peers: sentence-transformers, and ONNX Runtime with tokenizers and the graph of embed_peers.py, where the interpreter has them."""
import argparse
import csv
import importlib.util
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import time

import pyarrow as pa
import ray

import weighbridge as wb
import weighbridge.ray as wr
from results import Results, figures

BENCH = pathlib.Path(__file__).resolve().parent
START = """
import re, sys, time
import pyarrow, numpy, weighbridge as wb, weighbridge.ray as wr
import pickle
def peak():  # of this program alone, unlike getrusage's, which begins with that of the parent
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
texts = pyarrow.array(["a truck on the road"])  # the imports are paid by every engine of Arrow
data = open(sys.argv[1], "rb").read()
begin, memory = time.process_time(), peak()
worker = pickle.loads(data)
worker.embedder if sys.argv[2] == "open" else worker.vectors(texts)
print((time.process_time() - begin) * 1e3, (peak() - memory) / 1024)
"""
JOB = """
import sys, time, weighbridge.ray as wr
from weighbridge.ray._embed import Embed
spent, real = 0.0, Embed.vectors
def timed(self, texts):
    global spent
    begin = time.process_time()
    try:
        return real(self, texts)
    finally:
        spent += time.process_time() - begin
Embed.vectors = timed
wr.Embed(sys.argv[3], precision=sys.argv[4], threads=1).vectors(["opens what a job opens once"])
spent, begin = 0.0, time.process_time()
wr.embed_corpus(sys.argv[1], sys.argv[2], sys.argv[3], precision=sys.argv[4], workers=0, overwrite=True)
print((time.process_time() - begin) * 1e3, spent * 1e3)
"""


def ran(code, *words):
    """The numbers that a process prints."""
    return tuple(map(float, subprocess.run([sys.executable, "-c", code, *map(str, words)], check=True, capture_output=True, text=True).stdout.split()))


def written(path, texts):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(text.replace("\n", " ") + "\n" for text in texts)
    return path


def removed(path):
    shutil.rmtree(path) if os.path.isdir(path) else pathlib.Path(path).unlink(missing_ok=True)


def jobs(o, results, texts):
    """A whole job beside its vectors: reading, parts, Parquet, digests, the check of the output."""
    source = written(os.path.join(o.folder, "one.txt"), texts[:1])
    told = [ran(JOB, source, os.path.join(o.folder, "out"), o.model, "int8")[0] for _ in range(o.turns)]
    results.row("jobs", "a job of one text, int8: what each job begins and ends with", figures(told))
    for precision, times in (("int8", 4), ("f32", 2)):
        source = written(os.path.join(o.folder, f"{precision}.txt"), texts * times)
        for name, what in (("out", "a folder of files"), ("out.parquet", "one file")):
            told = []
            for _ in range(o.turns):
                removed(os.path.join(o.folder, name))  # taking an old output away is no part of a job
                told.append(ran(JOB, source, os.path.join(o.folder, name), o.model, precision))
            row = results.row("jobs", f"{len(texts) * times:,} texts to {what}, {precision}", figures([job for job, _ in told]),
                              {"its vectors alone": figures([vectors for _, vectors in told])})
            results.asked(row, "its vectors alone", 1.03)


def start(o, results, _):
    """A worker's first vector."""
    weights = os.path.join(o.folder, "model.weights")
    if not os.path.exists(weights):
        wb.convert(o.model, weights, allow="file")
    for precision in ("int8", "f32"):
        for name, model in (("folder", o.model), (".weights", weights)):
            data = os.path.join(o.folder, "worker.pickle")
            with open(data, "wb") as file:
                pickle.dump(wr.Embed(model, precision=precision, threads=1).for_workers(), file)
            plain = os.path.join(o.folder, "plain.pickle")
            with open(plain, "wb") as file:
                pickle.dump(wr.Embed(model, precision=precision, threads=1), file)
            opened, first = [ran(START, plain, "open") for _ in range(o.turns)], [ran(START, data, "job") for _ in range(o.turns)]
            results.row("start", f"a worker opens a {name}, {precision}", {**figures([ms for ms, _ in opened]), "asked": 50.0})
            results.row("start", f"until its first vector, with the proof of the weights: {name}, {precision}", figures([ms for ms, _ in first]))
            results.row("start", f"memory until then, mapped weights included: {name}, {precision}",
                        {**figures([mib for _, mib in first], "MiB"), "asked": 150.0}, unit="MiB")


def processor_times():
    """The processor time (ms) of the workers of a job, of Ray's other processes, and of this one, by their ids."""
    parents, out, tick = {}, {"workers": {}, "Ray": {}, "driver": {}}, 1e3 / os.sysconf("SC_CLK_TCK")
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = pathlib.Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            words = pathlib.Path("/proc", name, "cmdline").read_bytes()
        except OSError:  # it ended
            continue
        parents[int(name)] = int(fields[1]), words.startswith(b"ray::Worker"), (int(fields[11]) + int(fields[12])) * tick
    for one, (_, worker, spent) in parents.items():
        above = one
        while above in parents and above != os.getpid():
            above = parents[above][0]
        if above == os.getpid():
            out["driver" if one == above else "workers" if worker else "Ray"][one] = spent
    return out


def grown(o, source, workers):
    """Runs a job on the cluster there is. For each text, from the end of the first part to that of the last: the clock, and the processor time of the
    workers and of all else (ms); and the digest."""
    marks = []

    def told(progress):
        if (progress.done and not marks) or (progress.done == progress.total and len(marks) == 1):
            marks.append((time.monotonic() * 1e3, progress.rows, processor_times()))

    report = wr.embed_corpus(source, os.path.join(o.folder, "grown"), o.model, precision="int8", workers=workers, overwrite=True, part_bytes=1 << 14,
                             progress=told)
    (begin, first, before), (end, last, after) = marks
    rows = last - first
    spent = {group: sum(ms - before[group].get(one, 0) for one, ms in after[group].items()) / rows for group in after}
    return (end - begin) / rows, spent["workers"], spent["Ray"] + spent["driver"], report.digest


def growth(o, results, texts):
    """Twice the work with twice the workers, each with half a processor: on one node, and with a node for each, by Ray's own cluster utility."""
    from ray.cluster_utils import Cluster

    sources = {n: written(os.path.join(o.folder, f"grown-{n}.txt"), texts * 2 * n) for n in (1, 2)}
    made = {case: [] for case in ((1, 1), (1, 2), (2, 2))}  # nodes and workers
    for _ in range(o.turns):
        for (nodes, workers), list_ in made.items():
            cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2 // nodes, "object_store_memory": 80 << 20, "include_dashboard": False})
            try:
                for _ in range(nodes - 1):
                    cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
                ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
                list_.append(grown(o, sources[workers], workers))
            finally:
                ray.shutdown()
                cluster.shutdown()
    for workers in sources:
        digests = {one[3] for (_, there), list_ in made.items() if there == workers for one in list_}
        assert len(digests) == 1, digests
    base = {}
    for (nodes, workers), list_ in made.items():
        count = len(texts) * 2 * workers
        of = f"{count:,} texts, int8, {workers} worker{'s' * (workers > 1)} on {nodes} node{'s' * (nodes > 1)}"
        for i, what in enumerate(("by the clock", "processor time of the workers, for 1,000 texts", "processor time of Ray and the driver, for 1,000 texts")):
            told = figures([one[i] * (count if i == 0 else 1000) for one in list_])
            results.row("growth", f"{of}: {what}", told, {"half the texts, 1 worker": base[i]} if i in base else {})
            base.setdefault(i, told)


class Ours:
    def __init__(self, model, precision):
        self.embedder = wb.Embedder(model, precision=precision, threads=1)

    def encode(self, texts):
        return self.embedder.encode(texts)


class SentenceTransformers:
    def __init__(self, model, precision):
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(1)
        self.model = SentenceTransformer(model, device="cpu", local_files_only=True)

    def encode(self, texts):
        return self.model.encode(texts, batch_size=32)


class OnnxRuntime:
    def __init__(self, model, precision):
        import tempfile

        import embed_peers
        import onnxruntime as ort

        with tempfile.TemporaryDirectory() as folder:
            path, small = os.path.join(folder, "f32.onnx"), os.path.join(folder, "int8.onnx")
            embed_peers.make_onnx(embed_peers.tensors(os.path.join(model, "model.safetensors")), 12, path)
            embed_peers.int8_graph(path, small)
            options = ort.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            self.session = ort.InferenceSession(small if precision == "int8" else path, options, providers=["CPUExecutionProvider"])
        self.in_batches, self.tokenizer = embed_peers.in_batches, embed_peers.tokenizer_of(os.path.join(model, "vocab.txt"))

    def vectors(self, ids):
        import numpy as np

        made = self.session.run(None, {"input_ids": ids, "token_type_ids": np.zeros_like(ids)})[0].mean(1)
        return made / np.linalg.norm(made, axis=1, keepdims=True)

    def encode(self, texts):
        return self.in_batches([one.ids for one in self.tokenizer.encode_batch(texts)], self.vectors)


class Step:
    """The step of the pipeline that all share: texts to a column of vectors, with the processor time that it took. The first batch is not counted."""

    def __init__(self, maker, model, precision):
        sys.path.insert(0, str(BENCH))
        self.maker = maker(model, precision)
        self.maker.encode(["the first call prepares"])

    def __call__(self, batch):
        begin = time.process_time()
        vectors = self.maker.encode(batch["text"].to_pylist())
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        spent = time.process_time() - begin
        return batch.append_column("v", column).append_column("spent", pa.array([spent / len(batch)] * len(batch)))


def peers(o, results, texts):
    """The same pipeline of Ray Data, with one actor of one thread."""
    texts = texts[:1000]
    there = {"sentence-transformers f32": ("sentence_transformers", SentenceTransformers, "f32"), "ONNX Runtime int8": ("onnxruntime", OnnxRuntime, "int8"),
             "ONNX Runtime f32": ("onnxruntime", OnnxRuntime, "f32")}
    makers = {"int8": (Ours, "int8"), "f32": (Ours, "f32")}
    for name, (package, maker, precision) in there.items():
        if importlib.util.find_spec(package):
            results.peer(name, f"{package.replace('_', '-')} {__import__('importlib.metadata', fromlist=['version']).version(package.replace('_', '-'))}")
            makers[name] = maker, precision
        else:
            results.leave_out(f"{name}: no package {package}")
    ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=200 << 20, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    times, vectors = {name: [] for name in makers}, {}
    for _ in range(o.turns):
        for name, (maker, precision) in makers.items():
            made = ray.data.from_arrow(pa.table({"n": range(len(texts)), "text": texts})).map_batches(
                Step, fn_constructor_args=(maker, os.path.abspath(o.model), precision), batch_format="pyarrow", batch_size=256,
                num_cpus=0.5, compute=ray.data.ActorPoolStrategy(size=1))
            table = pa.concat_tables(ray.get(made.to_arrow_refs())).sort_by("n")
            times[name].append(sum(table["spent"].to_pylist()) * 1e3)
            vectors[name] = table["v"]
    ray.shutdown()
    import numpy as np

    unit = {name: np.float32(column.to_pylist()) for name, column in vectors.items()}
    for name, found in unit.items():
        close = (found * unit["f32"]).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(unit["f32"], axis=1)
        print(f"{name}: cosine with ours in f32 {close.mean():.5f}, at least {close.min():.5f}", file=sys.stderr)
    told = {name: figures(values) for name, values in times.items()}
    for precision, asked in (("int8", {"sentence-transformers f32": 1 / 4, "ONNX Runtime int8": 1 / 2}), ("f32", {"sentence-transformers f32": 1 / 1.8})):
        row = results.row("peers", f"{len(texts):,} texts in a pipeline of Ray Data, {precision}", told[precision],
                          {name: one for name, one in told.items() if name not in ("int8", "f32") and (precision == "int8" or "f32" in name)})
        for name, ratio in asked.items():
            results.asked(row, name, round(ratio, 3))


PARTS = {"jobs": jobs, "start": start, "growth": growth, "peers": peers}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--cli", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--texts")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("-n", "--turns", type=int, default=5)
    parser.add_argument("--json")
    o = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # the other sides of a comparison have that too
    os.makedirs(o.folder, exist_ok=True)
    texts = [f"truck number {i} crosses the bridge at {i % 24} o'clock and is weighed before it may enter the yard" for i in range(3000)]
    if o.texts:
        with open(o.texts, encoding="utf-8", newline="") as file:
            texts = [sentence for row in csv.reader(file) for sentence in row[:2]]
    results = Results("scale", "Corpora on Ray", o.cli, f"processor time (user and system) unless it says the clock, one thread, medians of {o.turns} turns")
    results.peer("pyarrow", pa.__version__)
    for name in o.parts.split(","):
        PARTS[name](o, results, texts)
        results.write(o.json)


if __name__ == "__main__":
    sys.path.insert(0, str(BENCH))
    main()
