#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times sentence embeddings of a MiniLM-shaped BERT in turns with ONNX Runtime, in one run: ids to vectors, and text to vectors.

usage: embed.py MODEL.safetensors --ours EMBED_BENCH --cli WEIGHBRIDGE [--vocab VOCAB.txt [--texts TEXTS]] [--peer PYTHON]
                [--model-folder FOLDER [--sentence-transformers PYTHON]] [-n TURNS] [--seconds S] [--figures A,B] [--json FILE]

EMBED_BENCH is the program built from bench/embed_bench.cc. PYTHON has numpy, onnx, onnxruntime and, for text, tokenizers; without
it only ours is timed. With --model-folder, the Hugging Face folder of the same model, sentence-transformers is timed too, in f32: the
query as ids, the texts in its own batches. --sentence-transformers names a Python that has it, if PYTHON has not. The graph for ONNX
Runtime is made here from the same weights, with its own fused operators
(EmbedLayerNormalization, Attention, SkipLayerNormalization, BiasGelu), and once more with quantize_dynamic (int8, weights per
channel); our f16 is compared with its f32. TEXTS is an STS-B file (sentence, sentence, score in CSV) or has one text per line. The peer
tokenizes the texts as one batch, sorts them by length and computes up to 32 of one length at once, without padding. Its results are
compared with ours before the clock starts. Each turn times each figure with each program for S seconds. With VOCAB, WEIGHBRIDGE makes
a .weights file of the model, which ours then opens, and the memory of embedding is measured for ten times as many texts."""
import argparse
import csv
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

from results import Results, figures, rounded

SHAPES = {"query16": (1, 16), "text128": (1, 128), "batch32x128": (32, 128)}

TITLES = {"query16": "a query of 16 tokens", "text128": "a text of 128 tokens", "batch32x128": "32 texts of 128 tokens",
          "texts": "the sentences of STS-B, from text", "ready": "ready from a .weights file"}
# Targets: as a fraction of ONNX Runtime's time (f16 of its f32), and in milliseconds.
ASKED = {("batch32x128", "f32"): 0.71, ("batch32x128", "f16"): 0.50, ("batch32x128", "int8"): 0.55, ("query16", "f32"): 0.65,
         ("query16", "int8"): 0.45, ("texts", "f32"): 0.45, ("texts", "int8"): 0.33}
ASKED_MS = {("ready", "f32"): 20, ("ready", "int8"): 50}


def tensors(path):
    import numpy as np
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        data = f.read()
    return {k: np.frombuffer(data, np.float32, offset=v["data_offsets"][0], count=(v["data_offsets"][1] - v["data_offsets"][0]) // 4)
            .reshape(v["shape"]) for k, v in header.items() if k != "__metadata__" and v["dtype"] == "F32"}


def make_onnx(w, heads, path):
    """BERT in the form that ONNX Runtime's optimizer produces."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    nodes, weights = [], []

    def const(name, value):
        weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(kind, inputs, output, domain="com.microsoft", **more):
        nodes.append(helper.make_node(kind, inputs, [output] if isinstance(output, str) else output, domain=domain, **more))
        return output if isinstance(output, str) else output[0]

    e = "embeddings."
    x = node("EmbedLayerNormalization", ["input_ids", "token_type_ids"] + [const(e + n, w[e + n]) for n in (
        "word_embeddings.weight", "position_embeddings.weight", "token_type_embeddings.weight", "LayerNorm.weight", "LayerNorm.bias")],
        ["x", "mask_unused"], epsilon=1e-12)
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in w:
        p = f"encoder.layer.{layer}."
        qkv = [p + "attention.self." + n for n in ("query", "key", "value")]
        a = node("Attention", [x, const(p + "qkv.w", np.concatenate([w[n + ".weight"].T for n in qkv], 1)),
                               const(p + "qkv.b", np.concatenate([w[n + ".bias"] for n in qkv]))], p + "attention", num_heads=heads)

        def skip(value, dense, norm, before, output):
            m = node("MatMul", [value, const(p + dense + ".w", w[p + dense + ".weight"].T)], output + "m", domain="")
            return node("SkipLayerNormalization", [m, before] + [const(p + n, w[p + n]) for n in (
                norm + ".weight", norm + ".bias", dense + ".bias")], output, epsilon=1e-12)
        x = skip(a, "attention.output.dense", "attention.output.LayerNorm", x, p + "x1")
        m = node("MatMul", [x, const(p + "up.w", w[p + "intermediate.dense.weight"].T)], p + "upm", domain="")
        m = node("BiasGelu", [m, const(p + "up.b", w[p + "intermediate.dense.bias"])], p + "up")
        x = skip(m, "output.dense", "output.LayerNorm", x, p + "x2")
        layer += 1
    graph = helper.make_graph(nodes, "bert", [helper.make_tensor_value_info(n, TensorProto.INT32, ["b", "t"]) for n in (
        "input_ids", "token_type_ids")], [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["b", "t", "h"])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                                ir_version=8), path)


def peer(o):
    """Runs in its own process: reads one figure per line and prints its times in milliseconds."""
    import numpy as np
    import onnxruntime as ort
    from onnxruntime.quantization import QuantType, quantize_dynamic
    weights = tensors(o.model)
    folder = tempfile.mkdtemp()
    paths = {"f32": os.path.join(folder, "f32.onnx"), "int8": os.path.join(folder, "int8.onnx")}
    make_onnx(weights, o.heads, paths["f32"])
    quantize_dynamic(paths["f32"], paths["int8"], per_channel=True, weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": 1})
    sessions = {}
    for precision, path in paths.items():
        so = ort.SessionOptions()
        so.intra_op_num_threads, so.inter_op_num_threads, so.log_severity_level = o.threads, 1, 3
        sessions[precision] = ort.InferenceSession(path, so, providers=["CPUExecutionProvider"])
        os.unlink(path)
    os.rmdir(folder)

    def run(precision, ids):
        h = sessions[precision].run(None, {"input_ids": ids, "token_type_ids": np.zeros_like(ids)})[0].mean(1)
        return h / np.linalg.norm(h, axis=1, keepdims=True)

    if o.golden:
        cases = json.load(open(o.golden, encoding="utf-8"))["cases"]
        worst = {"f32": 1, "int8": 1}
        for one in cases:
            for precision in worst:
                v = run(precision, np.array([one["ids"]], np.int32))[0]
                worst[precision] = min(worst[precision], float(v @ np.array(one["embedding"])))
        assert worst["f32"] > 0.999999, worst
        print("peer's cosine to the reference, worst text: " + json.dumps(worst), file=sys.stderr)
    texts, tokenizer = read_texts(o.texts), None
    if texts:
        from tokenizers import BertWordPieceTokenizer
        tokenizer = BertWordPieceTokenizer(o.vocab, lowercase=True)
        tokenizer.enable_truncation(256)

    def from_text(precision):
        encoded = [e.ids for e in tokenizer.encode_batch(texts)]
        order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
        out = np.empty((len(texts), weights["embeddings.word_embeddings.weight"].shape[1]), np.float32)
        begin = 0
        while begin < len(order):
            end = begin + 1
            while end < min(len(order), begin + 32) and len(encoded[order[end]]) == len(encoded[order[begin]]):
                end += 1
            out[order[begin:end]] = run(precision, np.array([encoded[i] for i in order[begin:end]], np.int32))
            begin = end
        return out

    if o.answers:
        close = (np.load(o.answers) * from_text("f32")).sum(1).min()
        assert close > 0.999999, close
        print(f"ours and the peer's, {len(texts)} texts in f32: cosine at least {close:.7f}", file=sys.stderr)
    rng = np.random.default_rng(1)
    print(json.dumps({"version": ort.__version__}), flush=True)
    for line in sys.stdin:
        figure, precision = line.split()
        if figure == "texts":
            job = lambda: from_text(precision)  # noqa: E731
        else:
            ids = rng.integers(1996, 29000, SHAPES[figure]).astype(np.int32)
            job = lambda: run(precision, ids)  # noqa: E731
        if figure != "texts":  # those have all been embedded once
            job()
        time_job(o, job, 1 if figure == "texts" else 3)


def time_job(o, job, least):
    times, end = [], time.perf_counter() + o.seconds
    while len(times) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        job()
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps([min(times), statistics.median(times)]), flush=True)


def sentence_transformers(o):
    """The same for sentence-transformers, in f32."""
    try:
        import torch
        from sentence_transformers import SentenceTransformer, __version__
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    torch.set_num_threads(o.threads)
    model, texts = SentenceTransformer(o.model_folder, device="cpu"), read_texts(o.texts)
    model.max_seq_length = 256

    def query():
        ids = torch.randint(1996, 29000, SHAPES["query16"])
        with torch.no_grad():
            return model({"input_ids": ids, "token_type_ids": ids * 0, "attention_mask": ids * 0 + 1})["sentence_embedding"].numpy()

    def embed_texts():
        return model.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False)

    if o.answers:
        import numpy as np
        close = (np.load(o.answers) * embed_texts()).sum(1).min()
        assert close > 0.999999, close
        print(f"ours and sentence-transformers', {len(texts)} texts in f32: cosine at least {close:.7f}", file=sys.stderr)
    query()
    print(json.dumps({"version": f"{__version__} with torch {torch.__version__}"}), flush=True)
    for line in sys.stdin:
        time_job(o, {"query16": query, "texts": embed_texts}[line.split()[0]], 1 if "texts" in line else 3)


def ours(o, figure, precision):
    env = dict(os.environ, WEIGHBRIDGE_EMBED_MODEL=o.weights or o.model, WEIGHBRIDGE_EMBED_THREADS=str(o.threads),
               WEIGHBRIDGE_EMBED_TEXTS=o.lines, **({} if o.weights else {"WEIGHBRIDGE_EMBED_HEADS": str(o.heads)}))
    name = {"texts": f"embed_texts/{precision}", "ready": f"ready/{precision}"}.get(figure, f"embed/{figure}_{precision}")
    out = subprocess.run([o.ours, f"--benchmark_filter=^{name}/", f"--benchmark_min_time={o.seconds}",
                          "--benchmark_format=json"], env=env, check=True, capture_output=True, text=True).stdout
    one = json.loads(re.sub(r"\binf\b", "0", out))["benchmarks"][0]
    assert not one.get("error_occurred"), one
    return one["best_ms"], one["median_ms"]


def read_texts(path):
    """The sentences of an STS-B file, all first ones before all second ones; or the lines of a text file."""
    if not path:
        return []
    with open(path, encoding="utf-8", newline="") as f:
        if not path.endswith(".csv"):
            return f.read().splitlines()
        rows = list(csv.reader(f))
    return [row[side].replace("\n", " ") for side in (0, 1) for row in rows]


def make_weights(o, folder):
    """The model as a .weights file, which holds its vocabulary and its number of heads."""
    made = os.path.join(folder, "model")
    os.mkdir(made)
    os.symlink(os.path.abspath(o.model), os.path.join(made, "model.safetensors"))
    os.symlink(os.path.abspath(o.vocab), os.path.join(made, "vocab.txt"))
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
    for precision, bytes_ in (("f32", 4), ("f16", 2), ("int8", 1)):
        for lines in (o.lines_few, 10 * o.lines_few):
            most = rounded(resident(o, precision, lines, folder))
            results.row("memory", f"{lines:,} texts, {precision}", {"median": most, "best": most}, unit="MiB",
                        weights_mib=rounded((words * 4 + (sum(shapes.values()) - words) * bytes_) / 2**20))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--ours", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("-n", dest="turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--peer", default="", help="a python3 with onnxruntime")
    parser.add_argument("--sentence-transformers", default="", help="a python3 with it, if not that of --peer")
    parser.add_argument("--model-folder", default="", help="the model as a Hugging Face folder, for sentence-transformers")
    parser.add_argument("--golden", default="", help="texts and vectors that the peer is checked with")
    parser.add_argument("--cli", default="", help="the command weighbridge, which says what build this is and makes the .weights")
    parser.add_argument("--vocab", default="", help="the model's vocabulary, for .weights and text")
    parser.add_argument("--texts", default="", help="STS-B's CSV, or a text a line")
    parser.add_argument("--figures", default="query16,text128,batch32x128,texts,ready,memory")
    parser.add_argument("--lines-few", type=int, default=500, help="texts of the smaller measurement of memory")
    parser.add_argument("--json", default="")
    parser.add_argument("--answers", default="", help=argparse.SUPPRESS)
    parser.add_argument("--as-peer", choices=("onnxruntime", "sentence-transformers"), help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.as_peer:
        return peer(o) if o.as_peer == "onnxruntime" else sentence_transformers(o)
    with tempfile.TemporaryDirectory() as folder:
        compare(o, folder)
    return 0


def prepare_text(o, folder):
    """Prepares embedding of texts; returns additional arguments for the peer."""
    if not o.vocab:
        return []
    make_weights(o, folder)
    if not o.texts:
        return []
    o.lines, answers = os.path.join(folder, "texts.txt"), os.path.join(folder, "answers.npy")
    with open(o.lines, "w", encoding="utf-8") as f:
        f.writelines(text + "\n" for text in read_texts(o.texts))
    subprocess.run([o.cli, "embed", o.weights, "--input", o.lines, "--output-format", "npy", "-o", answers], check=True)
    return ["--answers", answers]


def compare(o, folder):
    o.weights = o.lines = ""
    results = Results("embed", "Embeddings", o.cli, f"{o.threads} threads, medians of {o.turns} turns of {o.seconds:g} s")
    more = prepare_text(o, folder)
    children = start_peers(o, results, more)
    for figure in o.figures.split(","):
        if figure == "memory":
            if o.weights:
                memory(o, results, folder)
        elif figure != "texts" or o.lines:
            for precision in ("f32", "f16", "int8"):
                time_figure(o, results, children, figure, precision)
    for child in children.values():
        child.stdin.close()
        child.wait()
    results.write(o.json)


def start_peers(o, results, more):
    """The available peers by name, and a sentence about each missing one."""
    env = dict(os.environ, OMP_NUM_THREADS=str(o.threads), RAYON_NUM_THREADS=str(o.threads))
    found = {}
    for name, python in (("onnxruntime", o.peer), ("sentence-transformers", (o.sentence_transformers or o.peer) if o.model_folder else "")):
        if not python:
            results.leave_out(f"{name}: no Python with it was given")
            continue
        child = subprocess.Popen([python, os.path.abspath(__file__), *sys.argv[1:], *more, "--as-peer", name], env=env, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        told = json.loads(child.stdout.readline() or '{"missing": "it ended before it answered"}')
        if "missing" in told:
            results.leave_out(f"{name}: {told['missing']}")
            continue
        found[name] = child
        results.peer(name, told["version"])
    return found


def takes_part(name, figure, precision):
    return figure in (("query16", "texts") if name == "sentence-transformers" and precision == "f32" else
                      (*SHAPES, "texts") if name == "onnxruntime" else ())


def time_figure(o, results, children, figure, precision):
    peers = [name for name in children if takes_part(name, figure, precision)]
    times = {name: [] for name in ("ours", *peers)}
    for _ in range(o.turns):
        times["ours"].append(ours(o, figure, precision))
        for name in peers:
            children[name].stdin.write(f"{figure} {'int8' if precision == 'int8' else 'f32'}\n")
            children[name].stdin.flush()
            times[name].append(json.loads(children[name].stdout.readline()))
    told = {name: {"median": figures([t[1] for t in all_])["median"], "best": rounded(min(t[0] for t in all_))}
            for name, all_ in times.items()}
    mine = told.pop("ours")
    if (figure, precision) in ASKED_MS:
        mine["asked"] = ASKED_MS[figure, precision]
    row = results.row(TITLES[figure], f"{TITLES[figure]}, {precision}", mine, told)
    if (figure, precision) in ASKED:
        results.asked(row, "onnxruntime", ASKED[figure, precision])


if __name__ == "__main__":
    sys.exit(main())
