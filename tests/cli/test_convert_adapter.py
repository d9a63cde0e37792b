# SPDX-License-Identifier: Apache-2.0
"""convert of LoRA adapters from peft to GGUF and back: what the command asks for, and what it refuses. The results are compared with those of
llama.cpp's converter in tests/interop/test_gguf_adapters.py."""
import json

import pytest

from conftest import floats, safetensors, weighbridge

SIZES = {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2, "intermediate_size": 48, "vocab_size": 40,
         "max_position_embeddings": 64}
QWEN = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", **SIZES}
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", **SIZES}
MOE = {"architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, **SIZES}
DEEPSEEK = {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "n_routed_experts": 4, **SIZES}
Q, K = "model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.k_proj"


def write(folder, base, modules, more=None, **changes):
    """folder/base/config.json, and an adapter of zeros for modules: (rows, columns), or (rows, columns, rank)."""
    for part in ("base", "adapter"):
        (folder / part).mkdir(parents=True)
    (folder / "base/config.json").write_text(json.dumps(base))
    said = {"peft_type": "LORA", "r": 4, "lora_alpha": 6, "base_model_name_or_path": None, **changes}
    (folder / "adapter/adapter_config.json").write_text(json.dumps(said))
    shapes = dict(more or {})
    for module, (rows, columns, *rank) in modules.items():
        inner = rank[0] if rank else 4
        ends = (".lora_A.weight", ".lora_B.weight")
        sizes = ((inner, columns), (rows, inner))
        if module.endswith("embed_tokens"):
            ends, sizes = (".lora_embedding_A", ".lora_embedding_B"), ((inner, rows), (columns, inner))
        shapes |= {"base_model.model." + module + end: size for end, size in zip(ends, sizes)}
    tensors = {name: ("F32", list(shape), floats(*([0.0] * (shape[0] * (shape[1] if len(shape) > 1 else 1))))) for name, shape in shapes.items()}
    (folder / "adapter/adapter_model.safetensors").write_bytes(safetensors(tensors))
    return folder / "adapter"


def to_gguf(adapter, *flags, status=0):
    return weighbridge("convert", adapter, adapter.parent / "out.gguf", "--base", adapter.parent / "base", *flags, status=status)


@pytest.mark.parametrize("base, modules, changes, words", [
    (QWEN, {Q: (32, 32)}, {"use_dora": True}, "DoRA"),
    (QWEN, {Q: (32, 32), K: (32, 32)}, {"alpha_pattern": {"k_proj": 3}}, "alpha_pattern"),
    (QWEN, {Q: (32, 32), K: (32, 32, 2)}, {"use_rslora": True, "rank_pattern": {"k_proj": 2}}, "one alpha"),
    (QWEN, {Q: (32, 32)}, {"r": 8}, "inner rank 8"),
    (QWEN, {Q: (32, 32)}, {"lora_alpha": 0}, "no alpha"),
    (QWEN, {Q: (32, 32)}, {"use_qalora": True}, "use_qalora"),
    (QWEN, {Q: (32, 32)}, {"alora_invocation_tokens": [3, 4]}, "alora_invocation_tokens"),
    (QWEN, {Q: (32, 32)}, {"peft_type": "VERA"}, "VERA"),
    (QWEN, {"model.layers.0.self_attn.r_proj": (32, 32)}, {}, "self_attn.r_proj"),
    (QWEN, {"model.layers.2.self_attn.q_proj": (32, 32)}, {}, "2 layers"),
    (LLAMA, {Q: (24, 32)}, {}, "4 heads of 8"),
    (LLAMA, {"lm_head": (40, 32)}, {}, "tie_word_embeddings"),
    (LLAMA, {"model.embed_tokens": (40, 32)}, {}, "tie_word_embeddings"),
    (MOE, {"model.layers.0.mlp.experts.1.up_proj": (16, 32)}, {}, "no change of expert 0"),
    (MOE | {"num_experts": 2**31 - 1}, {"model.layers.0.mlp.experts.0.up_proj": (16, 32)}, {}, "no change of expert 1"),
    (DEEPSEEK, {"model.layers.0.self_attn.kv_a_proj_with_mqa": (20, 32)}, {}, "kv_a_proj_with_mqa"),
    (QWEN | {"architectures": ["NewForCausalLM"]}, {Q: (32, 32)}, {}, "NewForCausalLM"),
])
def test_what_a_gguf_adapter_cannot_say_is_refused_by_name(tmp_path, base, modules, changes, words):
    adapter = write(tmp_path / "in", base, modules, **changes)
    assert words in to_gguf(adapter, status=2).stderr
    assert not (tmp_path / "in/out.gguf").exists()


def test_whole_tensors_are_refused_and_those_of_the_base_need_consent(tmp_path):
    adapter = write(tmp_path / "norm", QWEN, {Q: (32, 32)}, {"base_model.model.model.norm.weight": (32,)})
    assert "modules_to_save" in to_gguf(adapter, status=2).stderr
    adapter = write(tmp_path / "bias", QWEN, {Q: (32, 32)}, {f"base_model.model.{Q}.base_layer.bias": (32,)}, bias="lora_only")
    assert "or bias" in to_gguf(adapter, "--allow", "unsupported", status=2).stderr
    adapter = write(tmp_path / "base", QWEN, {Q: (32, 32)}, {"base_model.model.model.embed_tokens.base_layer.weight": (40, 32)})
    assert "--allow unsupported" in to_gguf(adapter, status=3).stderr
    to_gguf(adapter, "--allow", "unsupported")


def test_the_base_is_asked_for_where_names_depend_on_it(tmp_path):
    adapter, out, back = write(tmp_path / "in", LLAMA, {Q: (32, 32)}), tmp_path / "in/out.gguf", f"{tmp_path}/back/"
    assert "--base" in weighbridge("convert", adapter, out, status=2).stderr
    weighbridge("convert", adapter, out, "--base", adapter.parent / "base/config.json")
    assert "--base" in weighbridge("convert", out, back, status=2).stderr
    assert "config.json" in weighbridge("convert", out, back, "--base", adapter, status=2).stderr
    other = write(tmp_path / "other", QWEN, {Q: (32, 32)})
    assert "qwen2" in weighbridge("convert", out, back, "--base", other.parent / "base", status=2).stderr
    weighbridge("convert", out, back, "--base", adapter.parent / "base")
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == ["adapter_config.json", "adapter_model.safetensors"]
    to_gguf(other)
    weighbridge("convert", other.parent / "out.gguf", f"{tmp_path}/other-back/")


def test_a_base_is_for_an_adapter(tmp_path, sample):
    adapter = write(tmp_path / "in", LLAMA, {Q: (32, 32)})
    assert "adapter" in weighbridge("convert", sample, tmp_path / "out.gguf", "--base", adapter.parent / "base", status=2).stderr


def test_factors_keep_their_names_if_asked_for(tmp_path):
    adapter = write(tmp_path / "in", LLAMA, {Q: (32, 32)})
    weighbridge("convert", adapter, tmp_path / "out.gguf", "--naming", "source")
    assert Q + ".lora_A.weight" in weighbridge("inspect", tmp_path / "out.gguf").stdout


def test_a_statement_names_the_base(tmp_path):
    adapter = write(tmp_path / "in", LLAMA, {Q: (32, 32)})
    to_gguf(adapter, "--statement", tmp_path / "statement.json")
    said = json.loads((tmp_path / "statement.json").read_text())
    assert "base" in json.dumps(said["predicate"])
