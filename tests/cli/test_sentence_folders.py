# SPDX-License-Identifier: Apache-2.0
"""One folder, one vector: what sentence-transformers computed for small folders with each of its settings, from every verb that embeds,
and from every container that the folder is converted to. What this program does not follow is refused by name."""
import json

import pytest

import sentence_folders
from conftest import weighbridge
from sentence_folders import SETTINGS, TEXTS, make

FOUND = json.loads(sentence_folders.FIXTURE.read_text())["vectors"]


def embed(path, *flags, texts=TEXTS, status=0):
    done = weighbridge("embed", path, *flags, *texts, status=status)
    return [json.loads(line)["embedding"] for line in done.stdout.splitlines()] if status == 0 else done.stderr


def near(ours, theirs, most=1e-5):
    assert [len(row) for row in ours] == [len(row) for row in theirs]
    for own, other in zip(ours, theirs):
        scale = max(1.0, *map(abs, other))
        assert all(abs(a - b) <= most * scale for a, b in zip(own, other)), (own, other)


@pytest.mark.parametrize("name", SETTINGS)
def test_vectors_are_those_of_sentence_transformers(name, tmp_path):
    near(embed(make(tmp_path / "m", **SETTINGS[name])), FOUND[name]["text"])


@pytest.mark.parametrize("name", SETTINGS)
def test_every_container_gives_the_same_bits(name, tmp_path):
    folder = make(tmp_path / "m", **SETTINGS[name])
    wanted = embed(folder)
    for target in ("m.weights", "m.zt", "m.gguf", "copy/"):
        weighbridge("convert", folder, f"{tmp_path}/{target}", "--allow", "file,attribute-type,tokenizer")
        if target != "m.gguf":  # GGUF holds no vocabulary of words under these names
            assert embed(tmp_path / target) == wanted, target
        else:
            assert embed(tmp_path / target, "--vocab", folder / "vocab.txt") == wanted, target


@pytest.mark.parametrize("name", ["new cls", "lasttoken", "short", "default prompt", "truncated", "old names"])
def test_the_names_of_llama_cpp_give_the_same_vectors(name, tmp_path):
    folder = make(tmp_path / "m", **SETTINGS[name])
    weighbridge("convert", folder, tmp_path / "m.gguf", "--naming", "llama", "--allow", "file,tokenizer,attribute-type")
    assert embed(tmp_path / "m.gguf") == embed(folder)


def test_modules_are_refused_where_llama_cpp_would_leave_them_out(tmp_path):
    folder = make(tmp_path / "m", **SETTINGS["dense, tanh"])
    assert "modules" in weighbridge("convert", folder, tmp_path / "m.gguf", "--naming", "llama", status=2).stderr


def cosine(a, b):
    return sum(x * y for x, y in zip(a, b)) / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5


def test_search_uses_the_prompts_of_queries_and_documents(tmp_path):
    name = "default prompt"
    folder = make(tmp_path / "m", **SETTINGS[name])
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(text + "\n" for text in TEXTS))
    found = json.loads(weighbridge("search", folder, "--corpus", corpus, "--json", "--top", "9", TEXTS[1]).stdout)["results"]
    query, documents = FOUND[name]["query"][1], FOUND[name]["document"]
    assert len(found) == len(TEXTS)
    for each in found:
        assert each["score"] == pytest.approx(cosine(query, documents[each["index"]]), abs=1e-5)


def test_similarity_uses_the_default_prompt(tmp_path):
    name = "default prompt"
    folder = make(tmp_path / "m", **SETTINGS[name])
    one, other = FOUND[name]["text"][:2]
    assert float(weighbridge("similarity", folder, *TEXTS[:2]).stdout) == pytest.approx(cosine(one, other), abs=1e-5)


def test_prompts_can_be_named_or_given(tmp_path):
    folder = make(tmp_path / "m", **SETTINGS["default prompt"])
    assert embed(folder, "--prompt-name", "document") == embed(folder, "--prompt", "passage: ")
    near(embed(folder, "--prompt-name", "document"), FOUND["default prompt"]["document"])
    plain = make(tmp_path / "plain")
    assert embed(folder, "--prompt", "") == embed(plain)
    assert embed(plain, texts=["query: " + text for text in TEXTS]) == embed(folder)
    assert 'no prompt "nope": it has "query", "document"' in embed(folder, "--prompt-name", "nope", status=2)


def test_a_prompt_that_is_left_out_of_the_pooling_must_leave_a_token(tmp_path):
    folder = make(tmp_path / "m", **SETTINGS["prompt apart"])
    # "weighs9" is one unknown token, where the prompt alone is two.
    assert "all of the 3 tokens" in embed(folder, "--prompt", "weighs", texts=["9"], status=2)
    assert len(embed(folder, "--prompt", "weighs ", texts=["9"])) == 1


def test_the_key_of_kept_vectors_covers_prompts_and_modules(tmp_path):
    corpus, kept = tmp_path / "corpus.txt", tmp_path / "kept.npy"
    corpus.write_text("".join(text + "\n" for text in TEXTS))
    folder = make(tmp_path / "m", **SETTINGS["default prompt"])
    weighbridge("search", folder, "--corpus", corpus, "--vectors", kept, "a")
    weighbridge("search", folder, "--corpus", corpus, "--vectors", kept, "a")
    assert "another corpus" in weighbridge("search", folder, "--corpus", corpus, "--vectors", kept, "--prompt-name", "query", "a", status=2).stderr
    dense, other = (make(tmp_path / name, modules=[("Dense", {"out": 8, "activation": "torch.nn.modules.activation.Tanh"})]) for name in "de")
    weights = other / "2_Dense/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    weighbridge("search", dense, "--corpus", corpus, "--vectors", tmp_path / "dense.npy", "a")
    assert "another corpus" in weighbridge("search", other, "--corpus", corpus, "--vectors", tmp_path / "dense.npy", "a", status=2).stderr


REFUSED = {
    "relative_key": ({"config": {"position_embedding_type": "relative_key"}}, "position_embedding_type"),
    "a decoder": ({"config": {"is_decoder": True}}, "is_decoder"),
    "pruned heads": ({"config": {"pruned_heads": {"0": [1]}}}, "pruned_heads"),
    "no pooling": ({"new": False, "pooling": []}, "pooling_mode"),
    "another pooling": ({"pooling": "median"}, "pooling_mode"),
    "an unknown key of a pooling": ({"files": {"1_Pooling/config.json": {"pooling_mode": "cls", "temperature": 2}}}, "temperature"),
    "an unknown key of a module list": ({"files": {"modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer", "gate": 1},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]}}, "gate"),
    "an unknown key of the encoder": ({"files": {"sentence_bert_config.json": {"max_seq_length": 16, "scale": 2}}}, "scale"),
    "another task": ({"files": {"sentence_bert_config.json": {"transformer_task": "fill-mask"}}}, "transformer_task"),
    "a kind of vectors": ({"files": {"config_sentence_transformers.json": {"model_type": "SparseEncoder"}}}, "model_type"),
    "an activation of somebody": ({"modules": [("Dense", {"out": 4, "activation": "mine.Snake"})]}, "activation_function"),
    "a recurrent module": ({"files": {"modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_LSTM", "type": "sentence_transformers.models.LSTM"},
        {"idx": 2, "name": "2", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]}}, "LSTM"),
    "a module of somebody": ({"files": {"modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Mine", "type": "mine.Pooling"}]}}, "mine.Pooling"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_followed_is_refused_by_name(name, tmp_path):
    settings, key = REFUSED[name]
    folder = make(tmp_path / "m", **settings)
    error = embed(folder, status=3)
    assert f'"{key}"' in error and "--ignore-setting" in error
    weighbridge("inspect", folder)
    assert len(embed(folder, "--ignore-setting", key)) == len(TEXTS)


@pytest.mark.parametrize("name", ["relative_key", "a recurrent module", "another pooling"])
def test_what_is_not_followed_is_no_weights_file_and_no_llama_cpp(name, tmp_path):
    settings, key = REFUSED[name]
    folder = make(tmp_path / "m", **settings)
    for flags in (["m.weights"], ["m.gguf", "--naming", "llama"]):
        weighbridge("convert", folder, tmp_path / flags[0], *flags[1:], status=2 if name == "relative_key" and flags[1:] else 3)
        assert not (tmp_path / flags[0]).exists()
    weighbridge("convert", folder, tmp_path / "m.zt", "--allow", "file,unsupported")
    assert f'"{key}"' in embed(tmp_path / "m.zt", status=3)


def test_an_activation_that_is_not_known_is_refused_whatever_is_ignored(tmp_path):
    folder = make(tmp_path / "m", modules=[("Dense", {"out": 4, "activation": "torch.nn.modules.activation.Mish"})])
    assert '"Mish"' in embed(folder, status=3)


@pytest.mark.parametrize("model_type", ["roberta", "xlm-roberta", "electra", "camembert", "mpnet"])
def test_another_model_is_refused_whatever_flags_are_given(model_type, tmp_path):
    folder = make(tmp_path / "m", config={"model_type": model_type, "architectures": ["OtherModel"]})
    for flags in ([], ["--heads", "2"], ["--heads", "2", "--ignore-setting", "model_type"]):
        assert f'"{model_type}"' in embed(folder, *flags, status=3)


def test_a_key_that_nobody_knows_is_a_warning(tmp_path):
    folder = make(tmp_path / "m", config={"gated": True})
    done = weighbridge("embed", folder, "a bridge")
    assert '"gated"' in done.stderr
    plain = weighbridge("embed", make(tmp_path / "plain"), "a bridge")
    assert plain.stdout == done.stdout and plain.stderr == ""
    assert weighbridge("embed", folder, "a bridge", "--quiet").stderr == ""


def test_a_gamma_of_another_kind_keeps_its_name(tmp_path):
    (tmp_path / "next.safetensors").write_bytes(sentence_folders.safetensors({"block.0.gamma": ([2], [1.0, 2.0])}))
    weighbridge("convert", tmp_path / "next.safetensors", tmp_path / "next.zt")
    assert "block.0.gamma" in weighbridge("inspect", tmp_path / "next.zt").stdout


def test_tensors_that_no_bert_has_are_refused(tmp_path):
    folder = make(tmp_path / "m")
    path = folder / "model.safetensors"
    head = json.loads(path.read_bytes()[8:8 + int.from_bytes(path.read_bytes()[:8], "little")])
    tensors = {name: (each["shape"], [0.5] * (eval("*".join(map(str, each["shape"]))))) for name, each in head.items() if name != "__metadata__"}
    tensors["encoder.layer.0.attention.self.distance_embedding.weight"] = ([47, 8], [0.1] * 47 * 8)
    path.write_bytes(sentence_folders.safetensors(tensors))
    assert "distance_embedding" in embed(folder, status=3)
