# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters of peft as GGUF, beside llama.cpp's convert_lora_to_gguf.py: metadata, shapes and the SHA-256 of every factor of 26 small
adapters. And back: the same tensors under the same names, with settings by which they are scaled alike."""
import json
import math
import struct
import subprocess

import pytest

from gguf_adapters import ALL, CASES, EXPECTED, HIDDEN, config, layer, result, save, write
from interop_tools import COMMAND, np

pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
OFFICIAL = json.loads(EXPECTED.read_text())


def convert(*arguments, status=0):
    done = subprocess.run([COMMAND, "convert", *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == status, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout if status == 0 else done.stderr


def stored(path):
    """name -> shape and bytes, of a file of safetensors."""
    raw = path.read_bytes()
    size, = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (one["dtype"], one["shape"], raw[8 + size:][slice(*one["data_offsets"])]) for name, one in header.items()}


@pytest.mark.parametrize("name", CASES)
def test_an_adapter_becomes_what_the_converter_makes(tmp_path, name):
    folder = write(tmp_path / name, *CASES[name])
    convert(folder / "adapter", tmp_path / "out.gguf", "--base", folder / "base")
    found = result(tmp_path / "out.gguf")
    assert found["tensors"] == OFFICIAL[name]["tensors"]
    assert found["metadata"] == OFFICIAL[name]["metadata"]


@pytest.mark.parametrize("name", CASES)
def test_a_gguf_adapter_becomes_one_of_peft_again(tmp_path, name):
    folder = write(tmp_path / name, *CASES[name])
    convert(folder / "adapter", tmp_path / "out.gguf", "--base", folder / "base")
    convert(tmp_path / "out.gguf", f"{tmp_path}/back/", "--base", folder / "base")
    wanted = stored(folder / "adapter/adapter_model.safetensors")
    if CASES[name][2].get("dtype") == "bf16":  # f32 in the GGUF
        wanted = {key: ("F32", shape, (np.frombuffer(raw, "<u2").astype("<u4") << 16).tobytes()) for key, (_, shape, raw) in wanted.items()}
    assert stored(tmp_path / "back/adapter_model.safetensors") == wanted
    said, was = (json.loads((path / "adapter_config.json").read_text()) for path in (tmp_path / "back", folder / "adapter"))
    ranks = CASES[name][2].get("rank_pattern", {})
    modules = list(CASES[name][1])
    assert sorted(said["target_modules"]) == sorted(modules) and said["base_model_name_or_path"] == "org/Base-7B"
    for module in modules:
        assert said["rank_pattern"].get(module, said["r"]) == ranks.get(module.rsplit(".", 1)[-1], was["r"])
        assert said["alpha_pattern"].get(module, said["lora_alpha"]) == was["lora_alpha"]
    assert said["fan_in_fan_out"] is False and not (tmp_path / "back/config.json").exists()


GPT2 = (config("GPT2LMHeadModel", "gpt2", list(config("", "")), n_embd=HIDDEN, n_head=4, n_layer=2, n_positions=64, vocab_size=40),
        layer(more={"attn.c_attn": (96, HIDDEN), "mlp.c_proj": (HIDDEN, 128)}, of="transformer.h.{}"), {"fan_in_fan_out": True})


def test_factors_of_transposed_matrices_are_those_of_the_product(tmp_path):
    """The converter of llama.cpp turns them, and llama.cpp then refuses the adapter, or takes a square one for another."""
    folder = write(tmp_path / "gpt2", *GPT2)
    convert(folder / "adapter", tmp_path / "out.gguf", "--base", folder / "base")
    found = result(tmp_path / "out.gguf")["tensors"]
    assert found["blk.1.attn_qkv.weight.lora_a"][0] == [HIDDEN, 4] and found["blk.1.attn_qkv.weight.lora_b"][0] == [4, 96]
    convert(tmp_path / "out.gguf", f"{tmp_path}/back/")  # without a base: nothing depends on it
    assert stored(tmp_path / "back/adapter_model.safetensors") == stored(folder / "adapter/adapter_model.safetensors")
    assert json.loads((tmp_path / "back/adapter_config.json").read_text())["fan_in_fan_out"] is True


def test_rslora_becomes_an_alpha(tmp_path):
    folder = write(tmp_path / "in", CASES["qwen2"][0], layer(["q_proj"]), {"use_rslora": True, "lora_alpha": 6})
    convert(folder / "adapter", tmp_path / "out.gguf", "--base", folder / "base")
    assert result(tmp_path / "out.gguf")["metadata"]["adapter.lora.alpha"] == ["FLOAT32", 6 * math.sqrt(4)]


@pytest.mark.parametrize("alpha", [1e-7, 0.00012345678, 0.3, 1e20])
def test_an_alpha_keeps_its_value_on_the_way_back(tmp_path, alpha):
    """It had six decimals: 1e-7 became 0."""
    folder = write(tmp_path / "in", CASES["qwen2"][0], layer(["q_proj"]), {"lora_alpha": alpha})
    convert(folder / "adapter", tmp_path / "out.gguf", "--base", folder / "base")
    convert(tmp_path / "out.gguf", f"{tmp_path}/back/")
    text = (tmp_path / "back/adapter_config.json").read_text()
    assert np.float32(json.loads(text)["lora_alpha"]) == np.float32(alpha) and ("0.3" in text) == (alpha == 0.3)


def gguf_adapter(path, architecture="llama", kind="lora", tokens=(), **tensors):
    import gguf
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_string("general.type", "adapter")
    writer.add_float32("adapter.lora.alpha", 4.0)
    if kind:
        writer.add_string("adapter.type", kind)
    if tokens:
        writer.add_array("adapter.alora.invocation_tokens", list(tokens))
    for name, shape in (tensors or {"attn_output": (8, 8, 2)}).items():
        *outer, rows, columns, rank = shape
        for side, sizes in (("a", (rank, columns)), ("b", (rows, rank))):
            writer.add_tensor(f"blk.0.{name}.weight.lora_{side}", np.ones((*outer, *sizes), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("changes, words", [
    ({"architecture": "qwen2"}, 'for the architecture "qwen2", and the model is "llama"'),
    ({"kind": "frobnicate"}, '"adapter.type" is "frobnicate"'),
    ({"kind": None}, '"adapter.type" is absent'),
    ({"tokens": [1, 2, 3]}, "aLoRA"),
])
def test_what_a_gguf_adapter_says_of_itself_counts_when_it_is_merged(tmp_path, changes, words):
    """llama.cpp refuses each of them but the aLoRA, which it computes only from certain tokens on."""
    import gguf
    writer = gguf.GGUFWriter(tmp_path / "base.gguf", "llama")
    writer.add_tensor("blk.0.attn_output.weight", np.zeros((8, 8), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    convert(tmp_path / "base.gguf", tmp_path / "out.gguf", "--merge-lora", gguf_adapter(tmp_path / "good.gguf"))
    said = convert(tmp_path / "base.gguf", tmp_path / "no.gguf", "--merge-lora", gguf_adapter(tmp_path / "a.gguf", **changes), status=2)
    assert words in said and not (tmp_path / "no.gguf").exists()


def test_many_experts_of_a_few_elements_are_refused(tmp_path):
    """They took a gigabyte for a file of 662 KB."""
    adapter = gguf_adapter(tmp_path / "a.gguf", "qwen3moe", ffn_down_exps=(4096, 1, 1, 1))
    assert "at least 64 elements" in convert(adapter, f"{tmp_path}/back/", status=2)


def test_merging_the_gguf_gives_what_merging_the_folder_gives(tmp_path):
    """The permuted factors fit the permuted base."""
    base, modules, changes = CASES["mistral"]
    folder = write(tmp_path / "in", base, modules, changes)
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text(json.dumps(base | {"tie_word_embeddings": True}))
    shapes = {f"{name}.weight": shape for name, shape in ALL.items()} | {"model.embed_tokens.weight": (40, HIDDEN), "model.norm.weight": (HIDDEN,)}
    shapes |= {f"model.layers.{i}.{norm}.weight": (HIDDEN,) for i in range(2) for norm in ("input_layernorm", "post_attention_layernorm")}
    save(tmp_path / "model/model.safetensors", {name: np.random.default_rng(i).standard_normal(shape).astype(np.float32)
                                                for i, (name, shape) in enumerate(shapes.items())}, "F32")
    convert(folder / "adapter", tmp_path / "a.gguf", "--base", tmp_path / "model")
    allowed = ("--allow", "attribute")
    convert(tmp_path / "model", tmp_path / "merged.gguf", "--merge-lora", folder / "adapter", *allowed)
    convert(tmp_path / "model", tmp_path / "model.gguf", *allowed)
    convert(tmp_path / "model.gguf", tmp_path / "again.gguf", "--merge-lora", tmp_path / "a.gguf", *allowed)
    assert result(tmp_path / "merged.gguf")["tensors"] == result(tmp_path / "again.gguf")["tensors"]
