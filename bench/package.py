#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the Python package in turns with safetensors and sentence-transformers, in one process, warm.

usage: package.py FOLDER --cli WEIGHBRIDGE [--model FOLDER] [--texts FILE] [-n 7] [--json FILE] [--only REGEX]
Run it with an interpreter that has weighbridge, numpy and safetensors; torch and sentence-transformers for their rows. FOLDER keeps the
files, about 2 GB. MODEL is a folder of a sentence encoder, FILE a CSV with two texts a line. Each turn times one, then the other, and the
next turn the other way round. A file is read before it is timed, so all of it comes from the page cache. Saving is timed with fsync on both
sides; ours also reads back, compares and renames."""
import argparse
import csv
import importlib.metadata
import os
import re
import subprocess
import sys
import time

import numpy as np
import safetensors
import safetensors.numpy

import weighbridge as wb
import weighbridge.safetensors.numpy as ours_numpy
from results import Results, figures

GIB = 1 << 30


def once(job):
    begin = time.perf_counter()
    kept = job()
    took = (time.perf_counter() - begin) * 1e3
    del kept
    return took


def in_turns(ours, theirs, turns):
    """Milliseconds of both."""
    times = ([], [])
    once(ours), once(theirs)
    for turn in range(turns):
        for which in ((0, 1) if turn % 2 else (1, 0)):
            times[which].append(once((ours, theirs)[which]))
    return figures(times[0]), figures(times[1])


def sample(folder, name, count, size):
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        values = np.random.default_rng(1).standard_normal(size // 4, np.float32)
        safetensors.numpy.save_file({f"layers.{i}.weight": values for i in range(count)}, path)
    with open(path, "rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    return path


class Jobs:
    def __init__(self, o):
        self.o = o
        self.results = Results("package", "The Python package", o.cli, f"in one process, warm, medians of {o.turns} turns")
        self.results.peer("safetensors", importlib.metadata.version("safetensors"))

    def time(self, group, job, ours, theirs, asked, peer="safetensors", turns=None):
        if not re.search(self.o.only, job):
            return
        a, b = in_turns(ours, theirs, turns or self.o.turns)
        row = self.results.row(group, job, a, {peer: b})
        if asked:
            self.results.asked(row, peer, asked)

    def opening(self):
        def keys(path):
            with safetensors.safe_open(path, "np") as f:
                return list(f.keys())

        def our_keys(path):
            with wb.open(path) as m:
                return list(m)

        for count, size, asked in ((104, 400, 0.6), (1_000, 400, 0.6), (100_000, 64, 0.35)):
            path = sample(self.o.folder, f"{count}.safetensors", count, size)
            self.time("files", f"open, and list {count:,} names", lambda: our_keys(path), lambda: keys(path), asked, turns=self.o.turns * (20 if count < 10_000 else 1))

    def loading(self):
        path = sample(self.o.folder, "1gib.safetensors", 1_000, GIB // 1_000 // 4 * 4)

        def touched(arrays):
            for array in arrays.values():
                array.reshape(-1)[:: 1024].max()
            return arrays

        self.time("files", "load_file of 1 GiB in 1,000 tensors, views", lambda: ours_numpy.load_file(path), lambda: safetensors.numpy.load_file(path), 0.02)
        self.time("files", "load_file of 1 GiB in 1,000 tensors, copies, touched", lambda: touched(ours_numpy.load_file(path, backend="pread")),
                  lambda: touched(safetensors.numpy.load_file(path)), 0.5)
        try:
            import safetensors.torch as their_torch

            import weighbridge.safetensors.torch as ours_torch
        except ImportError:
            self.results.leave_out("PyTorch is not installed")
            return
        many = sample(self.o.folder, "100000.safetensors", 100_000, 64)
        self.time("files", "load_file of 100,000 tensors of PyTorch", lambda: ours_torch.load_file(many), lambda: their_torch.load_file(many), 0.5)

    def saving(self):
        arrays = {f"layers.{i}.weight": np.random.default_rng(i).standard_normal(GIB // 4_000, np.float32) for i in range(1_000)}
        out = os.path.join(self.o.folder, "saved.safetensors")

        def theirs():
            safetensors.numpy.save_file(arrays, out)
            at = os.open(out, os.O_RDONLY)
            os.fsync(at)
            os.close(at)

        self.time("files", "save_file of 1 GiB", lambda: ours_numpy.save_file(arrays, out), theirs, 0.8)
        os.remove(out) if os.path.exists(out) else None

    def embedding(self):
        if not (self.o.model and self.o.texts):
            self.results.leave_out("no model and texts were given")
            return
        with open(self.o.texts, newline="", encoding="utf-8") as file:
            texts = [text for row in csv.reader(file) for text in row[:2]]
        embedders = {precision: wb.Embedder(self.o.model, precision=precision) for precision in ("f32", "int8")}
        try:
            from sentence_transformers import SentenceTransformer

            peer = SentenceTransformer(self.o.model, device="cpu")
            self.results.peer("sentence-transformers", importlib.metadata.version("sentence-transformers"))
        except ImportError:
            self.results.leave_out("sentence-transformers is not installed")
            return
        for precision, asked in (("f32", 0.55), ("int8", 0.3)):
            self.time("embeddings", f"encode {len(texts):,} texts, {precision}", lambda: embedders[precision].encode(texts),
                      lambda: peer.encode(texts), asked, peer="sentence-transformers", turns=3)
        self.time("embeddings", "encode one text", lambda: embedders["f32"].encode(texts[0]), lambda: peer.encode(texts[0]), None,
                  peer="sentence-transformers", turns=100)

    def importing(self):
        def started(code):
            return lambda: subprocess.run([sys.executable, "-c", code], check=True)

        nothing, numpy = in_turns(started("pass"), started("import numpy"), self.o.turns * 3)
        ours, _ = in_turns(started("import weighbridge"), started("pass"), self.o.turns * 3)
        over = {key: round(ours[key] - nothing[key], 3) for key in ours}
        self.results.row("import", "import weighbridge, above an interpreter that imports nothing", {**over, "asked": 20},
                         {"numpy": {key: round(numpy[key] - nothing[key], 3) for key in numpy}})
        self.results.peer("numpy", np.__version__)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--cli", required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--texts", default="")
    parser.add_argument("-n", dest="turns", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    o = parser.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    jobs = Jobs(o)
    for part in (jobs.opening, jobs.loading, jobs.saving, jobs.embedding, jobs.importing):
        part()
    jobs.results.write(o.json)


if __name__ == "__main__":
    main()
