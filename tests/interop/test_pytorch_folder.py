# SPDX-License-Identifier: Apache-2.0
"""A Hugging Face folder whose weights are pytorch_model.bin: it runs, and becomes every other container, exactly as its twin with
model.safetensors does. The checkpoint is written by torch where there is one, else by the command, whose files test_pytorch.py has torch read."""
import shutil

import pytest

from interop_tools import ROOT, TEST_DATA, np, weighbridge
from test_llama import SMALL, folder_of, llama2c, small

safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment")
try:
    import torch
except ImportError:
    torch = None

BERTS = {"tiny_bert": TEST_DATA / "tiny_bert", "all-MiniLM-L6-v2": ROOT / "build/demo/all-MiniLM-L6-v2"}


def twin(folder, parent):
    """The same folder, of the same name, with pytorch_model.bin."""
    out = parent / folder.name
    shutil.copytree(folder, out, ignore=shutil.ignore_patterns("*.safetensors", "*.bin"))
    if torch is not None:
        tensors = {name: torch.from_numpy(array.copy()) for name, array in safetensors.load_file(folder / "model.safetensors").items()}
        torch.save(tensors, out / "pytorch_model.bin")
    else:
        weighbridge("convert", folder / "model.safetensors", out / "w.pt", "--quiet", "--allow", "attribute")
        (out / "w.pt").rename(out / "pytorch_model.bin")
    return out


def expect_same_files(one, other, parent, targets):
    for name, flags in targets.items():
        made = [parent / f"{i}-{name}" for i in range(2)]
        for source, path in zip((one, other), made):
            weighbridge("convert", source, path, "--quiet", *flags)
        assert made[0].read_bytes() == made[1].read_bytes(), name


@pytest.mark.parametrize("name", BERTS)
def test_a_bert_gives_the_same_vectors_and_files(tmp_path, name):
    if not (BERTS[name] / "model.safetensors").exists():
        pytest.skip(f"{BERTS[name]} is missing: make demo fetches MiniLM, WEIGHBRIDGE_TEST_DATA names the folder of the test data")
    other = twin(BERTS[name], tmp_path)
    texts = ["The truck weighs more than the bridge can carry.", "", "Every lorry crosses the scale."]
    vectors = [weighbridge("embed", folder, *texts) for folder in (BERTS[name], other)]
    assert vectors[0] == vectors[1] and len(vectors[0].splitlines()) == len(texts)
    expect_same_files(BERTS[name], other, tmp_path,
                      {"a.weights": [], "a.gguf": ["--naming", "llama", "--allow", "tokenizer"], "a.safetensors": ["--allow", "attribute,attribute-type,tokenizer,file"]})


@pytest.mark.parametrize("changes", [{}, {"vocab_size": 300}], ids=["own_output", "tied"])
def test_a_llama_generates_the_same_and_becomes_the_same_files(tmp_path, changes):
    config, blocks, _, _ = small(tmp_path, SMALL | changes)
    one = folder_of(tmp_path / "tiny", config, blocks)
    (tmp_path / "other").mkdir()
    other = twin(one, tmp_path / "other")
    said = [weighbridge("generate", folder, "--prompt", "abc", "--max-tokens", "12", "--temperature", "0") for folder in (one, other)]
    assert said[0] == said[1] and said[0]
    expect_same_files(one, other, tmp_path, {"a.slm": [], "b.slm": ["--quantize", "q8_0"], "a.gguf": ["--naming", "llama", "--allow", "tokenizer"]})
