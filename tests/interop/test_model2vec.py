# SPDX-License-Identifier: Apache-2.0
"""Tables of word vectors beside the package model2vec: the same vectors for models that it saved, of each dtype, with and without a
clustered vocabulary, and for the folders of sentence-transformers that it reads."""
import json
import shutil

import pytest

from interop_tools import np, weighbridge

model2vec = pytest.importorskip("model2vec", reason="the package model2vec is not installed")

WORDS = ["sun", "moon", "star", "##s", "##light", "bridge", "weigh", "##ing", "the", "of", ".", ",", "!", "a", "b", "é", "漢", "##z"]
TOKENS = ["[PAD]", "[UNK]", *WORDS]
TEXTS = ["The sun, the moons.", "", "weighing of a bridge!", "starlight 漢字 É", "comet", "sun " * 700, "a" * 5000, "[UNK] sun",
         *[" ".join(WORDS[(i * j) % len(WORDS)].strip("#") for j in range(1, 3 + i % 40)) for i in range(300)]]


def tokenizer():
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    made = Tokenizer(models.WordPiece({token: i for i, token in enumerate(TOKENS)}, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(["[PAD]", "[UNK]"])
    return made


def save(folder, dtype="float32", normalize=True, **more):
    rng = np.random.default_rng(3)
    rows = more.pop("rows", len(TOKENS))
    vectors = rng.standard_normal((rows, 20)) * 20
    model = model2vec.StaticModel(vectors.astype(dtype), tokenizer(), config={"model_type": "model2vec"}, normalize=normalize, **more)
    model.save_pretrained(folder)
    return folder


def ours(folder, tmp_path, *flags):
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps(text) + "\n" for text in TEXTS))
    weighbridge("embed", folder, "--input", texts, "--input-format", "jsonl", "-o", tmp_path / "out.npy", "--force", *flags)
    return np.load(tmp_path / "out.npy")


def theirs(folder):
    return model2vec.StaticModel.from_pretrained(folder).encode(TEXTS).astype(np.float64)


@pytest.mark.parametrize("dtype, most", [("float32", 1e-6), ("float64", 1e-5), ("float16", 2e-3), ("int8", 1e-6)])
def test_vectors_are_those_of_the_package(tmp_path, dtype, most):
    folder = save(tmp_path / "model", dtype)
    assert np.abs(ours(folder, tmp_path) - theirs(folder)).max() <= most


def test_means_of_f32_have_the_same_bits(tmp_path):
    folder = save(tmp_path / "model", normalize=False)
    assert np.array_equal(ours(folder, tmp_path), theirs(folder).astype(np.float32))
    one = ours(folder, tmp_path, "--threads", "1")
    assert np.array_equal(ours(folder, tmp_path, "--threads", "3"), one)


def test_a_clustered_vocabulary(tmp_path):
    rng = np.random.default_rng(4)
    folder = save(tmp_path / "model", rows=5, token_mapping=rng.integers(0, 5, len(TOKENS)),
                  weights=rng.uniform(0.1, 2, len(TOKENS)).astype(np.float32))
    assert np.abs(ours(folder, tmp_path) - theirs(folder)).max() <= 1e-6


@pytest.mark.parametrize("length", [3, None])
def test_the_length_that_the_model_states(tmp_path, length):
    folder = save(tmp_path / "model", max_length=length)
    assert np.abs(ours(folder, tmp_path) - theirs(folder)).max() <= 1e-5


@pytest.mark.parametrize("under", ["", "0_StaticEmbedding"])
def test_folders_of_sentence_transformers(tmp_path, under):
    from safetensors.numpy import load_file, save_file
    source, folder = save(tmp_path / "source"), tmp_path / "folder"
    (folder / under).mkdir(parents=True)
    save_file({"embedding.weight": load_file(source / "model.safetensors")["embeddings"]}, folder / under / "model.safetensors")
    shutil.copy(source / "tokenizer.json", folder / under / "tokenizer.json")
    (folder / "config_sentence_transformers.json").write_text("{}")
    types = ["StaticEmbedding", "Normalize"]
    (folder / "modules.json").write_text(json.dumps(
        [{"idx": i, "path": under if i == 0 else "1_Normalize", "type": f"sentence_transformers.models.{name}"} for i, name in enumerate(types)]))
    assert np.array_equal(ours(folder, tmp_path), ours(source, tmp_path))
    weighbridge("convert", folder, tmp_path / "one.zt")
    assert np.array_equal(ours(tmp_path / "one.zt", tmp_path), ours(source, tmp_path))
