# SPDX-License-Identifier: Apache-2.0
"""Names of llama.cpp: a Llama or a BERT as `convert --naming llama` writes it, beside the table of names of the package gguf, a
rotation of our own, and llama.cpp itself where llama-cpp-python brings it: the same tokens, the same greedy ids, the same embeddings."""
import importlib.util
import json
import math

import pytest

from interop_tools import ROOT, content_digest, extracted, inspected, np, weighbridge
from test_llama import SMALL, STORIES, TOK512, folder_of, llama2c, real, sentencepiece, small, spaced_texts

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
MINILM = ROOT / "build/demo/all-MiniLM-L6-v2"
GROUPED = {"dim": 64, "hidden_dim": 96, "n_layers": 3, "n_heads": 8, "n_kv_heads": 2, "vocab_size": 400, "seq_len": 256}
with_llama_cpp = pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None,
                                    reason="llama-cpp-python is missing: make interop PEER=llama installs it")


def ordered(count):
    """The tokenizer.json of a sentencepiece vocabulary: merges to one token follow each other."""
    out, rank = sentencepiece(count), {}
    for pair in out["model"]["merges"]:
        rank.setdefault(pair.replace(" ", ""), len(rank))
    out["model"]["merges"].sort(key=lambda pair: rank[pair.replace(" ", "")])
    return out


def a_folder(path, config, blocks, **changes):
    return folder_of(path, config, blocks, **{"tokenizer": ordered(abs(config["vocab_size"]))} | changes)


def named(source, target, *flags):
    weighbridge("convert", source, target, "--naming", "llama", "--quiet", "--force", *flags)
    return gguf.GGUFReader(target)


def tensors_of(reader):
    return {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape([int(n) for n in reversed(tensor.shape)])
            for tensor in reader.tensors}


def test_names_are_those_of_the_package(tmp_path):
    config, blocks, _, _ = small(tmp_path)
    folder = a_folder(tmp_path / "model", config, blocks)
    reader = named(folder, tmp_path / "out.gguf")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["n_layers"])
    wanted = {names.get_name(name, try_suffixes=(".weight",)) for name in llama2c.hugging_face_tensors(config, blocks)}
    assert {tensor.name for tensor in reader.tensors} == wanted and None not in wanted
    said = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    assert said["general.architecture"] == "llama" and said["llama.block_count"] == config["n_layers"]
    assert said["llama.attention.head_count"] == 6 and said["llama.attention.head_count_kv"] == 2
    assert said["llama.feed_forward_length"] == config["hidden_dim"] and said["llama.context_length"] == config["seq_len"]
    assert len(said["tokenizer.ggml.tokens"]) == said["llama.vocab_size"] == 300


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_a_folder_and_a_checkpoint_become_the_same(tmp_path, dtype):
    """Rows of queries and keys of the folder change places; those of the checkpoint are in llama.cpp's order."""
    config, blocks, path, tokens = small(tmp_path)
    folder = a_folder(tmp_path / "model", config, blocks)
    weighbridge("convert", folder, tmp_path / "cast.zt", "--cast", dtype, "--quiet", "--allow", "precision,overflow")
    one = tensors_of(named(tmp_path / "cast.zt", tmp_path / "one.gguf"))
    two = tensors_of(named(path, tmp_path / "two.gguf", "--tokenizer", tokens, "--allow", "tokenizer"))
    assert one.keys() == two.keys()
    for name, array in two.items():
        wanted = array if dtype == "f32" else array.astype(np.float16).astype(np.float32) if dtype == "f16" else None
        if wanted is not None:
            assert np.array_equal(one[name], wanted), name
        else:
            assert np.abs(one[name] - array).max() <= np.abs(array).max() / 128, name


@pytest.mark.parametrize("scaling,status", [
    (None, 0), ({"rope_type": "default"}, 0), ({"type": "linear", "factor": 4.0}, 0), ({"rope_type": "yarn", "factor": 4.0}, 2),
    ({"rope_type": "dynamic", "factor": 2.0}, 2), ("text", 2), ({"rope_type": "linear", "factor": 0.5}, 2)], ids=str)
def test_scaled_rotations(tmp_path, scaling, status):
    config, blocks, _, _ = small(tmp_path)
    folder = a_folder(tmp_path / "model", config, blocks, rope_scaling=scaling)
    weighbridge("convert", folder, tmp_path / "out.gguf", "--naming", "llama", "--quiet", status=status)
    if status == 0:
        fields = gguf.GGUFReader(tmp_path / "out.gguf").fields
        linear = isinstance(scaling, dict) and scaling.get("type") == "linear"
        assert ("llama.rope.scaling.factor" in fields) == linear
        assert not linear or fields["llama.rope.scaling.factor"].contents() == 4.0


LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 8192}


@pytest.mark.parametrize("scaling,parameters,theta", [
    (None, LLAMA3_ROPE | {"rope_theta": 5e5}, 5e5), (LLAMA3_ROPE, LLAMA3_ROPE, 1e4), (LLAMA3_ROPE, LLAMA3_ROPE | {"rope_theta": 1e4}, 1e4),
    ({"type": "linear", "factor": 2}, {"factor": 2.0, "rope_type": "linear"}, 1e4), ({}, {"rope_type": "default"}, 1e4),
    (LLAMA3_ROPE, LLAMA3_ROPE | {"factor": 4.0}, None), (LLAMA3_ROPE, {"rope_type": "default"}, None),
    (LLAMA3_ROPE, LLAMA3_ROPE | {"rope_theta": 5e5}, None), ({"type": "linear", "factor": 2.0}, {"rope_type": "linear", "factor": 4.0}, None)],
    ids=str)
def test_two_statements_of_a_rotation_must_say_the_same(tmp_path, scaling, parameters, theta):
    """Once, the second one counted. transformers 5 takes rope_scaling if both are there, and releases before it know no
    other key."""
    config, blocks, _, _ = small(tmp_path, GROUPED)
    folder = a_folder(tmp_path / "model", config, blocks, rope_scaling=scaling, rope_parameters=parameters)
    weighbridge("convert", folder, tmp_path / "out.gguf", "--naming", "llama", "--quiet", status=2 if theta is None else 0)
    weighbridge("generate", folder, "--prompt", "abc", "--max-tokens", "2", status=3 if theta is None else 0)
    if theta is not None:
        assert gguf.GGUFReader(tmp_path / "out.gguf").fields["llama.rope.freq_base"].contents() == theta


def test_the_scaling_of_llama_3_is_a_tensor(tmp_path):
    config = SMALL | {"dim": 96, "n_heads": 3, "n_kv_heads": 1}
    config, blocks, _, _ = small(tmp_path, config)
    factor, low, high, original, theta, head = 8.0, 1.0, 4.0, 8192, 500000.0, 32
    scaling = {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
               "original_max_position_embeddings": original}
    folder = a_folder(tmp_path / "model", config, blocks, rope_scaling=scaling, rope_theta=theta)
    reader = named(folder, tmp_path / "out.gguf")
    assert reader.fields["llama.rope.freq_base"].contents() == theta
    wanted = []  # transformers, modeling_rope_utils.py, _compute_llama3_parameters
    for i in range(0, head, 2):
        wave = 2 * math.pi * theta ** (i / head)
        if wave < original / high:
            wanted.append(1.0)
        elif wave > original / low:
            wanted.append(factor)
        else:
            smooth = (original / wave - low) / (high - low)
            wanted.append(1 / ((1 - smooth) / factor + smooth))
    assert {1.0, factor} < set(wanted)
    np.testing.assert_allclose(tensors_of(reader)["rope_freqs.weight"], wanted, rtol=1e-6)


@pytest.mark.parametrize("changes", [{"attention_bias": True}, {"mlp_bias": True}, {"hidden_act": "gelu"}, {"model_type": "mistral"},
                                     {"num_hidden_layers": "absent"}, {"num_attention_heads": 7}], ids=str)
def test_what_llama_cpp_would_not_compute_is_refused(tmp_path, changes):
    config, blocks, _, _ = small(tmp_path)
    folder = a_folder(tmp_path / "model", config, blocks, **changes)
    weighbridge("convert", folder, tmp_path / "out.gguf", "--naming", "llama", "--quiet", status=2)
    assert not (tmp_path / "out.gguf").exists()


def test_a_tensor_without_a_name_needs_consent(tmp_path):
    config, blocks, _, _ = small(tmp_path)
    tensors = llama2c.hugging_face_tensors(config, blocks) | {"model.layers.0.self_attn.q_proj.bias": np.zeros(24, np.float32)}
    folder = a_folder(tmp_path / "model", config, blocks, tensors=tensors)
    weighbridge("convert", folder, tmp_path / "out.gguf", "--naming", "llama", "--quiet", status=3)
    reader = named(folder, tmp_path / "out.gguf", "--allow", "unsupported")
    assert not any("bias" in tensor.name for tensor in reader.tensors)


@pytest.mark.skipif(not MINILM.is_dir(), reason="build/demo/all-MiniLM-L6-v2 is missing: tools/fetch-minilm.sh fetches it")
def test_a_bert_has_the_names_of_the_package(tmp_path):
    reader = named(MINILM, tmp_path / "out.gguf")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, 6)
    found = json.loads(weighbridge("inspect", "--json", MINILM))["files"][0]["tensors"]
    wanted = {names.get_name(tensor["name"], try_suffixes=(".weight", ".bias")) for tensor in found
              if tensor["name"] != "embeddings.position_ids" and not tensor["name"].startswith("pooler.")}
    assert {tensor.name for tensor in reader.tensors} == wanted and None not in wanted
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    assert tokens[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"] and "\u2581hello" in tokens and "ing" in tokens


# ---------------------------------------------------------------------------------------------------------------- llama.cpp

def runner(path, **options):
    import llama_cpp
    # Keys and values are f16 by default, which decides between close ids.
    return llama_cpp.Llama(str(path), **{"n_ctx": 256, "n_threads": 1, "verbose": False, "seed": 1, "type_k": 0, "type_v": 0} | options)


def greedy(model, prompt, count):
    """Up to `count` ids, without the one that ends the text."""
    out = []
    for token in model.generate(model.tokenize(prompt.encode(), add_bos=True), temp=0.0, top_k=1):
        if token == model.token_eos():
            return out
        out.append(int(token))
        if len(out) == count:
            return out


def generated(path, prompt, count):
    return json.loads(weighbridge("generate", path, "--prompt", prompt, "--max-tokens", count, "--temperature", "0", "--json"))["tokens"]


@with_llama_cpp
@real
@pytest.mark.parametrize("form", ["checkpoint", "folder"])
def test_llama_cpp_continues_stories_as_we_do(tmp_path, form):
    config, blocks = llama2c.read(STORIES.read_bytes())
    weighbridge("convert", STORIES, tmp_path / "model.slm", "--tokenizer", TOK512, "--quiet")
    if form == "checkpoint":
        named(STORIES, tmp_path / "out.gguf", "--tokenizer", TOK512)
    else:
        named(a_folder(tmp_path / "folder", config, blocks), tmp_path / "out.gguf")
        weighbridge("convert", tmp_path / "folder", tmp_path / "model.slm", "--quiet", "--force")
    model = runner(tmp_path / "out.gguf")
    prompts = ["Once upon a time", "Lily and Tom", "The sun"] if form == "checkpoint" else ["abc", "a b", ""]
    for prompt in prompts:
        assert greedy(model, prompt, 100) == generated(tmp_path / "model.slm", prompt, 100), prompt


@with_llama_cpp
def test_llama_cpp_continues_grouped_queries_as_we_do(tmp_path):
    folder = a_folder(tmp_path / "model", GROUPED, llama2c.random_blocks(GROUPED))
    weighbridge("convert", folder, tmp_path / "model.slm", "--quiet")
    named(folder, tmp_path / "out.gguf")
    assert greedy(runner(tmp_path / "out.gguf"), "abcdef", 100) == generated(tmp_path / "model.slm", "abcdef", 100)


@with_llama_cpp
def test_llama_cpp_splits_texts_as_we_do(tmp_path):
    folder = folder_of(tmp_path / "model", GROUPED, llama2c.random_blocks(GROUPED), tokenizer=sentencepiece(400))
    said = json.loads(weighbridge("convert", folder, tmp_path / "out.gguf", "--naming", "llama", "--json", "--allow", "tokenizer"))
    assert any("another order" in loss["to"] for loss in said["losses"]), "its merges are shuffled"
    folder = a_folder(tmp_path / "ordered", GROUPED, llama2c.random_blocks(GROUPED))
    named(folder, tmp_path / "out.gguf")
    weighbridge("convert", folder, tmp_path / "model.slm", "--quiet")
    texts = [text for text in spaced_texts(3, 3000) if "\0" not in text]
    lines = tmp_path / "texts.jsonl"
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    ours = json.loads(weighbridge("tokenize", tmp_path / "model.slm", "--input", lines, "--json"))["inputs"]
    model = runner(tmp_path / "out.gguf", vocab_only=True)
    assert len(ours) == len(texts) > 2900
    for text, one in zip(texts, ours):
        assert model.tokenize(text.encode(), add_bos=True, special=False) == one["ids"], text


@with_llama_cpp
@pytest.mark.skipif(not MINILM.is_dir(), reason="build/demo/all-MiniLM-L6-v2 is missing: tools/fetch-minilm.sh fetches it")
def test_llama_cpp_embeds_as_we_do(tmp_path):
    named(MINILM, tmp_path / "out.gguf")
    texts = ["hello world", "The quick brown fox jumps over the lazy dog.", "\u00c4rger \u00fcber na\u00efve Z\u00fcrcher, \u5317\u4eac is big!",
             "unaffable words; e-mail me at a@b.c", "a" * 90]
    (tmp_path / "texts.txt").write_text("\n".join(texts) + "\n")
    weighbridge("embed", MINILM, "--input", tmp_path / "texts.txt", "-o", tmp_path / "out.npy", "--quiet")
    model = runner(tmp_path / "out.gguf", embedding=True)
    for text, ours in zip(texts, np.load(tmp_path / "out.npy")):
        theirs = np.array(model.embed(text))
        assert ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs) > 0.99999, text


# Back: what llama.cpp's names and metadata describe, as .slm and .weights.

def through_gguf(folder, source, target, *flags, status=0):
    """The GGUF with llama.cpp's names as `target` without them."""
    weighbridge("convert", source, folder / "way.gguf", "--naming", "llama", "--quiet", "--force")
    return weighbridge("convert", folder / "way.gguf", target, "--quiet", "--force", *flags, status=status)


@pytest.mark.parametrize("config", [SMALL, GROUPED, SMALL | {"vocab_size": -SMALL["vocab_size"]}],
                         ids=["small", "grouped", "output of its own"])
@pytest.mark.parametrize("flags", [(), ("--keep-gqa",), ("--quantize", "q8_0"), ("--quantize", "q4_0")], ids=" ".join)
def test_an_slm_by_way_of_gguf_is_the_same_model(tmp_path, config, flags):
    """The list of merges is in another order: GGUF has scores, and merges to one token have the same rank."""
    config, blocks, _, _ = small(tmp_path, config)
    folder = a_folder(tmp_path / "model", config, blocks)
    one, two = tmp_path / "straight.slm", tmp_path / "back.slm"
    weighbridge("convert", folder, one, "--canonical", "--quiet", *flags)
    through_gguf(tmp_path, folder, two, "--canonical", *flags)
    straight, back = (json.loads(weighbridge("inspect", path, "--json"))["files"][0] for path in (one, two))
    assert back["attributes"] == straight["attributes"] and inspected(two) == inspected(one)
    assert content_digest(two) == content_digest(one)
    lines = tmp_path / "texts.jsonl"
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in spaced_texts(5, 500)))
    ids = [json.loads(weighbridge("tokenize", path, "--input", lines, "--json"))["inputs"] for path in (one, two)]
    assert len(ids[0]) > 500 and ids[0] == ids[1]


def test_stories260k_by_way_of_gguf_has_the_same_bytes(tmp_path):
    weighbridge("convert", STORIES, tmp_path / "stories.zt", "--tokenizer", TOK512, "--quiet")
    weighbridge("convert", tmp_path / "stories.zt", tmp_path / "straight.slm", "--canonical", "--quiet")
    through_gguf(tmp_path, tmp_path / "stories.zt", tmp_path / "back.slm", "--canonical")
    assert (tmp_path / "back.slm").read_bytes() == (tmp_path / "straight.slm").read_bytes()


@pytest.mark.parametrize("kind", ["q8_0", "q5_1", "mxfp4"])
def test_blocks_become_what_they_decode_to(tmp_path, kind):
    config, blocks, _, _ = small(tmp_path, GROUPED)
    way, target = tmp_path / "way.gguf", tmp_path / "out.slm"
    reader = named(a_folder(tmp_path / "model", config, blocks), way, "--quantize", kind, "--allow", "precision")
    weighbridge("convert", way, target, "--quiet", status=1)
    weighbridge("convert", way, target, "--quiet", "--allow", "layout")
    assert extracted(target, "layers.1.w3.weight") == tensors_of(reader)["blk.1.ffn_up.weight"].astype("<f4").tobytes()


@pytest.mark.parametrize("changes,words", [
    ({"rope_scaling": {"type": "linear", "factor": 4.0}}, "llama.rope.scaling.factor"),
    ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                       "original_max_position_embeddings": 8192}}, "rope_freqs.weight")], ids=["linear", "llama3"])
def test_what_an_slm_cannot_compute_is_a_blocker(tmp_path, changes, words):
    config, blocks, _, _ = small(tmp_path)
    folder = a_folder(tmp_path / "model", config, blocks, **changes)
    through_gguf(tmp_path, folder, tmp_path / "out.slm", status=1)
    plan = json.loads(weighbridge("convert", tmp_path / "way.gguf", tmp_path / "out.slm", "--dry-run", "--json", status=1))
    assert any(words in item["subject"] for item in plan["blockers"])


@pytest.mark.skipif(not MINILM.is_dir(), reason="all-MiniLM-L6-v2 is missing: make demo fetches it")
def test_weights_by_way_of_gguf_embed_the_same(tmp_path):
    through_gguf(tmp_path, MINILM, tmp_path / "back.weights")
    weighbridge("convert", MINILM, tmp_path / "straight.weights", "--quiet")
    texts = tmp_path / "texts"
    texts.write_text("\n".join(["A scale weighs what crosses it.", "UPPER and lower", "na\u00efve caf\u00e9 \u4e2d\u6587", "x" * 300]) + "\n")
    arrays = []
    for name in ("back", "straight"):
        weighbridge("embed", tmp_path / f"{name}.weights", "--input", texts, "-o", tmp_path / f"{name}.npy", "--quiet")
        arrays.append(np.load(tmp_path / f"{name}.npy"))
    assert np.array_equal(*arrays)
