# SPDX-License-Identifier: Apache-2.0
"""Tokenizers by themselves: ids, tokens and texts. The texts of WordPiece's tokens are those of `decoders.WordPiece(cleanup=True)` of the package
tokenizers 0.23.3."""
import os
import pathlib

import pytest

import weighbridge as wb

ROOT = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2]))
DECODED = [
    (["a", "##b", "c"], "ab c"), (["##b", "##b"], "##bb"), (["hello", ",", "world", "!"], "hello, world!"), (["it", "'", "s"], "it ' s"),
    (["do", "n't", "?"], "don't?"), (["we", "'ve", "...", "x"], "we've... x"), (["a", "[UNK]", "##b", ".", "##c"], "a [UNK]b.c"),
    (["(", "a", ")"], "( a )"), (["中", "文"], "中 文"), (["i", "'m", "."], "i'm."), ([".", "a"], ". a"),
]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({token for tokens, _ in DECODED for token in tokens} - {"[UNK]"})]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    wb.save(tmp_path / "model.safetensors", {"w": b"1234"})
    return tmp_path


def test_word_pieces(folder):
    made = wb.tokenizer(folder)
    assert made.size == len(made) == len(WORDS) and f"{len(WORDS)} tokens" in repr(made)
    ids = made.encode("Hello, ab")
    assert made.tokenize("Hello, ab") == ["[CLS]", "hello", ",", "a", "##b", "[SEP]"] and [WORDS[i] for i in ids] == made.tokenize("Hello, ab")
    assert made.decode(ids) == "hello, ab"
    assert wb.tokenizer(wb.open(folder), special=False).encode("hello") == [WORDS.index("hello")]
    assert wb.tokenizer(folder, max_length=3).tokenize("a a a") == ["[CLS]", "a", "[SEP]"]
    for tokens, text in DECODED:
        assert made.decode([WORDS.index(token) for token in tokens]) == text
    with pytest.raises(wb.UsageError, match=f"no token has the id {len(WORDS)}"):
        made.decode([len(WORDS)])


def test_what_has_no_tokenizer(tmp_path):
    wb.save(tmp_path / "a.zt", {"w": b"1234"})
    with pytest.raises(wb.UsageError, match="vocabulary"):
        wb.tokenizer(tmp_path / "a.zt")
    words = "\n".join(WORDS).encode()
    assert wb.tokenizer(tmp_path / "a.zt", vocabulary=words).tokenize("ab")[1:3] == ["a", "##b"]
    with pytest.raises(TypeError, match="not None"):
        wb.tokenizer(None)


def test_bytes_that_ids_cut():
    made = wb.tokenizer(ROOT / "corpus/slm/valid-untied.slm")
    ids = made.encode("é")
    assert ids == [256, 195, 169] and made.size == 260 and made.tokenize("é") == ["<bos>", "\udcc3", "\udca9"]
    assert made.decode(ids) == "é" and made.decode(ids[:-1]) == "\ufffd"
