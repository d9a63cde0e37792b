#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times language models in turns with llama.cpp, in one run: tokens decoded one by one, and prompts of 128 tokens.

usage: generate.py --ours GENERATE_RATES --cli WEIGHBRIDGE [--peer PYTHON] [--folder FOLDER] [-n 3] [--seconds 1] [--only 15M-q8_0]
                   [--threads 2] [--json FILE]
GENERATE_RATES is the program built from bench/generate_rates.cc. PYTHON has llama-cpp-python, gguf and numpy; without it only ours is
timed. Quantized models are timed with both precisions. Weights are random, with the shapes of stories15M and stories110M; both are kept in
FOLDER. Each turn times ours, then the peer, then the other way round. The peer samples no tokens and copies no logits, which favors it
slightly. Each token needs all weights once. So the roof of decoding is the rate at which as many threads read as many bytes: it takes part
in the turns, and our best turn is given as a fraction of its best."""
import argparse
import os
import subprocess
import sys
import tempfile

from results import Results, figures

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
    """A program that reads lines of a job and its seconds and prints its best and its median rate."""

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
    """The bytes of the weights that one token needs, scales included."""
    d, layers, _, ffn, vocabulary = SHAPES[shape]
    count = vocabulary * d + layers * (4 * d * d + 3 * d * ffn)
    return count * {"f32": 4, "q8_0": 1, "q4_0": 0.625}[form]


OURS_IN_F32 = "our f32"
# Targets: times as fractions of llama.cpp's, decode and prompt; the rate of decoding as a fraction of the roof; and an exact prompt of quantized
# weights, whose products are those of f32, as a fraction of the time in f32 weights.
ASKED = {"exact": {("15M", "f32"): (0.60, None), ("15M", "q8_0"): (0.56, 0.67), ("15M", "q4_0"): (0.67, None),
                   ("110M", "f32"): (0.83, 0.60), ("110M", "q8_0"): (0.77, 0.67), ("110M", "q4_0"): (0.77, None)},
         "fast": {("15M", "q8_0"): (0.30, 0.33), ("15M", "q4_0"): (0.30, 0.33), ("110M", "q8_0"): (0.50, 0.20), ("110M", "q4_0"): (0.45, 0.30)}}
OF_ROOF = {("exact", "110M", "f32"): 0.9, ("fast", "110M", "q8_0"): 0.9, ("fast", "110M", "q4_0"): 0.9}
OF_OURS_IN_F32 = 1.11  # 0.9 of its rate


def in_turns(runners, what, options):
    """The median and the best rate of each: of `what`, or of another job where a runner has one."""
    rates = {name: [] for name in runners}
    for turn in range(options.turns):
        for name in list(runners) if turn % 2 == 0 else reversed(list(runners)):
            rates[name].append(runners[name].rate("read" if name == "roof" else what, options.seconds))
    return {name: {"median": figures([p[1] for p in pairs], "tokens/s")["median"], "best": max(p[0] for p in pairs)}
            for name, pairs in rates.items()}


def made(shape, form, options):
    path = os.path.join(options.folder, f"{shape}-{form}.slm")
    if not os.path.exists(path):
        subprocess.run([options.ours, "make", shape, form, path], check=True)
    return path


def measure(results, shape, form, options):
    ours_path = made(shape, form, options)
    threads, size = str(options.threads), int(bytes_of(shape, form))
    ours = ["exact"] if form == "f32" else ["exact", "fast"]
    runners = {precision: Runner(options.ours, "run", ours_path, threads, precision) for precision in ours}
    if options.peer:
        gguf_path = os.path.join(options.folder, f"{shape}-{form}.gguf")
        runners["llama.cpp"] = Runner(options.peer, "-c", PEER, gguf_path, ",".join(map(str, SHAPES[shape])), form, threads)
    only = {"decode": {"roof": Runner(options.ours, "read", str(size), threads)}, "prompt": {}}
    if form != "f32":
        only["prompt"] = {OURS_IN_F32: Runner(options.ours, "run", made(shape, "f32", options), threads, "exact")}
    for place, (what, title) in enumerate((("decode", "decode"), ("prompt", "prompt of 128 tokens"))):
        told = in_turns({**runners, **only[what]}, what, options)
        name = f"read {size / 1e6:.0f} MB"
        if what == "decode":
            results.roof(name, told.pop("roof")["best"], "B/s", f"{threads} threads that read {size / 1e6:.0f} MB over and over")
        for precision in ours:
            peers = {name: theirs for name, theirs in told.items() if name == "llama.cpp" or name == OURS_IN_F32 and precision == "exact"}
            row = results.row(title, f"{title}, {shape} {form}" + (" fast" if precision == "fast" else ""), told[precision], peers,
                              unit="tokens/s",
                              roof=(name, told[precision]["best"] * size, OF_ROOF.get((precision, shape, form))) if what == "decode" else None)
            if asked := ASKED[precision][shape, form][place]:
                results.asked(row, "llama.cpp", asked)
            results.asked(row, OURS_IN_F32, OF_OURS_IN_F32)
    for runner in [*runners.values(), *only["decode"].values(), *only["prompt"].values()]:
        runner.end()


def find_peer(results, python):
    """python, if it has the peer's packages."""
    if not python:
        results.leave_out("llama.cpp: no Python with llama-cpp-python was given")
        return ""
    said = subprocess.run([python, "-c", "import gguf, numpy, llama_cpp; print(llama_cpp.__version__)"], capture_output=True, text=True)
    if said.returncode != 0:
        results.leave_out("llama.cpp: the Python that was given lacks one of llama-cpp-python, gguf and numpy")
        return ""
    results.peer("llama.cpp", "llama-cpp-python " + said.stdout.strip())
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--cli", required=True, help="the command weighbridge, which says what build this is")
    parser.add_argument("--peer", default="")
    parser.add_argument("--folder")
    parser.add_argument("-n", dest="turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    results = Results("generate", "Language models", options.cli,
                      f"{options.threads} threads, medians of {options.turns} turns of {options.seconds:g} s")
    options.peer = find_peer(results, options.peer)
    with tempfile.TemporaryDirectory() as made:
        options.folder = options.folder or made
        os.makedirs(options.folder, exist_ok=True)
        for shape in SHAPES:
            for form in FORMS:
                if options.only in f"{shape}-{form}":
                    measure(results, shape, form, options)
    results.write(options.json)


if __name__ == "__main__":
    main()
