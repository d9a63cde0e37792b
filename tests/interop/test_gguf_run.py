# SPDX-License-Identifier: Apache-2.0
"""Running GGUF: models that the package gguf writes, with grouped queries, scaled rotations and every form of weights, beside llama.cpp
where llama-cpp-python brings it, and beside the same model in other containers. Real encoders give the vectors of their .weights."""
import json
import subprocess
import sys

import pytest

from interop_tools import COMMAND, np, weighbridge
from test_gguf_naming import (GROUPED, MINILM, a_folder, generated, greedy, llama2c, named, real, runner, with_llama_cpp, STORIES, TOK512)

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
BYTES = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)] + ["\u2581", "a", "b", "ab", "\u2581ab"]


def llama(path, kind="F32", seed=0, hidden=64, heads=8, groups=2, layers=3, ffn=96, extra=(), tensors=None):
    """A random Llama; matrices of the kind."""
    rng, vocabulary = np.random.default_rng(seed), len(BYTES)
    head = hidden // heads
    shapes = {"token_embd.weight": (vocabulary, hidden), "output_norm.weight": (hidden,), "output.weight": (vocabulary, hidden)}
    for layer in range(layers):
        at = f"blk.{layer}."
        shapes |= {at + "attn_norm.weight": (hidden,), at + "ffn_norm.weight": (hidden,), at + "attn_q.weight": (hidden, hidden),
                   at + "attn_k.weight": (groups * head, hidden), at + "attn_v.weight": (groups * head, hidden),
                   at + "attn_output.weight": (hidden, hidden), at + "ffn_gate.weight": (ffn, hidden),
                   at + "ffn_up.weight": (ffn, hidden), at + "ffn_down.weight": (hidden, ffn)}
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in (("block_count", layers), ("context_length", 256), ("embedding_length", hidden), ("feed_forward_length", ffn),
                        ("attention.head_count", heads), ("attention.head_count_kv", groups), ("rope.dimension_count", head)):
        writer.add_uint32("llama." + name, value)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", 1e-5)
    for kind_of, key, value in extra:
        getattr(writer, "add_" + kind_of)(key, value)
    writer.add_string("tokenizer.ggml.model", "llama")
    writer.add_array("tokenizer.ggml.tokens", BYTES)
    writer.add_array("tokenizer.ggml.scores", [float(-i) for i in range(vocabulary)])
    writer.add_array("tokenizer.ggml.token_type", [2, 3, 3] + [6] * 256 + [1] * (vocabulary - 259))
    writer.add_uint32("tokenizer.ggml.bos_token_id", 1)
    writer.add_uint32("tokenizer.ggml.eos_token_id", 2)
    quantized = gguf.GGMLQuantizationType[kind]
    for name, shape in shapes.items():
        array = rng.standard_normal(shape).astype(np.float32) / (1 if len(shape) == 1 else 4)
        if len(shape) == 2 and kind != "F32":
            writer.add_tensor(name, gguf.quants.quantize(array, quantized), raw_dtype=quantized)
        else:
            writer.add_tensor(name, array)
    for name, array in (tensors or {}).items():
        writer.add_tensor(name, array)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    return path


def likelihood(path, text):
    path.with_suffix(".txt").write_text(text)
    return json.loads(weighbridge("perplexity", path, "--input", path.with_suffix(".txt"), "--json"))["mean_nll"]


@with_llama_cpp
@pytest.mark.parametrize("groups", [1, 2, 4, 8])
@pytest.mark.parametrize("seed", range(3))
def test_llama_cpp_continues_as_we_do(tmp_path, groups, seed):
    path = llama(tmp_path / "m.gguf", groups=groups, seed=seed)
    theirs = greedy(runner(path), "ab ab", 100)
    assert generated(path, "ab ab", 100) == theirs


@with_llama_cpp
@pytest.mark.parametrize("extra", [
    [("float32", "llama.rope.freq_base", 500000.0)],
    [("string", "llama.rope.scaling.type", "linear"), ("float32", "llama.rope.scaling.factor", 4.0)]], ids=["base", "linear"])
def test_llama_cpp_rotates_as_we_do(tmp_path, extra):
    path = llama(tmp_path / "m.gguf", extra=extra)
    theirs = greedy(runner(path), "ab ab", 100)
    assert generated(path, "ab ab", 100) == theirs
    assert theirs != generated(llama(tmp_path / "plain.gguf"), "ab ab", 100)


@with_llama_cpp
def test_llama_cpp_divides_frequencies_as_we_do(tmp_path):
    factors = np.array([1.0, 1.5, 3.0, 8.0], np.float32)
    path = llama(tmp_path / "m.gguf", tensors={"rope_freqs.weight": factors})
    theirs = greedy(runner(path), "ab ab", 100)
    assert generated(path, "ab ab", 100) == theirs
    assert theirs != generated(llama(tmp_path / "plain.gguf"), "ab ab", 100)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"])
def test_weights_count_as_their_values(tmp_path, kind):
    """llama.cpp rounds activations too, so the model with the same values in f32 is the witness."""
    path = llama(tmp_path / "m.gguf", kind)
    weighbridge("convert", path, tmp_path / "dense.gguf", "--cast", "f32", "--quiet", "--allow", "layout")
    text = "ab ba aab b" * 5
    assert likelihood(path, text) == pytest.approx(likelihood(tmp_path / "dense.gguf", text), abs=1e-5)
    assert generated(path, "ab", 60) == generated(tmp_path / "dense.gguf", "ab", 60)


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_16_bit_weights_give_the_bits_of_f32(tmp_path, kind):
    """They are widened while they are multiplied, in the order of f32."""
    path = llama(tmp_path / "m.gguf", kind)
    weighbridge("convert", path, tmp_path / "dense.gguf", "--cast", "f32", "--quiet")
    assert likelihood(path, "ab ba aab b" * 5) == likelihood(tmp_path / "dense.gguf", "ab ba aab b" * 5)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0"])
def test_fast_blocks_are_near_the_exact_ones(tmp_path, kind):
    path = llama(tmp_path / "m.gguf", kind)
    (tmp_path / "text").write_text("ab ba aab b" * 5)
    fast = json.loads(weighbridge("perplexity", path, "--input", tmp_path / "text", "--precision", "fast", "--json"))["mean_nll"]
    exact = likelihood(path, "ab ba aab b" * 5)
    assert fast != exact and fast == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q5_1"])
def test_compressed_weights_are_decompressed_before_they_count(tmp_path, kind):
    """Blocks of q4_0 were once taken from the compressed bytes, and from what followed them in memory."""
    path = llama(tmp_path / "m.gguf", kind)
    weighbridge("convert", path, tmp_path / "m.zt", "--encoding", "zstd", "--quiet")
    assert likelihood(tmp_path / "m.zt", "ab ba aab b" * 5) == likelihood(path, "ab ba aab b" * 5)


def peak_of(path):
    """Bytes at the peak. Measured by a small process, because a child inherits the peak of the one that forks it."""
    script = """if True:
        import resource, subprocess, sys
        subprocess.run(sys.argv[1:], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)"""
    words = [COMMAND, "generate", path, "--prompt", "ab", "--max-tokens", "2", "--threads", "1"]
    return int(subprocess.run([sys.executable, "-S", "-E", "-c", script, *words], check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0", "Q4_0", "Q5_1"])
def test_weights_take_the_memory_of_their_file(tmp_path, kind):
    """They were once decoded to f32 in memory as well. For the other types, one copy in f32 is kept."""
    path = llama(tmp_path / "m.gguf", kind, hidden=512, ffn=1536, layers=2)
    expected = path.stat().st_size * 1.25 if kind != "Q5_1" else 4 * 6.1e6
    assert peak_of(path) - peak_of(llama(tmp_path / "small.gguf", kind)) < expected + 12e6


@real
def test_stories_are_the_same_in_every_container(tmp_path):
    weighbridge("convert", STORIES, tmp_path / "model.slm", "--tokenizer", TOK512, "--quiet")
    named(STORIES, tmp_path / "model.gguf", "--tokenizer", TOK512)
    for prompt in ("Once upon a time", "The cat"):
        assert generated(tmp_path / "model.gguf", prompt, 100) == generated(tmp_path / "model.slm", prompt, 100)
    assert likelihood(tmp_path / "model.gguf", "Once upon a time") == likelihood(tmp_path / "model.slm", "Once upon a time")


@pytest.mark.parametrize("scaling", [None, {"rope_type": "linear", "factor": 2.0},
                                     {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                      "original_max_position_embeddings": 16}], ids=str)
def test_a_folder_runs_as_its_gguf_does(tmp_path, scaling):
    folder = a_folder(tmp_path / "model", GROUPED, llama2c.random_blocks(GROUPED), rope_scaling=scaling)
    named(folder, tmp_path / "model.gguf")
    assert generated(folder, "abcdef", 60) == generated(tmp_path / "model.gguf", "abcdef", 60)
    if scaling is None:
        weighbridge("convert", folder, tmp_path / "model.slm", "--quiet")
        assert generated(folder, "abcdef", 60) == generated(tmp_path / "model.slm", "abcdef", 60)


def test_a_text_ends_at_each_end_that_the_file_declares(tmp_path):
    ids = generated(llama(tmp_path / "plain.gguf"), "ab ab", 40)
    first = next(i for i, id in enumerate(ids) if i > 4 and id not in ids[:i])
    for key in ("eot_token_id", "eom_token_id"):
        path = llama(tmp_path / f"{key}.gguf", extra=[("uint32", "tokenizer.ggml." + key, ids[first])])
        assert generated(path, "ab ab", 40) == ids[:first]


@with_llama_cpp
def test_llama_cpp_ends_a_text_where_we_do(tmp_path):
    ids = generated(llama(tmp_path / "plain.gguf"), "ab ab", 40)
    first = next(i for i, id in enumerate(ids) if i > 4 and id not in ids[:i])
    path = llama(tmp_path / "eot.gguf", extra=[("uint32", "tokenizer.ggml.eot_token_id", ids[first])])
    import llama_cpp
    model = runner(path)
    assert llama_cpp.llama_vocab_is_eog(model._model.vocab, ids[first]) and not llama_cpp.llama_vocab_is_eog(model._model.vocab, ids[0])


def test_perplexity_puts_bos_before_a_text_only_where_the_file_says_so(tmp_path):
    """Once, it always did. Without BOS, the first token has nothing before it and is not scored."""
    text = "ab ba aab b" * 3
    said = {}
    for name, extra in (("unset", []), ("with", [("bool", "tokenizer.ggml.add_bos_token", True)]),
                        ("without", [("bool", "tokenizer.ggml.add_bos_token", False)])):
        path = llama(tmp_path / f"{name}.gguf", extra=extra)
        (tmp_path / "text.txt").write_text(text)
        said[name] = json.loads(weighbridge("perplexity", path, "--input", tmp_path / "text.txt", "--json"))
    assert said["unset"]["mean_nll"] == said["with"]["mean_nll"] and said["without"]["tokens"] == said["with"]["tokens"] - 1
    assert said["without"]["mean_nll"] != said["with"]["mean_nll"]


@pytest.mark.parametrize("place", ["config.json", "generation_config.json"])
def test_a_folder_ends_a_text_at_each_of_its_eos_token_ids(tmp_path, place):
    folder = a_folder(tmp_path / "model", GROUPED, llama2c.random_blocks(GROUPED))
    ids = generated(folder, "abcdef", 40)
    first = next(i for i, id in enumerate(ids) if i > 4 and id not in ids[:i])
    config = json.loads((folder / place).read_text()) if place == "config.json" else {}
    (folder / place).write_text(json.dumps(config | {"eos_token_id": [2, ids[first]]}))
    assert generated(folder, "abcdef", 40) == ids[:first]
    named(folder, tmp_path / "out.gguf")
    assert generated(tmp_path / "out.gguf", "abcdef", 40) == ids[:first]
    assert gguf.GGUFReader(tmp_path / "out.gguf").fields["tokenizer.ggml.eot_token_id"].contents() == ids[first]
    said = json.loads(weighbridge("convert", folder, tmp_path / "out.slm", "--json", status=1))
    assert any("1 more token ends" in loss["from"] for loss in said["losses"])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ends_beyond_the_keys_of_llama_cpp_are_a_loss(tmp_path, count):
    folder = a_folder(tmp_path / "model", GROUPED, llama2c.random_blocks(GROUPED), eos_token_id=[2, 300, 301, 302][:count + 1])
    said = json.loads(weighbridge("convert", folder, tmp_path / "out.gguf", "--naming", "llama", "--json", status=1 if count == 3 else 0))
    assert any("without 1 more" in loss["to"] for loss in said["losses"]) == (count == 3)


@pytest.mark.parametrize("extra,word", [
    ([("uint32", "llama.expert_count", 8)], "expert_count"), ([("uint32", "llama.attention.sliding_window", 4)], "sliding_window"),
    ([("string", "llama.rope.scaling.type", "yarn")], "yarn"), ([("float32", "llama.logit_scale", 0.5)], "logit_scale")], ids=str)
def test_what_is_not_computed_is_refused_by_name(tmp_path, extra, word):
    path = llama(tmp_path / "m.gguf", extra=extra)
    said = json.loads(weighbridge("generate", path, "--prompt", "a", "--json", status=3))
    assert word in said["findings"][0]["message"]


def test_a_tensor_that_is_not_computed_is_refused_by_name(tmp_path):
    path = llama(tmp_path / "m.gguf", tensors={"blk.0.attn_q.bias": np.zeros(64, np.float32)})
    said = json.loads(weighbridge("generate", path, "--prompt", "a", "--json", status=3))
    assert "attn_q.bias" in said["findings"][0]["message"]


def test_another_architecture_is_refused_by_name(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "qwen2")
    writer.add_tensor("token_embd.weight", np.zeros((4, 4), np.float32))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    for verb in (["generate", tmp_path / "m.gguf", "--prompt", "a"], ["embed", tmp_path / "m.gguf", "a"]):
        assert "qwen2" in json.loads(weighbridge(*verb, "--json", status=3))["findings"][0]["message"]


@pytest.mark.skipif(not MINILM.is_dir(), reason="build/demo/all-MiniLM-L6-v2 is missing: tools/fetch-minilm.sh fetches it")
@pytest.mark.parametrize("flags", [[], ["--quantize", "f16"], ["--quantize", "q8_0"]], ids=" ".join)
def test_a_real_encoder_gives_the_same_vectors(tmp_path, flags):
    named(MINILM, tmp_path / "out.gguf", *flags)
    texts = tmp_path / "texts.txt"
    texts.write_text("hello world\nThe quick brown fox.\n\u00c4rger \u00fcber \u5317\u4eac\n")
    vectors = []
    for model in (MINILM, tmp_path / "out.gguf"):
        weighbridge("embed", model, "--input", texts, "-o", tmp_path / "out.npy", "--quiet", "--force")
        vectors.append(np.load(tmp_path / "out.npy"))
    if flags:
        assert (vectors[0] * vectors[1]).sum(1).min() > 0.999
    else:
        assert np.array_equal(*vectors)
