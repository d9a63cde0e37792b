# SPDX-License-Identifier: Apache-2.0
"""Tests conversions of Llama models into .slm: llama2.c checkpoints and Hugging Face folders against the independent implementations
tests/support/llama2c.py and tests/witness/slm.py, the rotation numerically, and tokenizers against the package `tokenizers`."""
import importlib.util
import json
import random

import pytest

from interop_tools import ROOT, TEST_DATA, all_extracted, ml_dtypes, np, weighbridge

safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh")


def witness(name, folder="witness"):
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", ROOT / f"tests/{folder}/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


slm, llama2c, byte_pair = witness("slm"), witness("llama2c", "support"), witness("byte_pair")
STORIES, TOK512 = TEST_DATA / "llama/stories260K.bin", TEST_DATA / "llama/tok512.bin"
SMALL = {"dim": 24, "hidden_dim": 20, "n_layers": 3, "n_heads": 6, "n_kv_heads": 2, "vocab_size": -300, "seq_len": 40}
real = pytest.mark.skipif(not STORIES.exists(), reason="llama/ is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")


def pieces(count):
    """A vocabulary for checkpoints: single letters, then what random merges of them make."""
    rng, out = random.Random(5), llama2c.byte_pieces()
    texts = [" ", *"abcdefgh", "é", "\u20ac", "\u2581"]
    while len(out) + len(texts) < count:
        text = rng.choice(texts) + rng.choice(texts)
        if text not in texts and " " not in text[1:]:
            texts.append(text)
    scores = list(range(len(texts) - 12))
    rng.shuffle(scores)
    return out + [(float(score), text.encode()) for score, text in zip([-1000.0] * 12 + scores, texts)]


def small(folder, config=SMALL):
    """A checkpoint of random weights and its tokenizer, in files."""
    blocks = llama2c.random_blocks(config)
    (folder / "small.bin").write_bytes(llama2c.write(config, blocks))
    (folder / "small.tok").write_bytes(llama2c.write_tokenizer(pieces(abs(config["vocab_size"]))))
    return config, blocks, folder / "small.bin", folder / "small.tok"


def converted(source, target, *flags):
    weighbridge("convert", source, target, "--quiet", "--force", *flags)
    return slm.read(target)


def values(read):
    return {entry["name"]: slm.values(entry) for entry in read["tensors"]}


def expect_values(read, wanted):
    found = values(read)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert np.array_equal(found[name], array), name


def folder_of(path, config, blocks, tensors=None, tokenizer=None, **changes):
    """A Hugging Face folder; changes: keys of config.json, None to leave one out."""
    path.mkdir()
    settings = llama2c.hugging_face_config(config) | changes
    (path / "config.json").write_text(json.dumps({key: value for key, value in settings.items() if value != "absent"}))
    safetensors.save_file(tensors or llama2c.hugging_face_tensors(config, blocks), path / "model.safetensors",
                          metadata={"format": "pt"})
    (path / "tokenizer.json").write_text(json.dumps(tokenizer or sentencepiece(abs(config["vocab_size"]))))
    return path


def sentencepiece(count, **changes):
    """A tokenizer.json as TinyLlama's is, of the pieces above."""
    texts = [raw.decode().replace(" ", "\u2581") for _, raw in pieces(count)]
    texts = [text.strip("\n") if i < 3 else text for i, text in enumerate(texts)]
    texts = ["_" if text == "\u2581" and i != 259 else text for i, text in enumerate(texts)]
    ids = {text: i for i, text in enumerate(texts)}
    assert len(ids) == count
    merges = [(left, right) for text in texts[259:] for left, right in ((text[:c], text[c:]) for c in range(1, len(text)))
              if left in ids and right in ids]
    random.Random(6).shuffle(merges)
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    out = {"version": "1.0", "truncation": None, "padding": None,
           "added_tokens": [{"id": i, "content": texts[i], **special} for i in range(3)],
           "normalizer": {"type": "Sequence", "normalizers": [
               {"type": "Prepend", "prepend": "\u2581"},
               {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
           "pre_tokenizer": None, "post_processor": None, "decoder": None,
           "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                     "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "vocab": ids,
                     "merges": [" ".join(pair) for pair in merges]}}
    return {**out, **{key: value for key, value in changes.items() if key != "model"},
            "model": out["model"] | changes.get("model", {})}


# ------------------------------------------------------------------------------------------------- checkpoints

@real
@pytest.mark.parametrize("kind", [None, "q8_0", "q4_0"])
def test_stories260k(tmp_path, kind):
    config, blocks = llama2c.read(STORIES.read_bytes())
    wanted = llama2c.slm_tensors(config, blocks)
    read = converted(STORIES, tmp_path / "stories.slm", "--tokenizer", TOK512, *(["--quantize", kind] if kind else []))
    header = read["header"]
    assert {key: header[key] for key in ("vocab_size", "hidden_size", "layer_count", "head_count", "kv_head_count",
                                         "head_dim", "ffn_size", "max_context", "flags")} == {
        "vocab_size": 512, "hidden_size": 64, "layer_count": 5, "head_count": 8, "kv_head_count": 8, "head_dim": 8,
        "ffn_size": 172, "max_context": 512, "flags": 1}
    assert header["rope_theta"] == 10000 and np.float32(header["rms_norm_epsilon"]) == np.float32(1e-5)
    expect_values(read, {name: slm.values(slm.pack(name, array, *slm.target(array.shape, kind or "f32")))
                         for name, array in wanted.items()})
    blocks_of = {entry["name"]: entry["block_size"] for entry in read["tensors"]}
    assert blocks_of["layers.0.w2.weight"] == {None: 0, "q8_0": 172, "q4_0": 4}[kind]


@real
def test_stories260k_is_itself(tmp_path):
    config, blocks = llama2c.read(STORIES.read_bytes())
    listed = json.loads(weighbridge("inspect", "--json", STORIES))["files"][0]
    assert listed["format"] == "llama2c" and listed["attributes"]["tie_word_embeddings"] is True
    content = all_extracted(STORIES)
    for name, block in blocks.items():
        if name in llama2c.LAYERED:
            for layer, array in enumerate(block):
                assert content[f"layers.{layer}.{name}.weight"] == array.tobytes()
        else:
            assert content[name if name.startswith("freq") else name + ".weight"] == block.tobytes()
    weighbridge("convert", "--quiet", STORIES, tmp_path / "stories.zt", "--tokenizer", TOK512)
    assert weighbridge("hash", STORIES).split()[0] == weighbridge("hash", tmp_path / "stories.zt").split()[0]
    # By way of another container it is the same model, tokenizer included.
    one = converted(STORIES, tmp_path / "one.slm", "--tokenizer", TOK512)
    two = converted(tmp_path / "stories.zt", tmp_path / "two.slm")
    assert one["tokenizer"] == two["tokenizer"] and one["layout_checksum"] == two["layout_checksum"]
    expect_values(two, values(one))


@real
def test_tok512(tmp_path):
    _, scored = llama2c.read_tokenizer(TOK512.read_bytes(), 512)
    table = converted(STORIES, tmp_path / "stories.slm", "--tokenizer", TOK512)["tokenizer"]
    assert table["special"] == {"bos": 1, "eos": 2, "pad": 0, "unk": 0}
    assert table["tokens"] == [(i, bytes([i - 3]) if 3 <= i < 259 else raw) for i, (_, raw) in enumerate(scored)]
    assert {merge[:3] for merge in table["merges"]} == llama2c.merges(scored)
    ranked = sorted(table["merges"], key=lambda merge: merge[3])
    assert all(scored[a[2]][0] >= scored[b[2]][0] and (a[3] == b[3]) == (scored[a[2]][0] == scored[b[2]][0])
               for a, b in zip(ranked, ranked[1:]))
    rng, pair = random.Random(12), reader_of(table)
    for _ in range(300):
        text = a_text(rng, [raw.decode() for _, raw in scored[259:]])
        assert pair.encode(text.encode()) == byte_pair.encode_by_scores(scored, text), text


def test_random_checkpoints(tmp_path):
    for seed, changes in enumerate([{}, {"vocab_size": 300}, {"n_kv_heads": 6}, {"n_kv_heads": 1, "n_layers": 1},
                                    {"dim": 2, "n_heads": 1, "n_kv_heads": 1, "hidden_dim": 1, "seq_len": 1}]):
        config, blocks, path, tokens = small(tmp_path, SMALL | changes)
        assert weighbridge("verify", "--quiet", path) == b""
        read = converted(path, tmp_path / "small.slm", "--tokenizer", tokens)
        expect_values(read, llama2c.slm_tensors(config, blocks))
        assert read["header"]["flags"] == (config["vocab_size"] > 0)
        kept = converted(path, tmp_path / "kept.slm", "--tokenizer", tokens, "--keep-gqa")
        assert kept["header"]["kv_head_count"] == config["n_kv_heads"]
        rows = config["dim"] // config["n_heads"] * config["n_kv_heads"]
        wk = values(kept)["layers.0.wk.weight"]
        assert np.array_equal(wk[:rows], blocks["wk"][0]) and not wk[rows:].any()


def test_every_corpus_file_is_judged_alike():
    for path in sorted((ROOT / "corpus/llama2c").glob("*.bin")):
        valid = json.loads(weighbridge_verify(path))["files"][0]["valid"]
        tokens = path.with_suffix(".tokenizer")
        try:
            config, _ = llama2c.read(path.read_bytes())
            if tokens.exists():
                _, found = llama2c.read_tokenizer(tokens.read_bytes(), abs(config["vocab_size"]))
                if [raw for _, raw in found[3:259]] != [raw for _, raw in llama2c.byte_pieces()[3:]]:
                    raise ValueError("The byte tokens are elsewhere.")
        except (ValueError, IndexError, llama2c.struct.error):
            assert not valid, path.name
        else:
            assert valid, path.name


def weighbridge_verify(path):
    import subprocess
    from interop_tools import COMMAND
    return subprocess.run([COMMAND, "verify", "--json", path], capture_output=True, timeout=60).stdout


# --------------------------------------------------------------------------------------------- Hugging Face folders

def attention(x, wq, wk, heads, rotate, theta=10000.0):
    """Scores q . k of each head and pair of positions, in f64."""
    count, head = len(x), wq.shape[0] // heads
    angles = np.outer(np.arange(count), theta ** (-np.arange(0, head, 2) / head))[:, None, :]
    q, k = ((x @ w.astype(float).T).reshape(count, heads, head) for w in (wq, wk))
    return np.einsum("ihd,jhd->hij", rotate(q, angles), rotate(k, angles))


def rotate_neighbors(v, angles):
    a, b = v[..., 0::2], v[..., 1::2]
    return np.stack([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], -1).reshape(v.shape)


def rotate_halves(v, angles):
    """transformers' apply_rotary_pos_emb: x cos + rotate_half(x) sin, cos and sin once for each half."""
    half = v.shape[-1] // 2
    cos, sin = (np.concatenate([f(angles), f(angles)], -1) for f in (np.cos, np.sin))
    return v * cos + np.concatenate([-v[..., half:], v[..., :half]], -1) * sin


def test_the_rotation_is_the_same_in_numbers(tmp_path):
    """Random weights in transformers' layout give transformers' attention scores when an .slm's rotation reads the .slm."""
    config = SMALL | {"n_kv_heads": 6}
    blocks = llama2c.random_blocks(config)
    tensors = llama2c.hugging_face_tensors(config, blocks)
    read = values(converted(folder_of(tmp_path / "model", config, blocks), tmp_path / "model.slm"))
    x = np.random.default_rng(3).standard_normal((9, config["dim"]))
    for layer in range(config["n_layers"]):
        own = (f"model.layers.{layer}.self_attn.{name}_proj.weight" for name in "qk")
        theirs = attention(x, *(tensors[name] for name in own), config["n_heads"], rotate_halves)
        ours = attention(x, *(read[f"layers.{layer}.{name}.weight"] for name in ("wq", "wk")), config["n_heads"],
                         rotate_neighbors)
        assert np.abs(theirs - ours).max() < 1e-9
        wrong = attention(x, *(tensors[f"model.layers.{layer}.self_attn.{name}_proj.weight"] for name in "qk"),
                          config["n_heads"], rotate_neighbors)
        assert np.abs(theirs - wrong).max() > 1e-3


@pytest.mark.parametrize("kind", [None, "q8_0", "q4_0"])
@pytest.mark.parametrize("changes", [{}, {"vocab_size": 300}, {"n_kv_heads": 6}])
def test_a_folder_and_a_checkpoint_become_the_same(tmp_path, changes, kind):
    config, blocks, path, tokens = small(tmp_path, SMALL | changes)
    flags = ["--quantize", kind] if kind else []
    one = converted(path, tmp_path / "one.slm", "--tokenizer", tokens, *flags)
    two = converted(folder_of(tmp_path / "model", config, blocks), tmp_path / "two.slm", *flags)
    assert {e["name"]: (e["dtype"], e["payload"], e["scales"]) for e in one["tensors"]} == {
        e["name"]: (e["dtype"], e["payload"], e["scales"]) for e in two["tensors"]}
    differing = {key for key in one["header"] if one["header"][key] != two["header"][key]}
    assert differing <= {"checksum", "tokenizer_length", "tensor_directory_offset", "tensor_data_offset"}


@real
def test_stories260k_as_a_folder(tmp_path):
    config, blocks = llama2c.read(STORIES.read_bytes())
    one = converted(STORIES, tmp_path / "one.slm", "--tokenizer", TOK512)
    two = converted(folder_of(tmp_path / "model", config, blocks), tmp_path / "two.slm")
    expect_values(two, values(one))


def test_a_folder_of_int8_layers_runs_by_its_numbers(tmp_path):
    config, blocks, _, _ = small(tmp_path)
    stored = {}
    for name, array in llama2c.hugging_face_tensors(config, blocks).items():
        if array.ndim < 2 or "embed" in name:
            stored[name] = array
            continue
        scale = (np.abs(array).max(1, keepdims=True) / 127).astype(np.float32)
        stored[name], stored[name + "_scale"] = np.rint(array / scale).astype(np.int8), scale
    folder, dense = folder_of(tmp_path / "int8", config, blocks, stored), tmp_path / "dense"
    weighbridge("convert", "--quiet", folder, f"{dense}/", "--dequantize")
    one, two = (json.loads(weighbridge("generate", path, "-p", "a", "-n", "8", "--json"))["tokens"] for path in (folder, dense))
    assert one == two and len(one) == 8
    expect_values(converted(folder, tmp_path / "one.slm"), values(converted(dense, tmp_path / "two.slm")))


def test_by_way_of_other_containers_and_back(tmp_path):
    config, blocks, _, _ = small(tmp_path)
    folder = folder_of(tmp_path / "model", config, blocks)
    direct = converted(folder, tmp_path / "direct.slm")
    weighbridge("convert", "--quiet", folder, tmp_path / "model.zt")
    again = converted(tmp_path / "model.zt", tmp_path / "again.slm")
    assert again["tokenizer"] == direct["tokenizer"]
    expect_values(again, values(direct))
    weighbridge("convert", "--quiet", tmp_path / "model.zt", "--allow", "tokenizer", str(tmp_path / "back") + "/")
    assert json.loads((tmp_path / "back/config.json").read_text()) == json.loads((folder / "config.json").read_text())
    for name, array in safetensors.load_file(tmp_path / "back/model.safetensors").items():
        assert np.array_equal(array, llama2c.hugging_face_tensors(config, blocks)[name]), name


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_widths_are_widened_or_quantized(tmp_path, dtype):
    config, blocks, _, _ = small(tmp_path)
    narrow = {name: array.astype(dtype) for name, array in llama2c.hugging_face_tensors(config, blocks).items()}
    folder = folder_of(tmp_path / "model", config, blocks, tensors=narrow)
    rounded = {name: block.astype(dtype).astype("<f4") for name, block in blocks.items()}
    wanted = llama2c.slm_tensors(config, rounded)
    expect_values(converted(folder, tmp_path / "model.slm"), wanted)
    expect_values(converted(folder, tmp_path / "model.slm", "--quantize", "q8_0"),
                  {name: slm.values(slm.pack(name, array, *slm.target(array.shape, "q8_0"))) for name, array in wanted.items()})


def test_shards(tmp_path):
    config, blocks, _, _ = small(tmp_path)
    folder = folder_of(tmp_path / "model", config, blocks)
    whole = converted(folder, tmp_path / "whole.slm")
    tensors, index = safetensors.load_file(folder / "model.safetensors"), {}
    (folder / "model.safetensors").unlink()
    for shard in range(3):
        name = f"model-{shard + 1:05}-of-00003.safetensors"
        part = {key: array for i, (key, array) in enumerate(sorted(tensors.items())) if i % 3 == shard}
        safetensors.save_file(part, folder / name, metadata={"format": "pt"})
        index |= dict.fromkeys(part, name)
    (folder / "model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {"total_size": sum(a.nbytes for a in tensors.values())}, "weight_map": index}))
    expect_values(converted(folder, tmp_path / "shards.slm"), values(whole))


# --------------------------------------------------------------------------------------------------- tokenizers

def reader_of(table):
    return byte_pair.BytePair(table["vocab_size"], [table["special"][name] for name in slm.SPECIAL], table["tokens"],
                              table["merges"])


def a_text(rng, parts):
    def other():
        low, high = rng.choice([(0, 0x80), (0x20, 0x7F), (0x80, 0x800), (0x800, 0x2500), (0xE000, 0x10000), (0x10000, 0x110000)])
        return chr(rng.randrange(low, high))
    return "".join(rng.choice(parts) if rng.random() < 0.7 else other() for _ in range(rng.randrange(30)))


def judge_tokenizer(tmp_path, tokenizer, texts, *flags, count=300):
    """How many of the texts the .slm's table and the package encode differently, control tokens aside."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is missing: tools/python-environments.sh")
    config = SMALL | {"vocab_size": count}
    folder = folder_of(tmp_path / "model", config, llama2c.random_blocks(config), tokenizer=tokenizer)
    pair = reader_of(converted(folder, tmp_path / "model.slm", *flags)["tokenizer"])
    referee = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    return sum(pair.encode(text.encode()) != referee.encode(text, add_special_tokens=False).ids for text in texts)


def spaced_texts(seed, count=1500):
    rng = random.Random(seed)
    parts = [raw.decode() for _, raw in pieces(400)[259:]] + ["  ", "\n", "a", "b"]
    return ["", " ", "  ", "a  b"] + [a_text(rng, parts).replace("\u2581", "") for _ in range(count)]


def test_a_sentencepiece_vocabulary_is_encoded_the_same(tmp_path):
    assert judge_tokenizer(tmp_path, sentencepiece(400), spaced_texts(1), count=400) == 0


@pytest.mark.parametrize("scheme,split", [("first", False), ("always", False), ("first", True)])
def test_a_metaspace_vocabulary_is_encoded_the_same(tmp_path, scheme, split):
    """Except for texts that begin with a space, about which opening warns."""
    tokenizer = sentencepiece(400, normalizer=None, pre_tokenizer={
        "type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split})
    # A merge that goes on past a space fires only where nothing splits there.
    vocabulary = tokenizer["model"]["vocab"]
    last = next(text for text, number in vocabulary.items() if number == 399)
    del vocabulary[last]
    tokenizer["model"]["merges"] = [m for m in tokenizer["model"]["merges"] if m.replace(" ", "", 1) != last]
    vocabulary["a\u2581"] = 399
    tokenizer["model"]["merges"].insert(0, "a \u2581")
    texts = [text for text in spaced_texts(2) + ["a a", "ba a b"] if not text.startswith(" ")]
    assert judge_tokenizer(tmp_path, tokenizer, texts, count=400) == 0
    shown = weighbridge("verify", tmp_path / "model").decode()
    assert "hf/leading-space" in shown


def byte_level(count, **changes):
    """A vocabulary as GPT-2's, with one token for the start and end of a text."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is missing: tools/python-environments.sh")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    ids, merges, rng = {text: i for i, text in enumerate(alphabet)}, [], random.Random(9)
    byte = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    seeds = [byte.pre_tokenize_str(text)[0][0] for text in (" a", "ab", "é", "\u20ac", "b ", "1a")]
    for seed in seeds:
        for end in range(2, len(seed) + 1):
            if seed[:end] not in ids:
                ids[seed[:end]] = len(ids)
                merges.append(f"{seed[:end - 1]} {seed[end - 1]}")
    while len(ids) < count - 1:
        left, right = rng.choice(list(ids)), rng.choice(list(ids))
        if left + right not in ids and len(left + right) < 8:
            ids[left + right] = len(ids)
            merges.append(f"{left} {right}")
    ids["<|end|>"] = count - 1
    return {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
            "added_tokens": [{"id": count - 1, "content": "<|end|>", "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True}],
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False} | changes,
            "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": ids, "merges": merges}}


def end_ids(folder, number):
    config = json.loads((folder / "config.json").read_text()) | {"bos_token_id": number, "eos_token_id": number}
    (folder / "config.json").write_text(json.dumps(config))


def test_a_byte_level_vocabulary(tmp_path):
    """Exact without a regular expression and with BOS; otherwise a loss of kind tokenizer, but still a valid .slm."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is missing: tools/python-environments.sh")
    config = SMALL | {"vocab_size": 320}
    rng = random.Random(4)
    texts = ["", " "] + [a_text(rng, [" a", "ab", "é", "\u20ac", "b ", "1a", "aa  b"]) for _ in range(1500)]
    frame = [{"SpecialToken": {"id": "<|end|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    with_bos = {"post_processor": {"type": "TemplateProcessing", "single": frame, "pair": frame,
                                   "special_tokens": {"<|end|>": {"id": "<|end|>", "ids": [319], "tokens": ["<|end|>"]}}}}
    for name, changes, word in (("plain", {}, None), ("regex", {"use_regex": True}, "regular expression"), ("bare", None, "no BOS")):
        tokenizer = byte_level(320, **(changes or {})) | ({} if changes is None else with_bos)
        folder = folder_of(tmp_path / name, config, llama2c.random_blocks(config), tokenizer=tokenizer)
        end_ids(folder, 319)
        flags = ["--allow", "tokenizer"] if word else []
        if word:
            refused = json.loads(weighbridge("convert", "--json", folder, tmp_path / "no.slm", status=1))
            assert [loss["kind"] for loss in refused["losses"] if loss["kind"] != "file"] == ["tokenizer"]
            assert word in refused["losses"][0]["from"]
            # The same by way of another container.
            weighbridge("convert", "--quiet", folder, tmp_path / f"{name}.zt")
            weighbridge("convert", "--quiet", tmp_path / f"{name}.zt", tmp_path / "no.slm", status=1)
        table = converted(folder, tmp_path / f"{name}.slm", *flags)["tokenizer"]
        assert table["special"] == dict.fromkeys(slm.SPECIAL, 319)
        pair = reader_of(table)
        referee = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        wrong = sum(pair.encode(text.encode()) != referee.encode(text, add_special_tokens=False).ids for text in texts)
        assert (wrong > 0) == bool(changes)


LOSSY = {
    "normalizer": ({"normalizer": {"type": "NFKC"}}, "NFKC"),
    "lower case": ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}}, "Lowercase"),
    "splits": ({"pre_tokenizer": {"type": "Whitespace"}}, "Whitespace"),
    "ignore_merges": ({"model": {"ignore_merges": True}}, "whole words"),
    "dropout": ({"model": {"dropout": 0.1}}, "at random"),
    "no fallback": ({"model": {"byte_fallback": False}}, "no bytes"),
    "no prefix": ({"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}}, "no space before"),
}


@pytest.mark.parametrize("name", LOSSY)
def test_what_a_table_cannot_do_is_a_loss(tmp_path, name):
    changes, word = LOSSY[name]
    config = SMALL | {"vocab_size": 400}
    folder = folder_of(tmp_path / "model", config, llama2c.random_blocks(config), tokenizer=sentencepiece(400, **changes))
    refused = json.loads(weighbridge("convert", "--json", folder, tmp_path / "no.slm", status=1))
    assert refused["blockers"] == [] and [loss["kind"] for loss in refused["losses"] if loss["kind"] != "file"] == ["tokenizer"]
    assert word in refused["losses"][0]["from"]
    converted(folder, tmp_path / "yes.slm", "--allow", "tokenizer")


def test_added_tokens_are_a_loss(tmp_path):
    tokenizer = sentencepiece(400)
    tokenizer["added_tokens"].append({"id": 399, "content": next(t for t, i in tokenizer["model"]["vocab"].items() if i == 399),
                                      "special": False})
    config = SMALL | {"vocab_size": 400}
    folder = folder_of(tmp_path / "model", config, llama2c.random_blocks(config), tokenizer=tokenizer)
    refused = json.loads(weighbridge("convert", "--json", folder, tmp_path / "no.slm", status=1))
    assert "finds 1 added tokens" in refused["losses"][0]["from"]


# ------------------------------------------------------------------------------------------------- what is refused

BLOCKED = {"hidden_act": "gelu", "attention_bias": True, "mlp_bias": True, "sliding_window": 4096, "head_dim": 8,
           "model_type": "mistral", "rope_scaling": {"type": "linear", "factor": 2.0}, "num_hidden_layers": "many"}


@pytest.mark.parametrize("key", BLOCKED)
def test_another_architecture_is_a_blocker(tmp_path, key):
    folder = folder_of(tmp_path / "model", SMALL, llama2c.random_blocks(SMALL), **{key: BLOCKED[key]})
    refused = json.loads(weighbridge("convert", "--json", folder, tmp_path / "no.slm", status=1))
    assert f'attributes["hf.{key}"]' in {item["subject"] for item in refused["blockers"]}


def test_newer_and_older_configurations(tmp_path):
    blocks = llama2c.random_blocks(SMALL)
    newer = folder_of(tmp_path / "newer", SMALL, blocks, rope_theta="absent", head_dim=4, rope_scaling="absent",
                      rope_parameters={"rope_theta": 500000.0, "rope_type": "default"})
    assert converted(newer, tmp_path / "newer.slm")["header"]["rope_theta"] == 500000
    older = folder_of(tmp_path / "older", SMALL | {"n_kv_heads": 6}, llama2c.random_blocks(SMALL | {"n_kv_heads": 6}),
                      rope_theta="absent", num_key_value_heads="absent", attention_bias="absent", rope_scaling="absent")
    assert converted(older, tmp_path / "older.slm")["header"]["rope_theta"] == 10000
    unknown = folder_of(tmp_path / "unknown", SMALL, blocks, logit_scale=2.0)
    refused = json.loads(weighbridge("convert", "--json", unknown, tmp_path / "no.slm", status=1))
    assert [(loss["kind"], loss["subject"]) for loss in refused["losses"] if loss["kind"] != "file"] == [("attribute", 'attributes["hf.logit_scale"]')]


def test_biases_and_rotation_tables(tmp_path):
    blocks = llama2c.random_blocks(SMALL)
    tensors = llama2c.hugging_face_tensors(SMALL, blocks)
    tables = tensors | {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": np.ones(2, np.float32) for i in range(3)}
    read = converted(folder_of(tmp_path / "tables", SMALL, blocks, tensors=tables), tmp_path / "tables.slm")
    expect_values(read, llama2c.slm_tensors(SMALL, blocks))
    biased = tensors | {"model.layers.1.self_attn.q_proj.bias": np.ones(24, np.float32)}
    folder = folder_of(tmp_path / "biased", SMALL, blocks, tensors=biased)
    refused = json.loads(weighbridge("convert", "--json", folder, tmp_path / "no.slm", status=1))
    assert [item["subject"] for item in refused["blockers"]] == ['tensors["model.layers.1.self_attn.q_proj.bias"]']
