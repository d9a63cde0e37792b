# SPDX-License-Identifier: Apache-2.0
"""embed, similarity, search, tokenize and evaluate on a tiny model made here: what they print, and what they say of bad input."""
import json

import pytest

from conftest import floats, safetensors, validated, weighbridge

np = pytest.importorskip("numpy", reason="numpy is missing: tools/python-environments.sh makes the environment")

HIDDEN, FFN, POSITIONS = 8, 16, 16
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "weigh", "##bridge", "is", "scale", "for", "lorries", "naive"]


def noise(*shape):
    values = np.random.Generator(np.random.PCG64(sum(shape) + len(shape))).standard_normal(shape) * 0.3
    return ("F32", list(shape), values.astype("<f4").tobytes())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A .weights file of one layer, by way of a Hugging Face folder."""
    folder = tmp_path_factory.mktemp("hf") / "tiny"
    folder.mkdir()
    tensors = {"embeddings.word_embeddings.weight": noise(len(WORDS), HIDDEN),
               "embeddings.position_embeddings.weight": noise(POSITIONS, HIDDEN),
               "embeddings.token_type_embeddings.weight": noise(2, HIDDEN)}
    layer = "encoder.layer.0."
    linear = {"attention.self.query": (HIDDEN, HIDDEN), "attention.self.key": (HIDDEN, HIDDEN), "attention.self.value": (HIDDEN, HIDDEN),
              "attention.output.dense": (HIDDEN, HIDDEN), "intermediate.dense": (FFN, HIDDEN), "output.dense": (HIDDEN, FFN)}
    for name, shape in linear.items():
        tensors[layer + name + ".weight"] = noise(*shape)
        tensors[layer + name + ".bias"] = noise(shape[0])
    for name in ("embeddings.LayerNorm", layer + "attention.output.LayerNorm", layer + "output.LayerNorm"):
        tensors[name + ".weight"] = ("F32", [HIDDEN], np.ones(HIDDEN, "<f4").tobytes())
        tensors[name + ".bias"] = noise(HIDDEN)
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "hidden_size": HIDDEN, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": FFN,
        "max_position_embeddings": POSITIONS, "vocab_size": len(WORDS), "layer_norm_eps": 1e-12, "hidden_act": "gelu"}))
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    out = folder.parent / "tiny.weights"
    weighbridge("convert", folder, out)
    return out


def embedded(*arguments):
    return [validated(line, "embed") for line in weighbridge("embed", *arguments).stdout.splitlines()]


def test_embed_prints_an_object_a_line(model):
    first, second = embedded(model, "a weighbridge", "is a scale for lorries")
    assert set(first) == {"schema", "index", "tokens", "truncated", "embedding"}
    assert (first["index"], second["index"], first["tokens"], first["truncated"]) == (0, 1, 5, False)
    assert abs(sum(x * x for x in first["embedding"]) - 1) < 1e-5 and len(first["embedding"]) == HIDDEN
    assert embedded(model, "is a scale for lorries")[0]["embedding"] == second["embedding"]


def test_a_folder_embeds_as_its_weights_do(model):
    assert embedded(model.parent / "tiny", "a scale") == embedded(model, "a scale")


@pytest.mark.parametrize("flags", [["--pooling", "cls"], ["--pooling", "max"], ["--no-normalize"], ["--threads", "1"], ["--batch-tokens", "4"]])
def test_flags_of_the_vector(model, flags):
    usual, other = embedded(model, "a scale")[0]["embedding"], embedded(model, "a scale", *flags)[0]["embedding"]
    assert (usual == other) == (flags[0] in ("--threads", "--batch-tokens"))


def test_texts_from_lines_json_lines_and_standard_input(model, tmp_path):
    lines, jsonl = tmp_path / "t.txt", tmp_path / "t.jsonl"
    lines.write_text("a scale\n\nis a\n")
    jsonl.write_text('"a scale"\n{"id": 7, "text": ""}\n{"text": "is a"}\n')
    expected = embedded(model, "a scale", "", "is a")
    assert embedded(model, "--input", lines) == expected
    assert embedded(model, "--input", jsonl, "--input-format", "jsonl") == expected
    with lines.open() as stdin:
        assert [json.loads(line) for line in weighbridge("embed", model, "--input", "-", stdin=stdin).stdout.splitlines()] == expected


def test_a_numpy_file_has_every_vector(model, tmp_path):
    lines, out = tmp_path / "t.txt", tmp_path / "v.npy"
    lines.write_text("a scale\nis a\n" * 700)
    weighbridge("embed", model, "--input", lines, "--output-format", "npy", "-o", out)
    vectors = np.load(out)
    assert vectors.shape == (1400, HIDDEN) and (vectors[0] == vectors[2]).all()
    assert vectors[1].tolist() == pytest.approx(embedded(model, "is a")[0]["embedding"], abs=1e-7)


def test_a_long_text_is_cut_and_says_so(model):
    done = weighbridge("embed", model, "a " * 100)
    value = json.loads(done.stdout)
    assert value["truncated"] is True and value["tokens"] == POSITIONS and "cut to" in done.stderr


def test_invalid_utf8_is_counted(model):
    assert json.loads(weighbridge("embed", model, b"a \xff scale".decode("utf-8", "surrogateescape")).stdout)["replaced"] == 1


def test_tokenize(model):
    value = validated(weighbridge("tokenize", model, "a Weighbridge", "--json").stdout, "tokenize")
    assert value == {"schema": 1, "inputs": [{"ids": [2, 5, 6, 7, 3], "tokens": ["[CLS]", "a", "weigh", "##bridge", "[SEP]"], "truncated": False}]}
    spans = json.loads(weighbridge("tokenize", model, "naïve a", "--json", "--offsets", "--no-special").stdout)["inputs"][0]
    assert spans["ids"] == [12, 5] and spans["offsets"] == [[0, 5], [6, 7]]
    assert weighbridge("tokenize", model, "a", "--no-special").stdout == "a/5\n"


def test_similarity_and_search(model, tmp_path):
    assert weighbridge("similarity", model, "a scale", "a scale").stdout == "1.000000\n"
    corpus, kept = tmp_path / "docs.txt", tmp_path / "v.npy"
    corpus.write_text("a\na scale for lorries\nis\n")
    for _ in range(2):
        found = validated(weighbridge("search", model, "--corpus", corpus, "--vectors", kept, "--top", "2", "a scale for lorries", "--json").stdout,
                          "search")
        assert found["results"][0]["index"] == 1 and len(found["results"]) == 2
    assert np.load(kept).shape == (3, HIDDEN)
    weighbridge("search", model, "--corpus", corpus, "--vectors", kept, "a", "--pooling", "cls", status=2)
    corpus.write_text("a\na scale for lorries\na\n")  # as many texts, other ones
    assert "another corpus" in weighbridge("search", model, "--corpus", corpus, "--vectors", kept, "a", status=2).stderr


def test_evaluate(model, tmp_path):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text('sentence1,sentence2,score\na,a,5.0\n"a, scale",is,1.0\nlorries,for,2\n')
    value = validated(weighbridge("evaluate", "sts", model, pairs, "--json").stdout, "evaluate")
    assert value["pairs"] == 3 and -1 <= value["spearman"] <= 1 and value["seconds"] >= 0
    pairs.write_text("a,a,5.0\na,b\n")
    assert "record 2" in weighbridge("evaluate", "sts", model, pairs, status=1).stderr


@pytest.mark.parametrize("arguments,status,word", [
    (["embed", "{model}"], 2, "--input"),
    (["embed", "{model}", "a", "--input", "x"], 2, "not both"),
    (["embed", "{model}", "a", "--output-format", "npy"], 2, "-o FILE"),
    (["embed", "{plain}", "a", "--heads", "2"], 1, "embeddings.word_embeddings.weight"),
    (["embed", "{model}", "--input", "absent.txt"], 4, "absent.txt"),
    (["embed", "{model}", "a", "--pooling", "sum"], 2, "mean"),
    (["search", "{model}", "a"], 2, "--corpus"),
    (["evaluate", "ats", "{model}", "x.csv"], 2, "sts"),
    (["embed", "{plain}", "a"], 1, "embeddings.word_embeddings.weight"),
])
def test_bad_input_is_one_sentence(model, tmp_path, arguments, status, word):
    plain = tmp_path / "plain.safetensors"
    plain.write_bytes(safetensors({"w": ("F32", [1], floats(1))}))
    done = weighbridge(*[a.format(model=model, plain=plain) for a in arguments], status=status, cwd=tmp_path)
    assert word in done.stderr and done.stdout == ""
