# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters as peft writes them for small models of many architectures, of seeded numbers: a config.json of the base and the factors
of each module. test_gguf_adapters.py compares their GGUF with what llama.cpp's converter made of the same files, which
data/gguf_adapters.json keeps. `python gguf_adapters.py FOLDER` writes the adapters; then, with FOLDER/NAME/adapter for each NAME,
`convert_lora_to_gguf.py --base NAME/base --outfile NAME/official.gguf NAME/adapter` of llama.cpp 0c1e57098 and
`python gguf_adapters.py FOLDER --collect` make that file anew."""
import hashlib
import json
import pathlib
import struct
import sys

import numpy as np

EXPECTED = pathlib.Path(__file__).parent / "data/gguf_adapters.json"
HIDDEN, HEADS, KV, FFN, WORDS, RANK = 32, 4, 2, 48, 40, 4
SIZES = {"hidden_size": HIDDEN, "num_attention_heads": HEADS, "num_key_value_heads": KV, "num_hidden_layers": 2, "intermediate_size": FFN,
         "vocab_size": WORDS, "max_position_embeddings": 64}
ATTENTION = {"q_proj": (HIDDEN, HIDDEN), "k_proj": (16, HIDDEN), "v_proj": (16, HIDDEN), "o_proj": (HIDDEN, HIDDEN)}
MLP = {"gate_proj": (FFN, HIDDEN), "up_proj": (FFN, HIDDEN), "down_proj": (HIDDEN, FFN)}


def layer(attention=(), mlp=(), more=None, of="model.layers.{}", inside=("self_attn", "mlp")):
    """Module -> (rows, columns), in two layers."""
    found = {f"{of}.{inside[0]}.{name}": ATTENTION[name] for name in attention} | {f"{of}.{inside[1]}.{name}": MLP[name] for name in mlp}
    found |= {f"{of}.{name}": shape for name, shape in (more or {}).items()}
    return {name.format(i): shape for i in range(2) for name, shape in found.items()}


def experts(pattern, count, names):
    return {pattern.format(e, name): shape for e in range(count) for name, shape in names.items()}


def config(kind, model_type, drop=(), **more):
    return {"architectures": [kind], "model_type": model_type} | {key: value for key, value in SIZES.items() if key not in drop} | more


ALL = layer(ATTENTION, MLP)
# name -> (config.json of the base, modules, changes of adapter_config.json)
CASES = {
    "llama": (config("LlamaForCausalLM", "llama", rms_norm_eps=1e-5, tie_word_embeddings=False), ALL | {"lm_head": (WORDS, HIDDEN)}, {}),
    "llama-words": (config("LlamaForCausalLM", "llama", rms_norm_eps=1e-5, tie_word_embeddings=False),
                    {"model.embed_tokens": (WORDS, HIDDEN)} | layer(["q_proj"]), {"lora_alpha": 8}),
    "llama-ranks": (config("LlamaForCausalLM", "llama", rms_norm_eps=1e-5), layer(["q_proj", "v_proj"]), {"rank_pattern": {"v_proj": 2}}),
    "llama-bf16": (config("LlamaForCausalLM", "llama", rms_norm_eps=1e-5), layer(["k_proj"], ["up_proj"]), {"dtype": "bf16"}),
    "mistral": (config("MistralForCausalLM", "mistral", rms_norm_eps=1e-5), ALL, {}),
    "mixtral": (config("MixtralForCausalLM", "mixtral", rms_norm_eps=1e-5, num_local_experts=4, num_experts_per_tok=2),
                layer(["q_proj"], more={"block_sparse_moe.gate": (4, HIDDEN)} | experts(
                    "block_sparse_moe.experts.{}.{}", 4, {"w1": (FFN, HIDDEN), "w2": (HIDDEN, FFN), "w3": (FFN, HIDDEN)})), {}),
    "qwen2": (config("Qwen2ForCausalLM", "qwen2", rms_norm_eps=1e-6), ALL, {}),
    "qwen2moe": (config("Qwen2MoeForCausalLM", "qwen2_moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                        shared_expert_intermediate_size=16),
                 layer(["k_proj"], more={"mlp.shared_expert.up_proj": (16, HIDDEN), "mlp.shared_expert_gate": (1, HIDDEN)} | experts(
                     "mlp.experts.{}.{}", 4, {"gate_proj": (16, HIDDEN), "up_proj": (16, HIDDEN), "down_proj": (HIDDEN, 16)})), {}),
    "qwen3": (config("Qwen3ForCausalLM", "qwen3", head_dim=8), ALL, {}),
    "qwen3moe": (config("Qwen3MoeForCausalLM", "qwen3_moe", head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16),
                 layer(["q_proj"], more=experts("mlp.experts.{}.{}", 4, {"gate_proj": (16, HIDDEN), "up_proj": (16, HIDDEN),
                                                                         "down_proj": (HIDDEN, 16)})), {}),
    "gemma": (config("GemmaForCausalLM", "gemma", head_dim=8), ALL, {}),
    "gemma2": (config("Gemma2ForCausalLM", "gemma2", head_dim=8, query_pre_attn_scalar=8), ALL, {}),
    "gemma3": (config("Gemma3ForCausalLM", "gemma3_text", head_dim=8, query_pre_attn_scalar=8, sliding_window=16), ALL, {}),
    "phi2": (config("PhiForCausalLM", "phi", layer_norm_eps=1e-5, partial_rotary_factor=0.5),
             layer(["q_proj"], more={"self_attn.dense": (HIDDEN, HIDDEN), "mlp.fc1": (FFN, HIDDEN), "mlp.fc2": (HIDDEN, FFN)}), {}),
    "phi3": (config("Phi3ForCausalLM", "phi3", original_max_position_embeddings=64, pad_token_id=0),
             layer(["o_proj"], ["down_proj"], {"self_attn.qkv_proj": (64, HIDDEN), "mlp.gate_up_proj": (2 * FFN, HIDDEN)}), {}),
    "smollm3": (config("SmolLM3ForCausalLM", "smollm3", pad_token_id=0), ALL, {}),
    "granite": (config("GraniteForCausalLM", "granite"), ALL, {}),
    "olmo2": (config("Olmo2ForCausalLM", "olmo2"), ALL, {}),
    "olmoe": (config("OlmoeForCausalLM", "olmoe", ["num_key_value_heads"], num_key_value_heads=HEADS, num_experts=4, num_experts_per_tok=2),
              layer(["q_proj"], more=experts("mlp.experts.{}.{}", 4, {"gate_proj": (FFN, HIDDEN), "up_proj": (FFN, HIDDEN),
                                                                      "down_proj": (HIDDEN, FFN)})), {}),
    "stablelm": (config("StableLmForCausalLM", "stablelm", use_parallel_residual=False), ALL, {}),
    "starcoder2": (config("Starcoder2ForCausalLM", "starcoder2", sliding_window=None),
                   layer(["q_proj"], more={"mlp.c_fc": (FFN, HIDDEN), "mlp.c_proj": (HIDDEN, FFN)}), {}),
    "cohere": (config("CohereForCausalLM", "cohere", logit_scale=0.0625), ALL, {}),
    "gpt-oss": (config("GptOssForCausalLM", "gpt_oss", head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=16),
                layer(ATTENTION), {}),
    "deepseek3": (config("DeepseekV3ForCausalLM", "deepseek_v3", n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=2,
                         topk_group=1, first_k_dense_replace=2, moe_intermediate_size=16, kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=4,
                         qk_nope_head_dim=4, v_head_dim=8), layer(["o_proj"], MLP), {}),
    "modern-bert": (config("ModernBertModel", "modernbert", global_attn_every_n_layers=3),
                    layer(more={"attn.Wqkv": (3 * HIDDEN, HIDDEN), "attn.Wo": (HIDDEN, HIDDEN), "mlp.Wi": (2 * FFN, HIDDEN)}, of="layers.{}"), {}),
    "roberta": (config("RobertaModel", "roberta", type_vocab_size=1, pad_token_id=1),
                layer(more={"attention.self.query": (HIDDEN, HIDDEN), "output.dense": (HIDDEN, FFN)}, of="encoder.layer.{}"), {}),
}


def save(path, tensors, dtype):
    """name -> f32 array, as one file of safetensors."""
    header, at, payload = {"__metadata__": {"format": "pt"}}, 0, b""
    for name, values in tensors.items():
        bits = values.astype("<f4").view("<u4")
        raw = (bits >> 16).astype("<u2").tobytes() if dtype == "bf16" else bits.tobytes()
        header[name] = {"dtype": dtype.upper(), "shape": list(values.shape), "data_offsets": [at, at + len(raw)]}
        at, payload = at + len(raw), payload + raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + payload)


def factors(modules, ranks):
    """As peft names them."""
    out = {}
    for i, (module, (rows, columns)) in enumerate(modules.items()):
        rng, rank = np.random.default_rng(i), ranks.get(module.rsplit(".", 1)[-1], RANK)
        down, up = rng.standard_normal((rank, columns)).astype(np.float32), rng.standard_normal((rows, rank)).astype(np.float32)
        if module.endswith("embed_tokens"):
            out |= {f"base_model.model.{module}.lora_embedding_A": rng.standard_normal((rank, rows)).astype(np.float32),
                    f"base_model.model.{module}.lora_embedding_B": rng.standard_normal((columns, rank)).astype(np.float32)}
        else:
            out |= {f"base_model.model.{module}.lora_A.weight": down, f"base_model.model.{module}.lora_B.weight": up}
    return out


def write(folder, base, modules, changes):
    """folder/base/config.json and folder/adapter/."""
    (folder / "base").mkdir(parents=True)
    (folder / "adapter").mkdir()
    (folder / "base/config.json").write_text(json.dumps(base))
    changes = dict(changes)
    dtype = changes.pop("dtype", "F32")
    said = {"peft_type": "LORA", "r": RANK, "lora_alpha": 6, "use_rslora": False, "use_dora": False, "fan_in_fan_out": False, "bias": "none",
            "rank_pattern": {}, "alpha_pattern": {}, "modules_to_save": None, "init_lora_weights": True, "base_model_name_or_path": "org/Base-7B",
            **changes}
    tensors = factors(modules, said["rank_pattern"])
    (folder / "adapter/adapter_config.json").write_text(json.dumps(said))
    (folder / "adapter/README.md").write_text("---\nbase_model: org/Base-7B\nlibrary_name: peft\ntags:\n- lora\nlicense: mit\n---\n\n# A card\n")
    save(folder / "adapter/adapter_model.safetensors", tensors, dtype)
    return folder


def result(path):
    """Metadata and tensors of a GGUF."""
    import gguf
    reader = gguf.GGUFReader(path)
    keys = {field.name: [field.types[0].name, field.contents()] for field in reader.fields.values() if not field.name.startswith("GGUF.")}
    tensors = {t.name: [[int(size) for size in t.shape], t.tensor_type.name, hashlib.sha256(t.data.tobytes()).hexdigest()]
               for t in reader.tensors}
    return {"metadata": keys, "tensors": tensors}


if __name__ == "__main__":
    if "--collect" in sys.argv:
        found = {name: result(pathlib.Path(sys.argv[1]) / name / "official.gguf") for name in CASES}
        EXPECTED.write_text("{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name])}" for name in found) + "\n}\n")
    else:
        for name, case in CASES.items():
            write(pathlib.Path(sys.argv[1]) / name, *case)
