# SPDX-License-Identifier: Apache-2.0
"""Writes the folders beside this file with peft: adapters of a tiny Llama whose vocabulary grew before the training, and what peft's own
merge_and_unload() makes of them. README.md names the versions."""
import json
import pathlib
import shutil
import tempfile

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
ROWS, RESIZED = 10, 13
CASES = {
    "grown": (False, RESIZED, dict(target_modules=["q_proj"])),
    "saved": (False, RESIZED, dict(target_modules=["q_proj"], modules_to_save=["embed_tokens", "lm_head"])),
    "targets": (False, RESIZED, dict(target_modules=["q_proj", "embed_tokens", "lm_head"])),
    "targets-same": (False, ROWS, dict(target_modules=["q_proj", "embed_tokens", "lm_head"])),
    "tokens": (False, RESIZED, dict(target_modules=["q_proj"], trainable_token_indices={"embed_tokens": [12, 3, 10]})),
    "tokens-same": (False, ROWS, dict(target_modules=["q_proj"], trainable_token_indices={"embed_tokens": [3, 5]})),
    "tied-grown": (True, RESIZED, dict(target_modules=["q_proj"])),
    "tied-tokens": (True, RESIZED, dict(target_modules=["q_proj"], trainable_token_indices={"embed_tokens": [12, 3, 10]})),
    "head-only": (False, RESIZED, dict(target_modules=["q_proj", "lm_head"])),
}


def save_base(tied):
    torch.manual_seed(3)
    model = LlamaForCausalLM(LlamaConfig(vocab_size=ROWS, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
                                         num_key_value_heads=1, max_position_embeddings=16, tie_word_embeddings=tied))
    folder = HERE / ("base-tied" if tied else "base")
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    return folder


def make(name, tied, rows, options):
    torch.manual_seed(5)
    model = LlamaForCausalLM.from_pretrained(save_base(tied))
    if rows != ROWS:
        model.resize_token_embeddings(rows, mean_resizing=False)
    adapted = get_peft_model(model, LoraConfig(r=2, lora_alpha=4, task_type="CAUSAL_LM", **options))
    for parameter in adapted.parameters():
        if parameter.requires_grad:
            parameter.data += torch.randn_like(parameter) * 0.1
    shutil.rmtree(HERE / name, ignore_errors=True)
    adapted.save_pretrained(HERE / name)
    (HERE / name / "README.md").unlink()
    config = HERE / name / "adapter_config.json"  # names the folder of the base
    config.write_text(json.dumps(json.loads(config.read_text()) | {"base_model_name_or_path": "base"}, indent=2) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        adapted.merge_and_unload().save_pretrained(folder)
        for file, to in (("model.safetensors", "merged.safetensors"), ("config.json", "merged.json")):
            shutil.copy(pathlib.Path(folder) / file, HERE / name / to)
    for config in (HERE / name / "merged.json", HERE / "base/config.json", HERE / "base-tied/config.json"):
        if config.exists():
            config.write_text(config.read_text().rstrip() + "\n")


for name, case in CASES.items():
    make(name, *case)
