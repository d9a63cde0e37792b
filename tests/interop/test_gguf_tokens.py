# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of GGUF: the real vocabularies of llama.cpp with the ids that it gives to its own test texts, and random texts beside
llama.cpp itself where llama-cpp-python brings it."""
import importlib.util
import json
import random

import pytest

from interop_tools import ROOT, weighbridge

FOLDER = ROOT / "build/demo/gguf"
RUN = ["bert-bge", "command-r", "deepseek-coder", "falcon", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35",
       "refact", "starcoder"]
OTHERS = {"deepseek-llm": "deepseek-llm", "gemma-4": "gemma4"}  # with vectors, of kinds that are not here
fetched = pytest.mark.skipif(not FOLDER.is_dir(), reason="build/demo/gguf is missing: tools/fetch-vocabularies.sh fetches it")
with_llama_cpp = pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None,
                                    reason="llama-cpp-python is missing: make check-llama installs it")


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
