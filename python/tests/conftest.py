# SPDX-License-Identifier: Apache-2.0
"""Models that tests make. Nothing of the tree is put on the path: the tests are of the package that is installed, or that PYTHONPATH names."""
import json

import pytest

import weighbridge as wb


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory):
    """A Hugging Face folder of a random BERT of two layers and 32 numbers, with a vocabulary of letters and a few words."""
    np = pytest.importorskip("numpy", reason="needs numpy")
    random = np.random.default_rng(17)
    hidden, wide, letters = 32, 64, "abcdefghijklmnopqrstuvwxyz"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "truck", "lorry", "query", ":", "on", "the", "road",
             *(c for c in letters[1:]), *(f"##{c}" for c in letters)]

    def noise(*shape):
        return (random.standard_normal(shape) * 0.3).astype("f4")

    tensors = {"embeddings.word_embeddings.weight": noise(len(words), hidden), "embeddings.position_embeddings.weight": noise(128, hidden),
               "embeddings.token_type_embeddings.weight": noise(2, hidden)}
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{i}." for i in range(2)):
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense", "intermediate.dense",
                     "output.dense"):
            outputs, inputs = {"intermediate.dense": (wide, hidden), "output.dense": (hidden, wide)}.get(name, (hidden, hidden))
            tensors[f"{layer}{name}.weight"], tensors[f"{layer}{name}.bias"] = noise(outputs, inputs), noise(outputs)
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    for norm in norms:
        tensors[f"{norm}.weight"], tensors[f"{norm}.bias"] = np.ones(hidden, "f4"), noise(hidden)
    folder = tmp_path_factory.mktemp("encoder") / "tiny"
    folder.mkdir()
    wb.save(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "hidden_size": hidden, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": wide,
        "max_position_embeddings": 128, "vocab_size": len(words), "layer_norm_eps": 1e-12, "hidden_act": "gelu"}))
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    return folder


@pytest.fixture(scope="session")
def embedder(encoder_folder):
    return wb.Embedder(encoder_folder, prompts={"query": "query: "}, normalize=True)
