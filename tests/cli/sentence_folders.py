# SPDX-License-Identifier: Apache-2.0
"""Makes small folders as sentence-transformers saves them, with any of its settings, from a seed and without its packages. Norms,
biases and the epsilon are as random as the matrices, so that no setting can be left out without another vector.

    python3 tests/cli/sentence_folders.py

writes tests/cli/data/sentence_vectors.json: what sentence-transformers computes for the folders of SETTINGS below. It needs
torch and sentence-transformers. tests/interop/test_sentence_transformers.py compares many more folders."""
import json
import pathlib
import random
import struct
import sys

HIDDEN, FFN, HEADS, POSITIONS, LAYERS = 16, 24, 2, 24, 2
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "lorry", "bridge", "query", "passage", ":", "weigh", "##s", "##bridge",
         "is", "heavy", "too", ".", *"bcdefghijklmnopqrstuvwxyz"]
TEXTS = ["the lorry weighs too", "a bridge", "query: a heavy lorry is too heavy . " * 3, "passage"]
FIXTURE = pathlib.Path(__file__).with_name("data") / "sentence_vectors.json"

OLD, NEW = "sentence_transformers.models.", "sentence_transformers.sentence_transformer.modules."
NEW_PATHS = {"Transformer": "sentence_transformers.base.modules.transformer.", "Pooling": NEW + "pooling.",
             "Dense": "sentence_transformers.base.modules.dense.", "Normalize": "sentence_transformers.base.modules.normalize.",
             "LayerNorm": NEW + "layer_norm.", "WeightedLayerPooling": NEW + "weighted_layer_pooling.", "Dropout": NEW + "dropout."}
OLD_KEYS = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
            "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}

# Each is a folder of the fixture: the arguments of make().
SETTINGS = {
    "old mean": {"new": False}, "old cls, max and mean": {"new": False, "pooling": ["cls", "max", "mean"], "normalize": False},
    "new cls": {"pooling": "cls"}, "new list": {"pooling": ["mean", "cls"]},
    "mean_sqrt_len": {"pooling": "mean_sqrt_len_tokens", "normalize": False}, "weightedmean": {"pooling": "weightedmean"},
    "lasttoken": {"pooling": "lasttoken"}, "short": {"max_length": 6},
    "dense, tanh": {"modules": [("Dense", {"out": 8, "activation": "torch.nn.modules.activation.Tanh"})]},
    "dense, twice": {"modules": [("Dense", {"out": 20, "activation": "torch.nn.modules.activation.GELU", "bias": False}),
                                 ("Dense", {"out": 6, "activation": "torch.nn.modules.linear.Identity"})], "normalize": False},
    "dense, residual": {"modules": [("Dense", {"out": 5, "activation": "torch.nn.modules.activation.ReLU", "residual": True})]},
    "norms": {"modules": [("Normalize", {}), ("LayerNorm", {})], "normalize": False},
    "layers": {"layers_from": 1}, "layers of words": {"layers_from": 0, "pooling": "max"},
    "default prompt": {"prompts": {"query": "query: ", "document": "passage: "}, "default_prompt": "query"},
    "prompt apart": {"prompts": {"query": "query: "}, "default_prompt": "query", "include_prompt": False, "pooling": ["weightedmean", "cls"]},
    "truncated": {"truncate_dim": 7}, "old names": {"old_names": True}, "tanh gelu": {"act": "gelu_new", "eps": 1e-3},
}


def safetensors(tensors):
    head, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def make(folder, *, seed=1, new=True, pooling="mean", normalize=True, modules=(), layers_from=None, prompts=None, default_prompt=None,
         include_prompt=True, max_length=None, truncate_dim=None, old_names=False, act="gelu", eps=1e-12, config=None, files=None):
    """Writes the folder. `pooling`: a name of version 6, or several. `modules`: (class, settings) between the pooling and a last
    Normalize. `files`: more JSON files, or others in place of these."""
    rng = random.Random(seed)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)

    def some(*shape, scale=0.3, mean=0.0):
        count = 1
        for n in shape:
            count *= n
        return list(shape), [rng.gauss(mean, scale) for _ in range(count)]

    def dump(name, value):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(value, indent=1))

    tensors = {"embeddings.word_embeddings.weight": some(len(WORDS), HIDDEN), "embeddings.position_embeddings.weight": some(POSITIONS, HIDDEN),
               "embeddings.token_type_embeddings.weight": some(2, HIDDEN)}
    for layer in range(LAYERS):
        begin = f"encoder.layer.{layer}."
        for name, rows, columns in (("attention.self.query", HIDDEN, HIDDEN), ("attention.self.key", HIDDEN, HIDDEN),
                                    ("attention.self.value", HIDDEN, HIDDEN), ("attention.output.dense", HIDDEN, HIDDEN),
                                    ("intermediate.dense", FFN, HIDDEN), ("output.dense", HIDDEN, FFN)):
            tensors[begin + name + ".weight"], tensors[begin + name + ".bias"] = some(rows, columns), some(rows)
    for name in ("embeddings.LayerNorm", *(f"encoder.layer.{layer}.{part}.LayerNorm" for layer in range(LAYERS) for part in ("attention.output", "output"))):
        weight, bias = (".gamma", ".beta") if old_names else (".weight", ".bias")
        tensors[name + weight], tensors[name + bias] = some(HIDDEN, mean=1.0), some(HIDDEN)
    tensors["pooler.dense.weight"], tensors["pooler.dense.bias"] = some(HIDDEN, HIDDEN), some(HIDDEN)
    (folder / "model.safetensors").write_bytes(safetensors(tensors))

    dump("config.json", {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": LAYERS,
                         "num_attention_heads": HEADS, "intermediate_size": FFN, "vocab_size": len(WORDS), "max_position_embeddings": POSITIONS,
                         "type_vocab_size": 2, "hidden_act": act, "layer_norm_eps": eps, "pad_token_id": 0,
                         **({"output_hidden_states": True} if layers_from is not None else {}), **(config or {})})
    (folder / "vocab.txt").write_text("".join(word + "\n" for word in WORDS))
    dump("tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "model_max_length": max_length or POSITIONS,
                                   **{f"{role}_token": text for role, text in zip(("pad", "unk", "cls", "sep", "mask"), WORDS)}})
    dump("sentence_bert_config.json", {"transformer_task": "feature-extraction"} if new else
         {"max_seq_length": max_length or POSITIONS, "do_lower_case": False})

    modes = [pooling] if isinstance(pooling, str) else list(pooling)
    size = HIDDEN * len(modes)
    pool = {"embedding_dimension": HIDDEN, "pooling_mode": pooling, "include_prompt": include_prompt} if new else \
        {"word_embedding_dimension": HIDDEN, **{f"pooling_mode_{key}": mode in modes for mode, key in OLD_KEYS.items()},
         **({} if include_prompt else {"include_prompt": False})}
    listed = [("Transformer", None, None)]
    if layers_from is not None:
        listed.append(("WeightedLayerPooling", {"embedding_dimension" if new else "word_embedding_dimension": HIDDEN, "layer_start": layers_from,
                                                "num_hidden_layers": LAYERS}, {"layer_weights": some(LAYERS + 1 - layers_from, mean=1.0)}))
    listed.append(("Pooling", pool, None))
    for kind, settings in modules:
        if kind == "Dense":
            out, bias, residual = settings["out"], settings.get("bias", True), settings.get("residual", False)
            weights = {"linear.weight": some(out, size)}
            if bias:
                weights["linear.bias"] = some(out)
            if residual and out != size:
                weights["residual.weight"] = some(out, size)
            listed.append(("Dense", {"in_features": size, "out_features": out, "bias": bias, "activation_function": settings["activation"],
                                     **({"use_residual": True} if residual else {})}, weights))
            size = out
        elif kind == "LayerNorm":
            listed.append(("LayerNorm", {"dimension": size}, {"norm.weight": some(size, mean=1.0), "norm.bias": some(size)}))
        else:
            listed.append((kind, settings, None))
    if normalize:
        listed.append(("Normalize", {}, None))
    entries = []
    for index, (kind, settings, weights) in enumerate(listed):
        path = "" if kind == "Transformer" else f"{index}_{kind}"
        entries.append({"idx": index, "name": str(index), "path": path, "type": (NEW_PATHS[kind] if new else OLD) + kind})
        if path:
            dump(f"{path}/config.json", settings)
        if weights:
            (folder / path / "model.safetensors").write_bytes(safetensors(weights))
    dump("modules.json", entries)
    dump("config_sentence_transformers.json", {"__version__": {"sentence_transformers": "6.2.0" if new else "3.0.0"}, "prompts": prompts or {},
                                               "default_prompt_name": default_prompt, "similarity_fn_name": "cosine",
                                               **({"truncate_dim": truncate_dim} if truncate_dim else {})})
    for name, value in (files or {}).items():
        dump(name, value)
    return folder


def main():
    import tempfile
    import warnings

    import sentence_transformers
    warnings.simplefilter("ignore")
    out = {"sentence_transformers": sentence_transformers.__version__, "texts": TEXTS, "vectors": {}}
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, settings) in enumerate(SETTINGS.items()):
            model = sentence_transformers.SentenceTransformer(str(make(f"{scratch}/{number}", **settings)), device="cpu")
            out["vectors"][name] = {role: [[float(f"{x:.7g}") for x in row] for row in encode(TEXTS).tolist()]
                                    for role, encode in (("text", model.encode), ("query", model.encode_query), ("document", model.encode_document))}
    FIXTURE.parent.mkdir(exist_ok=True)
    FIXTURE.write_text(json.dumps(out, separators=(",", ":")).replace("]],", "]],\n") + "\n")


if __name__ == "__main__":
    sys.exit(main())
