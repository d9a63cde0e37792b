#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times sentence embeddings of a MiniLM-shaped BERT in turns with its peers (embed_peers.py), in one run: ids to vectors, text to vectors,
and texts by a table of word vectors.

usage: embed.py MODEL.safetensors --ours EMBED_BENCH --cli WEIGHBRIDGE [--vocab VOCAB.txt [--texts TEXTS]] [--peer PYTHON]
                [--openvino PYTHON] [--model-folder FOLDER [--sentence-transformers PYTHON]] [--static FOLDER [--model2vec PYTHON]]
                [--golden FILE] [-n TURNS] [--seconds S] [--figures A,B] [--json FILE]

EMBED_BENCH is the program built from bench/embed_bench.cc. --peer is a python3 with numpy, onnx, onnxruntime, tokenizers and what else a peer
needs; the other options name one for a peer that it lacks. A missing peer is left out. Our f16 is compared with OpenVINO's bf16 if the processor
has it, and else with f32. TEXTS is an STS-B file (sentence, sentence, score in CSV) or has one text per line. --model-folder is the Hugging Face
folder of the same model, for sentence-transformers. --static is a folder that model2vec saved, which is made of the model if it does not exist.
Each turn times each figure with each program for S seconds. With VOCAB, WEIGHBRIDGE makes a .weights file of the model, which ours then
opens, and the memory of embedding is measured for ten times as many texts."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from embed_peers import PEERS, SHAPES, read_texts, tensors
from results import Results, figures, rounded

TITLES = {"query16": "a query of 16 tokens", "text128": "a text of 128 tokens", "batch32x128": "32 texts of 128 tokens",
          "texts": "the sentences of STS-B, from text", "static": "the sentences of STS-B, by a table of word vectors",
          "ready": "ready from a .weights file"}
PRECISIONS = ("f32", "f16", "bf16", "int8")
# What a peer computes beside each of ours: the first that it has.
BESIDE = {"f32": ["f32"], "f16": ["bf16", "f32"], "bf16": ["bf16", "f32"], "int8": ["int8"]}
# Targets: as a fraction of a peer's time (f16 of its f32), and in milliseconds.
ASKED = {"onnxruntime": {("query16", "f32"): 0.50, ("query16", "int8"): 0.30, ("text128", "f32"): 0.65, ("text128", "int8"): 0.45,
                         ("batch32x128", "f32"): 0.65, ("batch32x128", "f16"): 0.50, ("batch32x128", "int8"): 0.40,
                         ("texts", "f32"): 0.60, ("texts", "int8"): 0.38},
         "model2vec": {("static", "f32"): 0.1}}
ASKED_MS = {("ready", "f32"): 20, ("ready", "int8"): 50}


def ours(o, figure, precision):
    model = o.static if figure == "static" else o.weights or o.model
    env = dict(os.environ, WEIGHBRIDGE_EMBED_MODEL=model, WEIGHBRIDGE_EMBED_THREADS=str(o.threads), WEIGHBRIDGE_EMBED_TEXTS=o.lines,
               **({"WEIGHBRIDGE_EMBED_HEADS": str(o.heads)} if model == o.model else {}))
    name = {"texts": f"embed_texts/{precision}", "static": f"embed_texts/{precision}", "ready": f"ready/{precision}"}.get(
        figure, f"embed/{figure}_{precision}")
    out = subprocess.run([o.ours, f"--benchmark_filter=^{name}/", f"--benchmark_min_time={o.seconds}",
                          "--benchmark_format=json"], env=env, check=True, capture_output=True, text=True).stdout
    one = json.loads(re.sub(r"\binf\b", "0", out))["benchmarks"][0]
    assert not one.get("error_occurred"), one
    return one["best_ms"], one["median_ms"]


def make_weights(o, folder):
    """The model as a .weights file, which holds its vocabulary and its number of heads."""
    made = os.path.join(folder, "model")
    os.mkdir(made)
    shutil.copyfile(o.model, os.path.join(made, "model.safetensors"))  # a link may not lead out of the folder
    shutil.copyfile(o.vocab, os.path.join(made, "vocab.txt"))
    shapes = {k: v.shape for k, v in tensors(o.model).items()}
    words, layers = shapes["embeddings.word_embeddings.weight"], 0
    while f"encoder.layer.{layers}.output.dense.weight" in shapes:
        layers += 1
    with open(os.path.join(made, "config.json"), "w", encoding="utf-8") as f:
        json.dump({"architectures": ["BertModel"], "model_type": "bert", "vocab_size": words[0], "hidden_size": words[1],
                   "num_hidden_layers": layers, "num_attention_heads": o.heads, "hidden_act": "gelu", "type_vocab_size": 2,
                   "intermediate_size": shapes["encoder.layer.0.intermediate.dense.weight"][0], "layer_norm_eps": 1e-12,
                   "max_position_embeddings": shapes["embeddings.position_embeddings.weight"][0]}, f)
    o.weights = os.path.join(folder, "model.weights")
    subprocess.run([o.cli, "convert", made, o.weights], check=True, capture_output=True)


def resident(o, precision, lines, folder):
    """The peak memory of embedding that many lines, in MiB."""
    path = os.path.join(folder, "lines.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(f"text {i}\n" for i in range(lines))
    process = subprocess.Popen([o.cli, "embed", o.weights, "--precision", precision, "--threads", str(o.threads), "--input", path],
                               stdout=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:  # wait4() would include this interpreter's memory from before exec
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as f:
            most = max([most] + [int(line.split()[1]) for line in f if line.startswith("VmHWM")])
        time.sleep(0.01)
    assert process.returncode == 0, process.returncode
    return most / 1024


def memory(o, results, folder):
    shapes = {k: v.size for k, v in tensors(o.model).items()}
    words = shapes["embeddings.word_embeddings.weight"]
    for precision, bytes_ in (("f32", 4), ("f16", 2), ("bf16", 2), ("int8", 1)):
        for lines in (o.lines_few, 10 * o.lines_few):
            most = rounded(resident(o, precision, lines, folder))
            results.row("memory", f"{lines:,} texts, {precision}", {"median": most, "best": most}, unit="MiB",
                        weights_mib=rounded((words * 4 + (sum(shapes.values()) - words) * bytes_) / 2**20))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--ours", required=True)
    parser.add_argument("--cli", required=True, help="the command weighbridge, which says what build this is and makes the .weights")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-n", dest="turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--peer", default="", help="a python3 with the peers")
    for name in ("openvino", "sentence-transformers", "model2vec"):
        parser.add_argument(f"--{name}", default="", help="a python3 with it, if not that of --peer")
    parser.add_argument("--model-folder", default="", help="the model as a Hugging Face folder, for sentence-transformers")
    parser.add_argument("--static", default="", help="a folder that model2vec saved, or is to save")
    parser.add_argument("--golden", default="", help="texts and vectors that the peers are checked with")
    parser.add_argument("--vocab", default="", help="the model's vocabulary, for .weights and text")
    parser.add_argument("--texts", default="", help="STS-B's CSV, or a text a line")
    parser.add_argument("--figures", default=",".join((*SHAPES, "texts", "static", "ready", "memory")))
    parser.add_argument("--lines-few", type=int, default=500, help="texts of the smaller measurement of memory")
    parser.add_argument("--json", default="")
    o = parser.parse_args()
    o.weights = o.lines = ""
    with tempfile.TemporaryDirectory() as folder:
        compare(o, folder)


def compare(o, folder):
    results = Results("embed", "Embeddings", o.cli, f"{o.threads} threads, medians of {o.turns} turns of {o.seconds:g} s")
    if o.vocab:
        make_weights(o, folder)
    if o.texts:
        o.lines = os.path.join(folder, "texts.txt")
        with open(o.lines, "w", encoding="utf-8") as f:
            f.writelines(text + "\n" for text in read_texts(o.texts))
    children = {name: child for name in PEERS if (child := start_peer(o, results, name, folder))}
    for figure in o.figures.split(","):
        if figure == "memory":
            if o.weights:
                memory(o, results, folder)
        elif figure == "static":
            if o.lines and os.path.isdir(o.static):
                time_figure(o, results, children, figure, "f32")
        elif figure != "texts" or o.lines and o.weights:
            for precision in PRECISIONS:
                time_figure(o, results, children, figure, precision)
    for child in children.values():
        child.end()
    results.write(o.json)


class Peer:
    """A process of embed_peers.py, which has checked itself."""

    def __init__(self, command, threads):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), RAYON_NUM_THREADS=str(threads), TOKENIZERS_PARALLELISM="true")
        self.process = subprocess.Popen(command, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # Some packages also print to standard output while they prepare.
        self.told = next((json.loads(line) for line in self.process.stdout if line.startswith("{")), {"missing": "it ended before it answered"})

    def time(self, figure, precision):
        self.process.stdin.write(f"{figure} {precision}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def start_peer(o, results, name, folder):
    """The peer, or None after a sentence about why it is left out."""
    python = {"OpenVINO": o.openvino, "sentence-transformers": o.sentence_transformers, "model2vec": o.model2vec}.get(name) or o.peer
    if not python:
        return results.leave_out(f"{name}: no Python with it was given")
    program = [python, str(pathlib.Path(__file__).with_name("embed_peers.py"))]
    if name == "sentence-transformers" and not o.model_folder:
        return results.leave_out(f"{name}: no folder of the model was given")
    model = o.weights
    if name == "model2vec":
        if not (o.static and o.lines and o.vocab):
            return results.leave_out(f"{name}: no folder for its table, no texts or no vocabulary was given")
        if not os.path.isdir(o.static):
            subprocess.run([*program, "make-static", o.model, "--vocab", o.vocab, "--static", o.static])
        model = o.static
    command = [*program, name, o.model, "--heads", str(o.heads), "--threads", str(o.threads), "--seconds", str(o.seconds),
               *given(o, "vocab", "texts", "golden", "model-folder", "static")]
    if o.lines and model and os.path.exists(model):
        answers = os.path.join(folder, "static.npy" if name == "model2vec" else "answers.npy")
        if not os.path.exists(answers):
            subprocess.run([o.cli, "embed", model, "--input", o.lines, "--output-format", "npy", "-o", answers], check=True)
        command += ["--answers", answers]
    peer = Peer(command, o.threads)
    if "missing" in peer.told:
        return results.leave_out(f"{name}: {peer.told['missing']}")
    results.peer(name, peer.told["version"])
    for sentence in peer.told["left_out"]:
        results.leave_out(f"{name} {sentence}")
    return peer


def given(o, *names):
    """The options among these that were given, as words."""
    return [word for name in names if (value := getattr(o, name.replace("-", "_"))) for word in (f"--{name}", value)]


def time_figure(o, results, children, figure, precision):
    """One row: ours, and each peer that has the figure in a precision to stand beside ours."""
    beside = {name: next((p for p in BESIDE[precision] if p in child.told["precisions"]), None)
              for name, child in children.items() if figure in child.told["figures"]}
    if precision == "f16":  # those are slower in f32 than others
        beside.pop("sentence-transformers", None)
    peers = {name: theirs for name, theirs in beside.items() if theirs}
    times = {name: [] for name in ("ours", *peers)}
    for _ in range(o.turns):
        times["ours"].append(ours(o, figure, precision))
        for name, theirs in peers.items():
            times[name].append(children[name].time(figure, theirs))
    told = {name: {"median": figures([t[1] for t in all_])["median"], "best": rounded(min(t[0] for t in all_))}
            for name, all_ in times.items()}
    mine = told.pop("ours")
    if (figure, precision) in ASKED_MS:
        mine["asked"] = ASKED_MS[figure, precision]
    title = TITLES[figure] if figure == "static" else f"{TITLES[figure]}, {precision}"
    row = results.row(TITLES[figure], title, mine, {f"{name} bf16" if peers[name] == "bf16" else name: one for name, one in told.items()})
    for name, asked in ASKED.items():
        if (figure, precision) in asked:
            results.asked(row, name, asked[figure, precision])


if __name__ == "__main__":
    main()
