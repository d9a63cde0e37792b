#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times sentence embeddings of a MiniLM-shaped BERT in turns with ONNX Runtime, from ids to vectors, in one run.

usage: embed.py MODEL.safetensors --ours EMBED_BENCH [--threads 2] [--turns 5] [--heads 12] [--peer PYTHON]

EMBED_BENCH is the program that bench/embed_bench.cc becomes. PYTHON has numpy, onnx and onnxruntime; without it ours is timed
alone. The peer's graph is made here from the same weights, with ONNX Runtime's own fused operators (EmbedLayerNormalization,
Attention, SkipLayerNormalization, BiasGelu), and once more with quantize_dynamic (int8, weights per channel). Both answers
are compared before the clock starts. Each turn times each figure with each program for a second; what is printed is the best
and the median of all turns, and the ratio of the best ones."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

SHAPES = {"query16": (1, 16), "text128": (1, 128), "batch32x128": (32, 128)}


def tensors(path):
    import numpy as np
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        header = json.loads(f.read(size))
        data = f.read()
    return {k: np.frombuffer(data, np.float32, offset=v["data_offsets"][0], count=(v["data_offsets"][1] - v["data_offsets"][0]) // 4)
            .reshape(v["shape"]) for k, v in header.items() if k != "__metadata__" and v["dtype"] == "F32"}


def make_onnx(w, heads, path):
    """BERT as ONNX Runtime's optimiser leaves it."""
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
    """In a process of its own: reads a figure a line, answers with its times in milliseconds."""
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
    rng = np.random.default_rng(1)
    print(json.dumps({"version": ort.__version__}), flush=True)
    for line in sys.stdin:
        figure, precision = line.split()
        ids = rng.integers(1996, 29000, SHAPES[figure]).astype(np.int32)
        times, end = [], time.perf_counter() + o.seconds
        run(precision, ids)
        while len(times) < 3 or time.perf_counter() < end:
            begin = time.perf_counter()
            run(precision, ids)
            times.append((time.perf_counter() - begin) * 1e3)
        print(json.dumps([min(times), statistics.median(times)]), flush=True)


def ours(o, figure, precision):
    env = dict(os.environ, WEIGHBRIDGE_EMBED_MODEL=o.model, WEIGHBRIDGE_EMBED_HEADS=str(o.heads),
               WEIGHBRIDGE_EMBED_THREADS=str(o.threads))
    out = subprocess.run([o.ours, f"--benchmark_filter=^embed/{figure}_{precision}/", f"--benchmark_min_time={o.seconds}",
                          "--benchmark_format=json"], env=env, check=True, capture_output=True, text=True).stdout
    one = json.loads(re.sub(r"\binf\b", "0", out))["benchmarks"][0]
    assert not one.get("error_occurred"), one
    return one["best_ms"], one["median_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--ours", default="")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--peer", default="", help="a python3 with onnxruntime")
    parser.add_argument("--golden", default="", help="texts and vectors that the peer is checked with")
    parser.add_argument("--as-peer", action="store_true", help=argparse.SUPPRESS)
    o = parser.parse_args()
    if o.as_peer:
        return peer(o)
    child = None
    if o.peer:
        env = dict(os.environ, OMP_NUM_THREADS=str(o.threads))
        child = subprocess.Popen([o.peer, os.path.abspath(__file__), *sys.argv[1:], "--as-peer"], env=env, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        print("onnxruntime " + json.loads(child.stdout.readline())["version"])
    print(f"{o.threads} threads, {o.turns} turns of {o.seconds:g} s; milliseconds: best, median")
    for figure, (texts, length) in SHAPES.items():
        for precision in ("f32", "f16", "int8"):
            times = {"ours": [], "onnxruntime": []}
            for _ in range(o.turns):
                times["ours"].append(ours(o, figure, precision))
                if child:
                    child.stdin.write(f"{figure} {'int8' if precision == 'int8' else 'f32'}\n")
                    child.stdin.flush()
                    times["onnxruntime"].append(json.loads(child.stdout.readline()))
            best = {name: min(t[0] for t in all_) for name, all_ in times.items() if all_}
            for name, value in best.items():
                median = statistics.median(t[1] for t in times[name])
                print(f"{figure:12} {precision:5} {name:12} {value:9.3f} {median:9.3f}   {texts * length / value * 1e3:9.0f} tokens/s"
                      + (f"   ours takes {best['ours'] / value:.2f} of it" if name != "ours" else ""), flush=True)
    if child:
        child.stdin.close()
        child.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
