# SPDX-License-Identifier: Apache-2.0
"""llama2.c's legacy checkpoint and its tokenizer file: an independent writer and reader, made only from the layout that run.c
publishes. Owns both file layouts, and the model in Hugging Face's and in an .slm's layout (readings M8, M9).
`read` and `read_tokenizer` raise ValueError with one sentence.
"""
import struct

import numpy as np

FIELDS = ("dim", "hidden_dim", "n_layers", "n_heads", "n_kv_heads", "vocab_size", "seq_len")


def shapes(config):
    """(name, shape) of each block of the file, in its order; blocks of a kind hold all layers."""
    dim, hidden, layers = config["dim"], config["hidden_dim"], config["n_layers"]
    head = dim // config["n_heads"]
    kv, vocab, context = head * config["n_kv_heads"], abs(config["vocab_size"]), config["seq_len"]
    out = [("tok_embeddings", (vocab, dim)), ("attention_norm", (layers, dim)), ("wq", (layers, dim, dim)),
           ("wk", (layers, kv, dim)), ("wv", (layers, kv, dim)), ("wo", (layers, dim, dim)), ("ffn_norm", (layers, dim)),
           ("w1", (layers, hidden, dim)), ("w2", (layers, dim, hidden)), ("w3", (layers, hidden, dim)), ("norm", (dim,)),
           ("freq_cis_real", (context, head // 2)), ("freq_cis_imag", (context, head // 2))]
    return out + ([("output", (vocab, dim))] if config["vocab_size"] < 0 else [])


LAYERED = {"attention_norm", "wq", "wk", "wv", "wo", "ffn_norm", "w1", "w2", "w3"}


def read(data):
    """config and {block: array}."""
    if len(data) < 28:
        raise ValueError("A checkpoint has at least its seven integers.")
    config = dict(zip(FIELDS, struct.unpack_from("<7i", data)))
    if data[:4] == b"24ka":
        raise ValueError("A checkpoint of version 1 or later is no legacy one.")
    if min(config["dim"], config["hidden_dim"], config["n_layers"], config["n_heads"], config["n_kv_heads"],
           config["seq_len"], abs(config["vocab_size"])) < 1:
        raise ValueError("A size is not positive.")
    if config["dim"] % config["n_heads"] or config["dim"] // config["n_heads"] % 2:
        raise ValueError("The heads do not share dim in even sizes.")
    if config["n_heads"] % config["n_kv_heads"]:
        raise ValueError("n_kv_heads does not divide n_heads.")
    count = sum(int(np.prod([int(d) for d in shape], dtype=object)) for _, shape in shapes(config))
    if 28 + 4 * count != len(data):
        raise ValueError("The file is not as long as its integers ask for.")
    blocks, position = {}, 28
    for name, shape in shapes(config):
        size = int(np.prod(shape))
        blocks[name] = np.frombuffer(data, "<f4", size, position).reshape(shape)
        position += 4 * size
    if not all(np.isfinite(block).all() for block in blocks.values()):
        raise ValueError("A value is not finite.")
    return config, blocks


def rope_tables(config, theta=10000.0):
    head = config["dim"] // config["n_heads"]
    angles = np.outer(np.arange(config["seq_len"]), theta ** (-np.arange(0, head, 2) / head))
    return {"freq_cis_real": np.cos(angles).astype("<f4"), "freq_cis_imag": np.sin(angles).astype("<f4")}


def random_blocks(config, seed=1):
    generator = np.random.Generator(np.random.PCG64(seed))
    blocks = {name: generator.standard_normal(shape).astype("<f4") for name, shape in shapes(config)}
    return blocks | rope_tables(config)


def write(config, blocks):
    return struct.pack("<7i", *(config[field] for field in FIELDS)) + b"".join(
        np.ascontiguousarray(blocks[name], "<f4").tobytes() for name, _ in shapes(config))


def read_tokenizer(data, vocab_size):
    """max_token_length and a list of (score, bytes)."""
    longest, position, pieces = struct.unpack_from("<i", data)[0], 4, []
    for _ in range(vocab_size):
        if position + 8 > len(data):
            raise ValueError("The tokenizer file ends too early.")
        score, length = struct.unpack_from("<fi", data, position)
        position += 8
        if not np.isfinite(score) or not 0 < length <= min(longest, 256) or position + length > len(data):
            raise ValueError("A token's score or length is wrong.")
        pieces.append((score, data[position:position + length]))
        position += length
    if position != len(data):
        raise ValueError("The tokenizer file goes on after its last token.")
    return longest, pieces


def write_tokenizer(pieces):
    return struct.pack("<i", max(len(raw) for _, raw in pieces)) + b"".join(
        struct.pack("<fi", score, len(raw)) + raw for score, raw in pieces)


def byte_pieces():
    """The first 259 tokens that run.c's encoder goes by."""
    return [(0.0, raw) for raw in (b"<unk>", b"\n<s>\n", b"\n</s>\n")] + [(0.0, b"<0x%02X>" % b) for b in range(256)]


def merges(pieces):
    """M14, as a set of (left, right, output): every split of a piece into two pieces that are no bytes."""
    ids = {raw: i for i, (_, raw) in enumerate(pieces) if not 3 <= i < 259}
    return {(ids[raw[:cut]], ids[raw[cut:]], i) for i, (_, raw) in enumerate(pieces) if ids.get(raw) == i
            for cut in range(1, len(raw)) if raw[:cut] in ids and raw[cut:] in ids}


def slm_tensors(config, blocks):
    """name -> array as an .slm has them: key and value heads repeated over their groups (M8)."""
    head, group = config["dim"] // config["n_heads"], config["n_heads"] // config["n_kv_heads"]
    out = {}
    for name, block in blocks.items():
        if name.startswith("freq_cis"):
            continue
        if name in LAYERED:
            for layer, array in enumerate(block):
                if name in ("wk", "wv"):
                    array = np.repeat(array.reshape(-1, head, array.shape[1]), group, axis=0).reshape(-1, array.shape[1])
                out[f"layers.{layer}.{name}.weight"] = array
        else:
            out[name + ".weight"] = block
    return out


HUGGING_FACE = {"tok_embeddings": "model.embed_tokens.weight", "norm": "model.norm.weight", "output": "lm_head.weight",
                "attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "wq": "self_attn.q_proj",
                "wk": "self_attn.k_proj", "wv": "self_attn.v_proj", "wo": "self_attn.o_proj", "w1": "mlp.gate_proj",
                "w2": "mlp.down_proj", "w3": "mlp.up_proj"}


def half_split(array, head):
    """Rows of pairs (2i, 2i + 1) in each head as transformers has them: the first of all pairs, then the second (M9)."""
    rows, columns = array.shape
    return array.reshape(rows // head, head // 2, 2, columns).transpose(0, 2, 1, 3).reshape(rows, columns)


def hugging_face_tensors(config, blocks):
    head, out = config["dim"] // config["n_heads"], {}
    for name, block in blocks.items():
        if name in LAYERED:
            for layer, array in enumerate(block):
                array = half_split(array, head) if name in ("wq", "wk") else array
                out[f"model.layers.{layer}.{HUGGING_FACE[name]}.weight"] = np.ascontiguousarray(array)
        elif name in HUGGING_FACE:
            out[HUGGING_FACE[name]] = block
    return out


def hugging_face_config(config):
    return {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "bos_token_id": 1, "eos_token_id": 2,
            "hidden_act": "silu", "hidden_size": config["dim"], "initializer_range": 0.02,
            "intermediate_size": config["hidden_dim"], "max_position_embeddings": config["seq_len"], "model_type": "llama",
            "num_attention_heads": config["n_heads"], "num_hidden_layers": config["n_layers"],
            "num_key_value_heads": config["n_kv_heads"], "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": None,
            "rope_theta": 10000.0, "tie_word_embeddings": config["vocab_size"] > 0, "torch_dtype": "float32",
            "transformers_version": "4.35.0", "use_cache": True, "vocab_size": abs(config["vocab_size"])}
