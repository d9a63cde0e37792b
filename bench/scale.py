#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What weighbridge.ray costs beside the vectors alone, what the start of a worker costs, how a job grows with its workers, and how fast the same pipeline
of Ray Data is with other makers of vectors. By processor time, which other work on the machine changes less than the clock.

usage: scale.py FOLDER --cli WEIGHBRIDGE --model FOLDER [--texts FILE] [-n TURNS] [--parts jobs,start,growth,peers] [--json FILE]

Run it with an interpreter that has weighbridge[ray]. FOLDER keeps the texts and the outputs. TEXTS is an STS-B file (sentence, sentence, score in CSV);
without it, texts are made. Each figure of a job is compared with the time of the calls that make vectors in the same process, so that both saw the
same machine. Peers: sentence-transformers, and ONNX Runtime with tokenizers and the graph of embed.py, where the interpreter has them."""
import argparse
import csv
import importlib.util
import os
import pathlib
import pickle
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


def jobs(o, results, texts):
    """A whole job beside its vectors: reading, parts, Parquet, digests, the check of the output."""
    source = written(os.path.join(o.folder, "one.txt"), texts[:1])
    told = [ran(JOB, source, os.path.join(o.folder, "out"), o.model, "int8")[0] for _ in range(o.turns)]
    results.row("jobs", "a job of one text, int8: what each job begins and ends with", figures(told))
    for precision, times in (("int8", 4), ("f32", 2)):
        source = written(os.path.join(o.folder, f"{precision}.txt"), texts * times)
        for name, what in (("out", "a folder of files"), ("out.parquet", "one file")):
            told = [ran(JOB, source, os.path.join(o.folder, name), o.model, precision) for _ in range(o.turns)]
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


def growth(o, results, texts):
    """The processor time of all workers, and the clock, by the number of workers and of texts."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, object_store_memory=200 << 20, log_to_driver=False, logging_level="ERROR")
    digests = {}
    for count in (len(texts), 2 * len(texts)):
        source = written(os.path.join(o.folder, f"grown-{count}.txt"), (texts * 2)[:count])
        for workers in (1, 2):
            times = []
            for _ in range(o.turns):
                begin = []
                report = wr.embed_corpus(source, os.path.join(o.folder, "grown"), o.model, precision="int8", workers=workers, overwrite=True,
                                         part_bytes=1 << 14, progress=lambda told: begin.append(time.monotonic()) if told.rows and not begin else None)
                times.append((time.monotonic() - begin[0]) * 1e3)
                digests.setdefault(count, set()).add(report.digest)
            results.row("growth", f"{count:,} texts, int8, {workers} worker{'s' * (workers > 1)}, by the clock from the first rows", figures(times))
    ray.shutdown()
    assert all(len(found) == 1 for found in digests.values()), digests


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

        import embed
        import onnxruntime as ort
        from onnxruntime.quantization import QuantType, quantize_dynamic
        from tokenizers import BertWordPieceTokenizer

        with tempfile.TemporaryDirectory() as folder:
            path, small = os.path.join(folder, "f32.onnx"), os.path.join(folder, "int8.onnx")
            embed.make_onnx(embed.tensors(os.path.join(model, "model.safetensors")), 12, path)
            quantize_dynamic(path, small, per_channel=True, weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": 1})
            options = ort.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            self.session = ort.InferenceSession(small if precision == "int8" else path, options, providers=["CPUExecutionProvider"])
        self.tokenizer = BertWordPieceTokenizer(os.path.join(model, "vocab.txt"), lowercase=True)
        self.tokenizer.enable_truncation(256)

    def encode(self, texts):
        import numpy as np

        encoded = [one.ids for one in self.tokenizer.encode_batch(texts)]
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        out, begin = np.empty((len(texts), 384), np.float32), 0
        while begin < len(order):
            end = begin + 1
            while end < min(len(order), begin + 32) and len(encoded[order[end]]) == len(encoded[order[begin]]):
                end += 1
            ids = np.array([encoded[i] for i in order[begin:end]], np.int32)
            made = self.session.run(None, {"input_ids": ids, "token_type_ids": np.zeros_like(ids)})[0].mean(1)
            out[order[begin:end]] = made / np.linalg.norm(made, axis=1, keepdims=True)
            begin = end
        return out


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
