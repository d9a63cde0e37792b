# SPDX-License-Identifier: Apache-2.0
"""general.* of a GGUF that is made of a folder, beside those that llama.cpp's own package finds in the model card,
generation_config.json and the name of the folder."""
import json

import pytest

from interop_tools import np, weighbridge

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
pytest.importorskip("yaml", reason="yaml is missing: tools/python-environments.sh makes the environment")

from test_gguf_folders import write_llama  # noqa: E402

CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
          "num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 96, "rms_norm_eps": 1e-6, "vocab_size": 64}
CARD = """---
license: [apache-2.0, mit]
license_name: "my license" # the text of it
license_link: https://a.b/c
language:
- en
- no
tags:
  - chat
  - 'it''s'
pipeline_tag: text-generation
model_creator: Somebody
description: |
  One line,

  and another.
base_model:
- org/Base-7B-v0.2
- https://huggingface.co/other-org/Other-Model
- https://elsewhere.example/x/y
datasets: some/data-set-v1
widget:
- text: hello
---
# A model
"""
SAMPLING = {"temperature": 0.7, "top_p": 0.9, "top_k": 40, "do_sample": True, "eos_token_id": 2, "penalty_repeat": 1.05}
# Of each, the package and weighbridge say the same.
NAMES = ["my-model", "Base-7B-Instruct-v0.2", "Tiny-15K-chat", "smol-llama-15K", "bloom-7b1", "Mixtral-8x7B-v0.1", "phi-3.5-mini-instruct",
         "gemma-2-2b-it", "Qwen2.5-0.5B", "iter3-model", "model-Q4_K_M", "llama-3-15_1K", "a b-c", "Name-large-xl", "v2-name-30K-128k", "x-A3B"]


def folder_of(path, card=None, **config):
    path.mkdir()
    write_llama(path, 64)
    (path / "config.json").write_text(json.dumps({**CONFIG, **config}))
    if card is not None:
        (path / "README.md").write_text(card)
    return path


def described(folder, target):
    said = json.loads(weighbridge("convert", folder, target, "--allow", "attribute", "--json"))
    fields = gguf.GGUFReader(target).fields
    return said, {key: (field.types[0].name, field.contents()) for key, field in fields.items() if key.startswith("general.")}


def wanted(folder, target):
    """What the package writes of the folder."""
    total = sum(tensor.n_elements for tensor in gguf.GGUFReader(target).tensors)
    found = gguf.Metadata.load(None, folder, None, int(total))
    writer = gguf.GGUFWriter(str(target) + ".wanted", "llama")
    found.set_gguf_meta_model(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    fields = gguf.GGUFReader(str(target) + ".wanted").fields
    return {key: (field.types[0].name, field.contents()) for key, field in fields.items()
            if key.startswith("general.") and key != "general.architecture"}


def expect_described(folder, target):
    said, ours = described(folder, target)
    theirs = wanted(folder, target)
    assert {key: ours.get(key) for key in theirs} == theirs
    more = {"general.architecture", "general.type", "general.size_label", "general.file_type", "general.quantization_version"}
    assert set(ours) - set(theirs) <= more
    return said, ours


def test_the_card_and_the_generation_config_are_metadata(tmp_path):
    folder = folder_of(tmp_path / "my-model-v2", CARD)
    (folder / "generation_config.json").write_text(json.dumps(SAMPLING))
    said, ours = expect_described(folder, tmp_path / "out.gguf")
    assert ours["general.license"][1] == "apache-2.0,mit" and ours["general.languages"][1] == ["en", "no"]
    assert ours["general.description"][1] == "One line,\n\nand another.\n"
    assert ours["general.sampling.top_k"] == ("INT32", 40) and ours["general.sampling.temp"] == ("FLOAT32", float(np.float32(0.7)))
    assert any("widget" in str(item) for item in said["losses"])


@pytest.mark.parametrize("name", NAMES)
def test_what_the_name_of_a_folder_suggests_is_listed_as_a_change(tmp_path, name):
    said, ours = expect_described(folder_of(tmp_path / name), tmp_path / "out.gguf")
    changes = str(said["changes"])
    for key in ("name", "basename", "finetune", "version"):
        assert ("general." + key in changes) == ("general." + key in ours)


@pytest.mark.parametrize("name", ["org/Base-7B-Instruct", "org/sub/Base-15K", "./x-15K-chat"])
def test_the_id_in_the_config_comes_before_the_name_of_the_folder(tmp_path, name):
    expect_described(folder_of(tmp_path / "Folder-15K-chat", _name_or_path=name), tmp_path / "out.gguf")
