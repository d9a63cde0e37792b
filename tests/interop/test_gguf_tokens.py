# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of GGUF: the real vocabularies of llama.cpp with the ids that it gives to its own test texts, and random texts beside
llama.cpp itself where llama-cpp-python brings it. Byte-level tokenizers of Hugging Face folders: random texts beside the package
`tokenizers`, and their GGUF beside llama.cpp."""
import functools
import importlib.util
import json
import os
import pathlib
import random
import unicodedata

import pytest

from interop_tools import ROOT, weighbridge
from test_gguf_naming import GROUPED, llama2c, named
from test_llama import folder_of

FOLDER = ROOT / "build/demo/gguf"
RUN = ["bert-bge", "command-r", "deepseek-coder", "falcon", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35",
       "refact", "starcoder"]
OTHERS = {"deepseek-llm": "deepseek-llm", "gemma-4": "gemma4"}  # with vectors, of kinds that are not here
fetched = pytest.mark.skipif(not FOLDER.is_dir(), reason="build/demo/gguf is missing: tools/fetch-vocabularies.sh fetches it")
with_llama_cpp = pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None,
                                    reason="llama-cpp-python is missing: make interop PEER=llama installs it")


def path_of(name):
    return FOLDER / f"ggml-vocab-{name}.gguf"


def tokenized(name, texts, folder, *options):
    lines = folder / "texts.jsonl"
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    said = weighbridge("tokenize", path_of(name), "--input", lines, "--json", "--max-length", "1000000", *options)
    return [one["ids"] for one in json.loads(said)["inputs"]]


@fetched
@pytest.mark.parametrize("name", RUN)
def test_real_vocabularies_give_the_ids_of_their_vectors(tmp_path, name):
    texts = path_of(name).with_suffix(".gguf.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    wanted = [[int(word) for word in line.split()] for line in path_of(name).with_suffix(".gguf.out").read_text().split("\n")]
    found = tokenized(name, texts, tmp_path, "--no-special")
    assert len(texts) > 40
    for text, one, ids in zip(texts, found, wanted):
        assert one == ids, text


@fetched
@pytest.mark.parametrize("name", OTHERS)
def test_other_kinds_are_refused_by_name(name):
    assert OTHERS[name].encode() in weighbridge("tokenize", path_of(name), "text", "--json", status=3)


def random_texts(count):
    rng = random.Random(7)
    parts = [" ", "  ", "    ", "\n", "\r\n", "\t", "Hello", "world", "don't", "I'LL", "12", "3456789", "3.14", "!?", "...", "->", "()",
             "caf\u00e9", "stra\u00dfe", "\u4e2d\u6587", "\u65e5\u672c\u8a9e", "\u0420\u0443\u0441", "\u0627\u0644", "\U0001f999", "\u200d", "\u3000",
             "a\u0301", "_x_", "https://a.b/c?d=1", "<s>", "<|x|>", "##", "@", "\u2581", "==", "\u00a0"]

    def one():
        low, high = rng.choice([(0x20, 0x7F), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0xFFFE), (0x10000, 0x1FAFF)])
        return chr(rng.randrange(low, high))
    return ["".join(rng.choice(parts) if rng.random() < 0.8 else one() for _ in range(rng.randrange(1, 25))) for _ in range(count)]


@fetched
@with_llama_cpp
@pytest.mark.parametrize("name", [name for name in RUN if name not in ("bert-bge", "phi-3")])
def test_random_texts_beside_llama_cpp(tmp_path, name):
    import llama_cpp
    model = llama_cpp.Llama(str(path_of(name)), vocab_only=True, verbose=False)
    texts = random_texts(3000)
    different = [(text, ours, theirs) for text, ours in zip(texts, tokenized(name, texts, tmp_path, "--no-special"))
                 if ours != (theirs := model.tokenize(text.encode(), add_bos=False, special=False))]
    assert not different, (len(different), different[:3])


# Byte-level tokenizers of folders.

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is missing: tools/python-environments.sh makes the environment")
CONTRACTIONS, END = "(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END
QWEN2 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|" + END
QWEN35 = CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + END
CASED = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]%s[\p{Ll}\p{Lm}\p{Lo}\p{M}]%s"
TEKKEN = CASED % ("*", "+") + "|" + CASED % ("+", "*") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + END
GPT4O = f"{CASED % ('*', '+')}{CONTRACTIONS}?|{CASED % ('+', '*')}{CONTRACTIONS}?" + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + END
DEEPSEEK3 = [r"\p{N}{1,3}", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
             r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + END]
DEEPSEEK_CODER = ["[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"]
# name of the division in a GGUF -> the expressions, and what else the tokenizer does
KINDS = {"llama-bpe": {"split": [LLAMA3], "ignore_merges": True, "bos": True}, "dbrx": {"split": [LLAMA3], "eos": True},
         "qwen2": {"split": [QWEN2], "found": ["<tool>", "<tool>>", "l<", "  "]}, "qwen35": {"split": [QWEN35]},
         "gpt-2": {"found": ["<tool>"]}, "smollm": {"digits": True, "bos": True}, "deepseek-coder": {"split": DEEPSEEK_CODER, "digits": True},
         "deepseek-v3": {"split": DEEPSEEK3}, "gpt-4o": {"split": [GPT4O]}, "tekken": {"split": [TEKKEN], "ignore_merges": True, "bos": True}}
CASED_KINDS = ("gpt-4o", "tekken")


def split_on(expression, behavior="isolated"):
    return tokenizers.pre_tokenizers.Split(tokenizers.Regex(expression), behavior)


@functools.cache
def trained():
    """A vocabulary of 1,200 tokens and its merges, across words too."""
    out = tokenizers.Tokenizer(tokenizers.models.BPE())
    out.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split_on(r".{1,200}"), tokenizers.pre_tokenizers.ByteLevel(False, use_regex=False)])
    text = (ROOT / "docs/generation.md").read_text() + "\n".join(random_texts(300))
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    out.train_from_iterator([text], tokenizers.trainers.BpeTrainer(vocab_size=1200, initial_alphabet=alphabet, show_progress=False))
    model = json.loads(out.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def byte_level(split=(), digits=False, ignore_merges=False, found=(), bos=False, eos=False, vocabulary=None, merges=None):
    """A tokenizer as the package makes it; its vocabulary is trained on a page of ours unless there is one."""
    steps = [split_on(each) for each in split] + ([tokenizers.pre_tokenizers.Digits(individual_digits=True)] if digits else [])
    steps.append(tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split))
    if not vocabulary:
        vocabulary, merges = trained()
    out = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges, ignore_merges=ignore_merges))
    out.pre_tokenizer, out.decoder = tokenizers.pre_tokenizers.Sequence(steps), tokenizers.decoders.ByteLevel()
    out.add_special_tokens(["<|begin|>", "<|end|>", "<|turn|>", "<|<tool>|>"])
    out.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in found])
    frame = (["<|begin|>"] if bos else []) + ["$A"] + (["<|end|>"] if eos else [])
    around = [tokenizers.processors.TemplateProcessing(single=frame, special_tokens=[(text, out.token_to_id(text))
                                                                                      for text in frame if text != "$A"])]
    out.post_processor = tokenizers.processors.Sequence([tokenizers.processors.ByteLevel(trim_offsets=True)] + around)
    out.encode_special_tokens = True  # what a text spells is text
    return out


def byte_level_folder(path, tokenizer, settings=None, rows=None, **changes):
    """A random Llama with this tokenizer."""
    config = {**GROUPED, "dim": 32, "n_heads": 4, "n_layers": 1, "vocab_size": rows or tokenizer.get_vocab_size()}
    folder = folder_of(path, config, llama2c.random_blocks(config), tokenizer=json.loads(tokenizer.to_str()), **changes)
    settings = {"bos_token": "<|begin|>", "eos_token": "<|end|>"} if settings is None else settings
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def ids_of(model, texts, folder, *options):
    lines = folder / "texts.jsonl"
    lines.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    said = weighbridge("tokenize", model, "--input", lines, "--json", "--max-length", "1000000", *options)
    return [one["ids"] for one in json.loads(said)["inputs"]]


def old_texts(texts):
    """Without characters that are newer than Unicode 3.2, except those above: the package knows Unicode 16, and we know 15."""
    return ["".join(c for c in text if c == "\U0001f999" or unicodedata.ucd_3_2_0.category(c) != "Cn") for text in texts]


def odd_texts(count):
    """With what the tokenizers here know: added tokens whole and cut, contractions in every case, and control tokens spelled out."""
    rng = random.Random(11)
    parts = ["<tool>", "<tool>>", "l<", "l<tool>>", "<|begin|>", "<|<tool>|>", "<|turn|>x", "I'\u017f", "we'LL", "it'S", "\r", " \r\n ", "0", "1234567"]
    return [rng.choice(parts).join(pair) for pair in zip(random_texts(count), random_texts(count)[::-1])]


def expect_same(texts, ours, theirs):
    different = [each for each in zip(texts, ours, theirs) if each[1] != each[2]]
    assert len(ours) == len(texts) and not different, (len(different), different[:3])


@pytest.mark.parametrize("kind", KINDS)
def test_byte_level_folders_give_the_ids_of_tokenizers(tmp_path, kind):
    tokenizer = byte_level(**KINDS[kind])
    folder = byte_level_folder(tmp_path / "model", tokenizer)
    texts = old_texts(random_texts(1500) + odd_texts(1500))
    expect_same(texts, ids_of(folder, texts, tmp_path), [one.ids for one in tokenizer.encode_batch(texts)])
    expect_same(texts[-300:], ids_of(folder, texts[-300:], tmp_path, "--no-special"),
                [one.ids for one in tokenizer.encode_batch(texts[-300:], add_special_tokens=False)])


@pytest.mark.parametrize("kind", KINDS)
def test_byte_level_folders_become_gguf_with_the_same_ids(tmp_path, kind):
    tokenizer = byte_level(**KINDS[kind])
    folder = byte_level_folder(tmp_path / "model", tokenizer, rows=tokenizer.get_vocab_size() + 3)
    fields = named(folder, tmp_path / "out.gguf", *consent(kind)).fields
    said = {key.removeprefix("tokenizer.ggml."): field.contents() for key, field in fields.items() if key.startswith("tokenizer.ggml.")}
    assert said["model"] == "gpt2" and said["pre"] == kind
    assert said["add_bos_token"] == KINDS[kind].get("bos", False) and said["add_eos_token"] == KINDS[kind].get("eos", False)
    model = json.loads(tokenizer.to_str())["model"]
    assert said["merges"] == [" ".join(pair) for pair in model["merges"]]
    added = {token.content: 3 if token.special else 4 for token in tokenizer.get_added_tokens_decoder().values()}
    spelled = {id: text for text, id in tokenizer.get_vocab().items()}
    wanted = [(spelled[id], added.get(spelled[id], 1)) if id in spelled else (f"[PAD{id}]", 5) for id in range(len(said["tokens"]))]
    assert list(zip(said["tokens"], said["token_type"])) == wanted and len(wanted) == len(spelled) + 3
    texts = [text for text in random_texts(400) + odd_texts(400) if "\u017f" not in text and not overlaps(text) and known_to_llama_cpp(kind, text)]
    assert len(texts) > 100
    expect_same(texts, ids_of(tmp_path / "out.gguf", texts, tmp_path), ids_of(folder, texts, tmp_path))


def consent(kind):
    return ("--allow", "tokenizer") if "found" in KINDS[kind] or kind in CASED_KINDS else ()


def known_to_llama_cpp(kind, text):
    """Without what the losses of the two name: combining marks, and letters outside ASCII that have a case."""
    return kind not in CASED_KINDS or not any(unicodedata.category(c) in ("Mn", "Mc", "Me", "Lu", "Ll", "Lt") and c > "\x7f" for c in text)


def overlaps(text):
    """Where llama.cpp finds the longest of the added tokens above, and Hugging Face the first."""
    return "l<tool" in text or "<|<tool>|>" in text


def losses_of(folder, target, status=1):
    said = json.loads(weighbridge("convert", folder, target, "--naming", "llama", "--dry-run", "--json", status=status))
    return [item["to"] for item in said["losses"] if item["kind"] == "tokenizer"]


@pytest.mark.parametrize("changes,loss", [
    ({"found": ["<tool>"]}, "overlap"), ({"found": ["b<", "<x>"]}, "overlap"), ({"ignore_merges": True}, "no name"),
    ({"split": [QWEN2], "ignore_merges": True}, "no name"), ({"split": [r"\p{L}+|."]}, "no name")], ids=str)
def test_what_llama_cpp_would_split_otherwise_is_a_loss(tmp_path, changes, loss):
    folder = byte_level_folder(tmp_path / "model", byte_level(**changes))
    assert loss in "".join(losses_of(folder, tmp_path / "out.gguf"))
    runs = "\\p{L}+|." not in str(changes)
    weighbridge("tokenize", folder, "text", status=0 if runs else 3)


@pytest.mark.parametrize("kind", CASED_KINDS)
def test_the_case_of_letters_outside_ascii_is_a_loss(tmp_path, kind):
    folder = byte_level_folder(tmp_path / "model", byte_level(**KINDS[kind]))
    assert any("outside ASCII" in each and "marks" in each for each in losses_of(folder, tmp_path / "out.gguf"))


def test_added_tokens_that_do_not_overlap_are_no_loss(tmp_path):
    folder = byte_level_folder(tmp_path / "model", byte_level(found=["<x>", "<xx>", "  "]))
    assert losses_of(folder, tmp_path / "out.gguf", status=0) == []


@with_llama_cpp
@pytest.mark.parametrize("kind", KINDS)
def test_llama_cpp_splits_byte_level_texts_as_tokenizers_do(tmp_path, kind):
    import llama_cpp
    tokenizer = byte_level(**KINDS[kind])
    named(byte_level_folder(tmp_path / "model", tokenizer), tmp_path / "out.gguf", *consent(kind))
    model = llama_cpp.Llama(str(tmp_path / "out.gguf"), vocab_only=True, verbose=False)
    texts = [text for text in old_texts(random_texts(3000) + odd_texts(1500)) if "\u017f" not in text and not overlaps(text)
             and known_to_llama_cpp(kind, text)]
    assert len(texts) > 400
    expect_same(texts, [model.tokenize(text.encode(), add_bos=True, special=False) for text in texts],
                [one.ids for one in tokenizer.encode_batch(texts)])


GOLDEN = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA") or ROOT.parent / "shared/data") / "gguf/tokenizers_golden.json"


@pytest.mark.skipif(not GOLDEN.is_file(), reason=f"{GOLDEN} is missing: tokenizers of nine rules, with texts and ids")
@pytest.mark.parametrize("rule", ["llama-bpe", "dbrx", "qwen2", "qwen35", "gpt-2", "smollm", "gpt-4o", "tekken", "deepseek-v3"])
def test_the_ids_of_each_rule_are_those_of_tokenizers_and_in_a_gguf_those_of_llama_cpp(tmp_path, rule):
    golden = json.loads(GOLDEN.read_text())
    texts, (wanted, differ, given) = golden["texts"], (golden["rules"][rule][key] for key in ("ids", "llama_cpp", "tokenizer"))
    tokenizer = tokenizers.Tokenizer.from_str(given if isinstance(given, str) else json.dumps(given))
    folder = byte_level_folder(tmp_path / "model", tokenizer, {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"})
    plain = [i for i, text in enumerate(texts) if "<|endoftext|>" not in text]  # what a text spells is text here

    def those(ids):
        return [ids[i] for i in plain]
    expect_same(those(texts), ids_of(folder, those(texts), tmp_path, "--no-special"), those(wanted))
    fields = named(folder, tmp_path / "out.gguf", *consent(rule)).fields
    assert fields["tokenizer.ggml.pre"].contents() == rule
    ours = ids_of(tmp_path / "out.gguf", texts, tmp_path, "--no-special")
    assert [i for i in plain if ours[i] != wanted[i]] == differ
    if importlib.util.find_spec("llama_cpp") is not None:
        import llama_cpp
        model = llama_cpp.Llama(str(tmp_path / "out.gguf"), vocab_only=True, verbose=False)
        theirs = [model.tokenize(text.encode(), add_bos=False, special=True) for text in texts]
        expect_same(those(texts), those(ours), those(theirs))
        assert [i for i, ids in enumerate(wanted) if theirs[i] != ids] == differ


REAL = {"llama-bpe": {"split": [LLAMA3], "ignore_merges": True}, "qwen2": {"split": [QWEN2]}, "gpt-2": {},
        "deepseek-coder": {"split": DEEPSEEK_CODER, "digits": True}}


@fetched
@with_llama_cpp  # they take half a minute
@pytest.mark.parametrize("kind", REAL)
def test_real_byte_level_vocabularies_give_the_ids_of_tokenizers(tmp_path, kind):
    """The vocabularies of llama.cpp as tokenizer.json has them."""
    fields = pytest.importorskip("gguf").GGUFReader(path_of(kind)).fields
    tokens, types, merges = (fields["tokenizer.ggml." + key].contents() for key in ("tokens", "token_type", "merges"))
    vocabulary = {token: id for id, (token, kind_of) in enumerate(zip(tokens, types)) if kind_of == 1}
    tokenizer = byte_level(**REAL[kind], vocabulary=vocabulary, merges=[tuple(pair.split(" ")) for pair in merges])
    folder = byte_level_folder(tmp_path / "model", tokenizer, rows=max(tokenizer.get_vocab().values()) + 1)
    texts = old_texts(random_texts(2000) + odd_texts(1000))
    expect_same(texts, ids_of(folder, texts, tmp_path), [one.ids for one in tokenizer.encode_batch(texts)])
