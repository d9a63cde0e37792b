# SPDX-License-Identifier: Apache-2.0
# Large models whose payload is a hole in the file: zeros that take no space on the disk.
import json
import struct
import zlib

from jobs import bert, embd
from robustness import MIB, safetensors_header


def write_sparse_embd(path, payload):
    """An encoder whose word embeddings are a hole of about that many bytes, with its checksums."""
    width, words = 64, "embeddings.word_embeddings.weight"
    vocab = payload // (4 * width)
    metadata, _, _, tensors = bert(hidden=width, vocab=vocab, missing=(words,))
    tensors.append(tensors.pop(0))  # the hole at the end
    data = bytearray(embd.build(metadata, None, None, tensors, flags=embd.TENSORS_ALIGNED | embd.CHECKSUM_ENABLED))
    fields = list(embd.HEADER.unpack_from(data))
    place = {name: i for i, name in enumerate(embd.HEADER_FIELDS)}
    start, hole = fields[place["tensor_data_offset"]], 4 * width * vocab
    fields[place["tensor_data_size"]] += hole
    fields[place["total_file_size"]] += hole
    embd.HEADER.pack_into(data, 0, *fields)
    struct.pack_into("<I", data, 56, zlib.crc32(data[:56]))
    sums = [zlib.crc32(data[start:-16]), zlib.crc32(data[:-16])]
    zeros = bytes(16 * MIB)
    for done in range(0, hole, len(zeros)):
        sums = [zlib.crc32(zeros[:hole - done], each) for each in sums]
    with open(path, "wb") as file:
        file.write(data[:-16])
        file.seek(hole, 1)
        file.write(embd.FOOTER.pack(*sums, b"DBME", 0))
    return path


def write_sparse_checkpoint(path, payload):
    """A llama2.c checkpoint of about that many bytes, nearly all of them embeddings, and its tokenizer file."""
    dim, positions = 1024, 4
    layer = 2 * dim + 4 * dim * dim + 3 * dim
    vocab = payload // (4 * dim)
    values = vocab * dim + layer + dim + positions * (dim // 2)
    with open(path, "wb") as file:
        file.write(struct.pack("<7i", dim, 1, 1, 2, 2, vocab, positions))
        file.truncate(28 + 4 * values)
    tokens = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % i for i in range(256))]
    tokens += [b"t%d" % i for i in range(len(tokens), vocab)]
    path.with_suffix(".tokenizer").write_bytes(
        struct.pack("<i", 16) + b"".join(struct.pack("<fi", -i, len(token)) + token for i, token in enumerate(tokens)))
    return path


def write_sparse_llama(folder, payload):
    """A folder of transformers with a Llama of about that many bytes, bf16, as wide as one of 8 billion parameters."""
    hidden, heads, groups, ffn, vocab = 4096, 32, 8, 14336, 32000
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": groups,
              "intermediate_size": ffn, "vocab_size": vocab, "rms_norm_eps": 1e-5, "max_position_embeddings": 4096, "tie_word_embeddings": True,
              "hidden_act": "silu", "rope_theta": 10000.0, "torch_dtype": "bfloat16"}
    shapes = {"model.embed_tokens.weight": [vocab, hidden], "model.norm.weight": [hidden]}
    size = lambda shape: 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    keys = groups * hidden // heads
    while sum(map(size, shapes.values())) < payload:
        at = f"model.layers.{len(shapes) // 9}."
        shapes |= {at + name + ".weight": shape for name, shape in {
            "input_layernorm": [hidden], "post_attention_layernorm": [hidden], "self_attn.q_proj": [hidden, hidden], "self_attn.k_proj": [keys, hidden],
            "self_attn.v_proj": [keys, hidden], "self_attn.o_proj": [hidden, hidden], "mlp.gate_proj": [ffn, hidden], "mlp.up_proj": [ffn, hidden],
            "mlp.down_proj": [hidden, ffn]}.items()}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": len(shapes) // 9}))
    head = safetensors_header({name: ("BF16", shape, size(shape)) for name, shape in shapes.items()})
    with open(folder / "model.safetensors", "wb") as file:
        file.write(head)
        file.truncate(len(head) + sum(map(size, shapes.values())))
    return folder
