#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The peers of embed.py, each in its own process. A peer is checked before its clock starts: with the vectors of --golden, and with our
vectors of the same texts. Then it prints what it is, reads lines of a figure and a precision, and prints its best and its median time.

usage: embed_peers.py PEER MODEL.safetensors [--heads 12] [--threads 2] [--seconds S] [--vocab VOCAB.txt] [--texts TEXTS] [--golden FILE]
                      [--answers OURS.npy] [--model-folder FOLDER] [--static FOLDER]
       embed_peers.py make-static MODEL.safetensors --vocab VOCAB.txt --static FOLDER
PEER: onnxruntime, OpenVINO, sentence-transformers, model2vec

onnxruntime and OpenVINO run one graph, made here from the weights of MODEL with the fused operators of ONNX Runtime. Its int8 is
quantize_dynamic with weights per channel, OpenVINO's is static, by NNCF with ranges from TEXTS. Both tokenize the texts as one batch,
sort them by length and compute up to 32 of one length at once, without padding. sentence-transformers makes its own batches. make-static
makes a table of word vectors that model2vec opens: the word embeddings of MODEL in 256 dimensions, weighted as rare words."""
import argparse
import csv
import json
import os
import statistics
import sys
import tempfile
import time

SHAPES = {"query16": (1, 16), "text128": (1, 128), "batch32x128": (32, 128)}
MAX_LENGTH, BATCH, RANGES = 256, 32, 300
# The cosine with the reference that a peer must reach, so that only what embeds is timed: with each text in f32, on average in others.
CLOSE = {"f32": 0.999999, "bf16": 0.999, "int8": 0.95}


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


def read_texts(path):
    """The sentences of an STS-B file, all first ones before all second ones; or the lines of a text file."""
    if not path:
        return []
    with open(path, encoding="utf-8", newline="") as f:
        if not path.endswith(".csv"):
            return f.read().splitlines()
        rows = list(csv.reader(f))
    return [row[side].replace("\n", " ") for side in (0, 1) for row in rows]


def fused_graph(o, folder):
    path = os.path.join(folder, "f32.onnx")
    make_onnx(tensors(o.model), o.heads, path)
    return path


def int8_graph(source, target):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    quantize_dynamic(source, target, per_channel=True, weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": 1})


def tokenizer_of(vocab):
    from tokenizers import BertWordPieceTokenizer
    made = BertWordPieceTokenizer(vocab, lowercase=True)
    made.enable_truncation(MAX_LENGTH)
    return made


class Graph:
    """A runtime of the graph: hidden(precision, ids) computes the rows of a batch."""

    figures = (*SHAPES, "texts")

    def prepare(self, o):
        self.texts = read_texts(o.texts)
        self.tokenizer = tokenizer_of(o.vocab) if self.texts else None

    def from_ids(self, precision, ids):
        import numpy as np
        pooled = self.hidden(precision, ids).mean(1)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def from_texts(self, precision):
        return in_batches([e.ids for e in self.tokenizer.encode_batch(self.texts)], lambda ids: self.from_ids(precision, ids))


def in_batches(encoded, from_ids):
    """The vectors of texts, up to 32 of one length at once."""
    import numpy as np
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
    out, begin = None, 0
    while begin < len(order):
        end = begin + 1
        while end < min(len(order), begin + BATCH) and len(encoded[order[end]]) == len(encoded[order[begin]]):
            end += 1
        made = from_ids(np.array([encoded[i] for i in order[begin:end]], np.int32))
        out = np.empty((len(order), made.shape[1]), np.float32) if out is None else out
        out[order[begin:end]] = made
        begin = end
    return out


class OnnxRuntime(Graph):
    precisions = ["f32", "int8"]

    def __init__(self, o):
        import onnxruntime as ort
        self.version = ort.__version__
        self.sessions = {}
        with tempfile.TemporaryDirectory() as folder:
            paths = {"f32": fused_graph(o, folder), "int8": os.path.join(folder, "int8.onnx")}
            int8_graph(paths["f32"], paths["int8"])
            for precision, path in paths.items():
                so = ort.SessionOptions()
                so.intra_op_num_threads, so.inter_op_num_threads, so.log_severity_level = o.threads, 1, 3
                self.sessions[precision] = ort.InferenceSession(path, so, providers=["CPUExecutionProvider"])
        self.prepare(o)

    def hidden(self, precision, ids):
        return self.sessions[precision].run(None, {"input_ids": ids, "token_type_ids": ids * 0})[0]


class OpenVino(Graph):
    def __init__(self, o):
        import nncf
        import openvino as ov
        self.version, self.left_out = f"{ov.__version__.split('-')[0]} with nncf {nncf.__version__}", []
        self.prepare(o)
        core = ov.Core()
        with tempfile.TemporaryDirectory() as folder:
            graph = core.read_model(fused_graph(o, folder))
            self.requests = {"f32": self.compiled(core, graph, "f32", o)}
            if "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
                self.requests["bf16"] = self.compiled(core, graph, "bf16", o)
            else:
                self.left_out.append("bf16: the processor has none")
            if self.texts:
                self.requests["int8"] = self.compiled(core, self.quantized(nncf, graph), "f32", o)
            else:
                self.left_out.append("int8: no texts for its ranges were given")
        self.precisions = list(self.requests)

    def compiled(self, core, graph, precision, o):
        return core.compile_model(graph, "CPU", {"INFERENCE_NUM_THREADS": o.threads, "PERFORMANCE_HINT": "LATENCY",
                                                 "INFERENCE_PRECISION_HINT": precision}).create_infer_request()

    def quantized(self, nncf, graph):
        import numpy as np
        some = [e.ids for e in self.tokenizer.encode_batch(self.texts[::max(1, len(self.texts) // RANGES)])]
        data = nncf.Dataset([np.array([ids], np.int32) for ids in some], lambda ids: {"input_ids": ids, "token_type_ids": ids * 0})
        return nncf.quantize(graph, data, model_type=nncf.ModelType.TRANSFORMER, subset_size=len(some))

    def hidden(self, precision, ids):
        request = self.requests[precision]
        request.infer({"input_ids": ids, "token_type_ids": ids * 0}, share_inputs=True)
        return request.get_output_tensor(0).data


class SentenceTransformers:
    figures, precisions = ("query16", "texts"), ["f32"]

    def __init__(self, o):
        import torch
        from sentence_transformers import SentenceTransformer, __version__
        torch.set_num_threads(o.threads)
        self.version = f"{__version__} with torch {torch.__version__}"
        self.model, self.texts, self.torch = SentenceTransformer(o.model_folder, device="cpu"), read_texts(o.texts), torch
        self.model.max_seq_length = MAX_LENGTH

    def from_ids(self, _, ids):
        with self.torch.no_grad():
            ids = self.torch.from_numpy(ids).long()
            return self.model({"input_ids": ids, "token_type_ids": ids * 0, "attention_mask": ids * 0 + 1})["sentence_embedding"].numpy()

    def from_texts(self, _):
        return self.model.encode(self.texts, batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False)


class Model2Vec:
    """A table of word vectors, which has no ids to begin with."""

    figures, precisions = ("static",), ["f32"]

    def __init__(self, o):
        import importlib.metadata

        import model2vec
        self.version = importlib.metadata.version("model2vec")
        self.model, self.texts = model2vec.StaticModel.from_pretrained(o.static), read_texts(o.texts)

    def from_texts(self, _):
        return self.model.encode(self.texts, use_multiprocessing=False)


def make_static(o):
    import model2vec
    import numpy as np
    words = tensors(o.model)["embeddings.word_embeddings.weight"].astype(np.float64)
    words -= words.mean(0)
    _, directions = np.linalg.eigh(words.T @ words)
    rarity = 1 / (np.arange(len(words)) + 2)  # words are in the order of their frequency
    rarity /= rarity.sum()
    vectors = words @ directions[:, :-257:-1] * (1e-4 / (1e-4 + rarity))[:, None]
    from tokenizers import BertWordPieceTokenizer
    made = BertWordPieceTokenizer(o.vocab, lowercase=True)._tokenizer
    model2vec.StaticModel(vectors.astype(np.float32), made, config={"model_type": "model2vec"}, normalize=True).save_pretrained(o.static)


def check(o, peer):
    """Compares the peer's vectors with the references, and with ours in f32."""
    import numpy as np
    for precision in peer.precisions:
        if o.golden and hasattr(peer, "from_ids"):
            with open(o.golden, encoding="utf-8") as f:
                cases = json.load(f)["cases"]
            close(o.peer, precision, "the reference", [float(peer.from_ids(precision, np.array([one["ids"]], np.int32))[0] @
                                                             np.array(one["embedding"])) for one in cases])
        if o.answers:
            close(o.peer, precision, "ours", (np.load(o.answers) * peer.from_texts(precision)).sum(1).tolist())


def close(peer, precision, reference, cosines):
    least, mean = min(cosines), statistics.mean(cosines)
    print(f"{peer}, {len(cosines)} texts in {precision}: cosine with {reference} {mean:.7f}, at least {least:.7f}", file=sys.stderr)
    if (least if precision == "f32" else mean) < CLOSE[precision]:
        sys.exit(f"{peer} does not compute in {precision} what {reference} is")


def timed(o, job, least):
    times, end = [], time.perf_counter() + o.seconds
    while len(times) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        job()
        times.append((time.perf_counter() - begin) * 1e3)
    return [min(times), statistics.median(times)]


def serve(o, peer):
    import numpy as np
    rng = np.random.default_rng(1)
    for line in sys.stdin:
        figure, precision = line.split()
        if figure in SHAPES:
            ids = rng.integers(1996, 29000, SHAPES[figure]).astype(np.int32)
            peer.from_ids(precision, ids)
            told = timed(o, lambda: peer.from_ids(precision, ids), 3)
        else:  # the texts have all been embedded once
            told = timed(o, lambda: peer.from_texts(precision), 1)
        print(json.dumps(told), flush=True)


PEERS = {"onnxruntime": OnnxRuntime, "OpenVINO": OpenVino, "sentence-transformers": SentenceTransformers, "model2vec": Model2Vec}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=(*PEERS, "make-static"))
    parser.add_argument("model")
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1)
    for name in ("--vocab", "--texts", "--golden", "--answers", "--model-folder", "--static"):
        parser.add_argument(name, default="")
    o = parser.parse_args()
    if o.peer == "make-static":
        return make_static(o)
    try:
        peer = PEERS[o.peer](o)
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return 1
    check(o, peer)
    print(json.dumps({"version": peer.version, "precisions": peer.precisions, "figures": peer.figures,
                      "left_out": getattr(peer, "left_out", [])}), flush=True)
    return serve(o, peer)


if __name__ == "__main__":
    sys.exit(main())
