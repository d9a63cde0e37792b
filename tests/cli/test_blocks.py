# SPDX-License-Identifier: Apache-2.0
"""Quantized layers that become blocks of GGUF: what a person reads. tests/interop/test_quantized_gguf.py has the numbers of the package gguf."""
import json
import struct

import pytest

from conftest import safetensors, weighbridge

F4 = [0, .5, 1, 1.5, 2, 3, 4, 6]


def mxfp4(exponents):
    """Each row has all codes twice."""
    return {"x.weight_packed": ("U8", [len(exponents), 16], bytes.fromhex("1032547698badcfe" * 2) * len(exponents)),
            "x.weight_scale": ("U8", [len(exponents), 1], bytes(exponents)), "x.bias": ("F32", [1], struct.pack("<f", 1))}


def made(tmp_path, tensors):
    path = tmp_path / "in.safetensors"
    path.write_bytes(safetensors(tensors))
    return path, tmp_path / "out.gguf"


def values(path, name):
    return struct.unpack(f"<{len(data) // 4}f", data) if (data := weighbridge("extract", path, name, "--dense", "--raw", "-o", "-", text=False).stdout) else ()


def test_codes_become_blocks_and_the_plan_says_so(tmp_path):
    path, out = made(tmp_path, mxfp4([127, 130]))
    said = weighbridge("convert", path, out).stdout
    assert 'change layout: tensors["x.weight_packed"]: MXFP4 -> mxfp4 with the same codes and scales; code 8 is -0 there and +0 in GGUF\n' in said
    listed = {each["name"]: each for each in json.loads(weighbridge("inspect", "--json", out).stdout)["files"][0]["tensors"]}
    assert listed["x.weight"]["dtype"] == "mxfp4" and sorted(listed) == ["x.bias", "x.weight"]
    row = [*F4, *(-each for each in F4)] * 2
    assert list(values(out, "x.weight")) == row + [8 * each for each in row]
    weighbridge("verify", out)


def test_blocks_keep_their_codes_under_llama_cpps_names(tmp_path):
    """Rows of queries and keys change places; blocks are whole rows."""
    tensors = {}
    def linear(name, rows, columns):
        codes = bytes((7 * i + rows) % 251 for i in range(rows * columns))
        tensors[f"{name}.weight"] = ("I8", [rows, columns], codes)
        tensors[f"{name}.weight_scale"] = ("F32", [rows, 1], struct.pack(f"<{rows}f", *(1 + i % 8 for i in range(rows))))
    for name in "q_proj", "k_proj", "v_proj", "o_proj":
        linear(f"model.layers.0.self_attn.{name}", 32, 32)
    for name, shape in {"gate_proj": (64, 32), "up_proj": (64, 32), "down_proj": (32, 64)}.items():
        linear(f"model.layers.0.mlp.{name}", *shape)
    for name in "model.layers.0.input_layernorm", "model.layers.0.post_attention_layernorm", "model.norm":
        tensors[f"{name}.weight"] = ("F32", [32], bytes(128))
    for name in "model.embed_tokens", "lm_head":
        tensors[f"{name}.weight"] = ("F32", [4, 32], bytes(512))
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 64, "max_position_embeddings": 16, "vocab_size": 4, "rms_norm_eps": 1e-5, "hidden_act": "silu"}))
    numbers, blocks = tmp_path / "numbers.gguf", tmp_path / "blocks.gguf"
    weighbridge("convert", folder, numbers, "--naming", "llama", "--dequantize", "f32")
    weighbridge("convert", folder, blocks, "--naming", "llama")
    types = {each["name"]: each["dtype"] for each in json.loads(weighbridge("inspect", "--json", blocks).stdout)["files"][0]["tensors"]}
    for name in "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down":
        assert types[f"blk.0.{name}.weight"] == "q8_0"
        assert values(blocks, f"blk.0.{name}.weight") == values(numbers, f"blk.0.{name}.weight"), name


@pytest.mark.parametrize("exponents,why", [([127, 255], "an exponent is 255, which is no number")])
def test_a_layer_that_no_block_holds_is_not_written(tmp_path, exponents, why):
    path, out = made(tmp_path, mxfp4(exponents))
    done = weighbridge("convert", path, out, status=3)
    assert f"left in 2 tensors: {why}; dequantizing makes it dense" in done.stdout and not out.exists()


def test_a_layer_of_other_groups_stays_codes(tmp_path):
    path, out = made(tmp_path, {"x.weight": ("I8", [2, 48], bytes(96)), "x.weight_scale": ("F32", [2, 1], struct.pack("<2f", 1, 2))})
    said = weighbridge("convert", path, out).stdout
    assert "int8 with scales -> left in 2 tensors: its rows of 48 elements do not divide into blocks of 32; dequantizing makes it dense" in said
