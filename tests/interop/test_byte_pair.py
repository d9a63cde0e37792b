# SPDX-License-Identifier: Apache-2.0
"""Tests tokenizers of language models against the independent implementation tests/witness/byte_pair.py: the same ids for random texts,
from files written by tests/witness/slm.py; for llama2.c's vocabulary of 512 also against the encoder by scores."""
import importlib.util
import json
import random

import pytest

from interop_tools import ROOT, TEST_DATA, np, weighbridge


def witness(name):
    spec = importlib.util.spec_from_file_location(f"witness_{name}", ROOT / f"tests/witness/{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


slm, byte_pair = witness("slm"), witness("byte_pair")
TOK512 = TEST_DATA / "llama/tok512.bin"


def model(path, vocab_size, special, tokens, merges):
    """A small .slm with this BPE1 table."""
    fixture = slm.fixture("tiny")
    fixture["header"]["vocab_size"] = vocab_size
    tensors = [(name, array if array.shape[0] != 260 else np.ones((vocab_size, *array.shape[1:]), np.float32))
               for name, array in fixture["tensors"]]
    slm.write(path, fixture["header"], slm.bpe1(vocab_size, special, tokens, merges), tensors)
    return path


def encoded(path, texts, folder, *options):
    """The ids that the command gives to each text, BOS included."""
    lines = folder / "texts.jsonl"
    lines.write_text("".join(json.dumps(text) + "\n" for text in texts))
    shown = json.loads(weighbridge("tokenize", path, "--input", lines, "--input-format", "jsonl", "--json", *options))
    return [one["ids"] for one in shown["inputs"]]


def a_character(rng):
    low, high = rng.choice([(0, 0x80), (0x20, 0x7F), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000)])
    return chr(rng.randrange(low, high))


def a_text(rng, pieces):
    return "".join(rng.choice(pieces) if rng.random() < 0.6 else a_character(rng) for _ in range(rng.randrange(40)))


@pytest.mark.skipif(not TOK512.exists(), reason="llama/tok512.bin is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
def test_tok512_is_encoded_as_its_scores_say(tmp_path):
    pieces = byte_pair.scored_pieces(TOK512.read_bytes())
    table = byte_pair.from_scores(pieces)
    plain, rng = byte_pair.BytePair(*table), random.Random(11)
    assert plain.prefix_space
    strings = [raw.decode() for _, raw in pieces[byte_pair.FIRST_PIECE:]]
    texts = ["", " ", "Once upon a time"] + [a_text(rng, strings) for _ in range(3000)]
    for text, ids in zip(texts, encoded(model(tmp_path / "tok512.slm", *table), texts, tmp_path), strict=True):
        assert ids == [1] + byte_pair.encode_by_scores(pieces, text), text
        assert ids == [1] + plain.encode(text.encode()), text
        assert plain.decode(ids) == text.encode()


def a_table(rng):
    """A BPE1 table, half of them with merges whose output spells something else, or is an input again."""
    hostile = rng.random() < 0.5
    size = rng.choice([260, 300, 400])
    special = tuple(rng.sample(range(size), 4))
    alphabet = [b"a", b"b", b" ", "é".encode(), "一".encode(), "🙂".encode(), b"\xc3", b"\xa9", b"\xe4\xb8"]
    tokens, known = {}, {}
    for raw in alphabet:
        if rng.random() < 0.7:
            tokens[rng.randrange(size)] = raw
    for value in b" ab\xc3\xa9":
        if value not in tokens:
            known[value] = bytes([value])
    known.update(tokens)
    merges = []
    for _ in range(rng.randrange(40)):
        if not known:
            break
        left, right = rng.choice(list(known)), rng.choice(list(known))
        if hostile and tokens and rng.random() < 0.5:
            output = rng.choice(list(tokens))  # a merge gives what is in the token table
        else:
            output = rng.randrange(size)
            if output in known:
                continue
            tokens[output] = known[output] = known[left] + known[right]
        merges.append((left, right, output, rng.randrange(20)))
    records = list(tokens.items())
    rng.shuffle(records)
    return size, special, records, merges


@pytest.mark.parametrize("seed", range(40))
def test_random_tables(tmp_path, seed):
    rng = random.Random(seed)
    table = a_table(rng)
    plain = byte_pair.BytePair(*table)
    texts = [a_text(rng, ["a", "b", "ab", " a", "é", "è", "一", "🙂"]) for _ in range(40)]
    for text, ids in zip(texts, encoded(model(tmp_path / "m.slm", *table), texts, tmp_path), strict=True):
        assert ids == [plain.bos] + plain.encode(text.encode()), text


def test_the_byte_tokenizer(tmp_path):
    path, rng, plain = tmp_path / "m.slm", random.Random(3), byte_pair.byte_tokenizer()
    fixture = slm.fixture("tiny")
    slm.write(path, fixture["header"], fixture["tokenizer"], fixture["tensors"])
    texts = [a_text(rng, ["a", "é"]) for _ in range(100)]
    for text, ids in zip(texts, encoded(path, texts, tmp_path, "--no-special"), strict=True):
        assert ids == plain.encode(text.encode()) == list(text.encode())
