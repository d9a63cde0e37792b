#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times language models in turns with llama.cpp, in one run: tokens decoded one by one, and prompts of 128 tokens.

usage: generate.py --ours GENERATE_RATES [--peer PYTHON] [--folder FOLDER] [--turns 5] [--seconds 2] [--only 15M-q8_0] [--threads 2]

GENERATE_RATES is the program that bench/generate_rates.cc becomes. PYTHON has llama-cpp-python, gguf and numpy; without it ours is
timed alone. Weights are random, of the stories15M and stories110M shapes; both are kept in FOLDER. Each turn times ours, then the peer,
then the other way round. What is printed is the median and the best of all turns, and the ratio of ours to the peer's median. The peer
samples no tokens and copies no logits, which flatters it slightly. GB/s is how fast the weights stream that each token needs,
which memory bounds."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

SHAPES = {"15M": (288, 6, 6, 768, 32000), "110M": (768, 12, 12, 2048, 32000)}
FORMS = ("f32", "q8_0", "q4_0")

PEER = r'''
import ctypes, os, sys, time
import gguf, llama_cpp as lc, numpy as np
path, shape, form, threads = sys.argv[1], [int(x) for x in sys.argv[2].split(",")], sys.argv[3], int(sys.argv[4])
d, layers, heads, ffn, vocabulary = shape
if not os.path.exists(path):
    r = np.random.default_rng(0)
    w = gguf.GGUFWriter(path + ".part", "llama")
    w.add_context_length(1024); w.add_embedding_length(d); w.add_block_count(layers); w.add_feed_forward_length(ffn)
    w.add_head_count(heads); w.add_head_count_kv(heads); w.add_layer_norm_rms_eps(1e-5); w.add_rope_dimension_count(d // heads)
    w.add_vocab_size(vocabulary); w.add_tokenizer_model("no_vocab")
    kind = {"f32": None, "q8_0": gguf.GGMLQuantizationType.Q8_0, "q4_0": gguf.GGMLQuantizationType.Q4_0}[form]
    def tensor(name, *dims):
        x = np.ones(dims, np.float32) if len(dims) == 1 else r.standard_normal(dims, dtype=np.float32) * .02
        if len(dims) == 1 or kind is None: w.add_tensor(name, x)
        else: w.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)
    tensor("token_embd.weight", vocabulary, d); tensor("output_norm.weight", d)
    for i in range(layers):
        b = "blk.%d." % i
        for n in ("attn_norm", "ffn_norm"): tensor(b + n + ".weight", d)
        for n in ("attn_q", "attn_k", "attn_v", "attn_output"): tensor(b + n + ".weight", d, d)
        tensor(b + "ffn_gate.weight", ffn, d); tensor(b + "ffn_up.weight", ffn, d); tensor(b + "ffn_down.weight", d, ffn)
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
    os.rename(path + ".part", path)
lc.llama_backend_init()
log = lc.llama_log_callback(lambda *x: None); lc.llama_log_set(log, None)
model = lc.llama_load_model_from_file(path.encode(), lc.llama_model_default_params())
params = lc.llama_context_default_params()
params.n_ctx = 1024; params.n_batch = 512; params.n_threads = params.n_threads_batch = threads
context = lc.llama_new_context_with_model(model, params)
def batch(n, at):
    b = lc.llama_batch_init(n, 0, 1); b.n_tokens = n
    for i in range(n):
        b.token[i] = 17 + i * 13; b.pos[i] = at + i; b.n_seq_id[i] = 1; b.seq_id[i][0] = 0; b.logits[i] = i == n - 1
    return b
singles, whole = [batch(1, i) for i in range(128)], batch(128, 0)
def decode(b):
    if lc.llama_decode(context, b) != 0: sys.exit("llama_decode failed")
    lc.llama_synchronize(context)
for line in sys.stdin:
    what, seconds = line.split()
    rates, end = [], time.perf_counter() + float(seconds)
    while not rates or time.perf_counter() < end:
        lc.llama_memory_clear(lc.llama_get_memory(context), True)
        begin = time.perf_counter()
        for b in singles if what == "decode" else [whole]: decode(b)
        rates.append(128 / (time.perf_counter() - begin))
    rates.sort()
    print("%.1f %.1f" % (rates[-1], rates[len(rates) // 2]), flush=True)
'''


class Runner:
    """A program that answers "decode SECONDS" and "prompt SECONDS" with its best and its median rate."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def rate(self, what, seconds):
        self.process.stdin.write(f"{what} {seconds}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit("a program ended before it answered")
        return [float(x) for x in answer.split()]

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def bytes_of(shape, form):
    """Of the weights that one token needs, scales included."""
    d, layers, _, ffn, vocabulary = SHAPES[shape]
    count = vocabulary * d + layers * (4 * d * d + 3 * d * ffn)
    return count * {"f32": 4, "q8_0": 1, "q4_0": 0.625}[form]


def measure(shape, form, options):
    ours_path = os.path.join(options.folder, f"{shape}-{form}.slm")
    if not os.path.exists(ours_path):
        subprocess.run([options.ours, "make", shape, form, ours_path], check=True)
    runners = {"weighbridge": Runner(options.ours, "run", ours_path, str(options.threads))}
    if options.peer:
        gguf_path = os.path.join(options.folder, f"{shape}-{form}.gguf")
        runners["llama.cpp"] = Runner(options.peer, "-c", PEER, gguf_path, ",".join(map(str, SHAPES[shape])), form, str(options.threads))
    for what in ("decode", "prompt"):
        rates = {name: [] for name in runners}
        for turn in range(options.turns):
            for name in list(runners) if turn % 2 == 0 else reversed(list(runners)):
                rates[name].append(runners[name].rate(what, options.seconds))
        row = {"shape": shape, "form": form, "what": what, "threads": options.threads}
        for name, pairs in rates.items():
            row[name] = round(statistics.median(p[1] for p in pairs), 1)
            row[name + " best"] = max(p[0] for p in pairs)
        if options.peer:
            row["ratio"] = round(row["weighbridge"] / row["llama.cpp"], 2)
            row["ratio of the best"] = round(row["weighbridge best"] / row["llama.cpp best"], 2)
        if what == "decode":
            row["GB/s"] = round(row["weighbridge"] * bytes_of(shape, form) / 1e9, 1)
        print(json.dumps(row), flush=True)
    for runner in runners.values():
        runner.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ours", required=True)
    parser.add_argument("--peer")
    parser.add_argument("--folder")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        options.folder = options.folder or made
        for shape in SHAPES:
            for form in FORMS:
                if options.only in f"{shape}-{form}":
                    measure(shape, form, options)


if __name__ == "__main__":
    main()
