# SPDX-License-Identifier: Apache-2.0
"""Tests tokenize on language models: byte and bpe tokenizers. tests/interop/test_byte_pair.py compares the ids with a reference."""
import pytest

from conftest import validated, weighbridge


@pytest.fixture(params=["tiny", "tiny-bpe"])
def model(request, tmp_path):
    path = tmp_path / f"{request.param}.slm"
    weighbridge("slm", "fixture", request.param, "-o", path)
    return path


def tokenized(path, *arguments):
    return validated(weighbridge("tokenize", path, *arguments, "--json").stdout, "tokenize")["inputs"]


def test_ids_and_tokens(model):
    bare = tokenized(model, "bring the pan", "--no-special")[0]
    expected = {"tiny.slm": [*b"bring the pan"], "tiny-bpe.slm": [98, 114, 269, 263, 112, 264]}[model.name]
    assert bare["ids"] == expected and "".join(bare["tokens"]) == "bring the pan" and bare["truncated"] is False
    framed = tokenized(model, "bring the pan")[0]
    assert framed["ids"] == [256, *expected] and framed["tokens"][0] == "<bos>"


def test_lines(model):
    assert weighbridge("tokenize", model, "a\n", "--no-special").stdout == "a/97 \\n/10\n"
    assert weighbridge("tokenize", model, "").stdout == "<bos>/256\n"
    assert weighbridge("tokenize", model, "", "--no-special").stdout == "\n"


def test_bytes_that_are_no_characters_are_shown(model):
    one = tokenized(model, "é", "--no-special")[0]
    assert one["ids"] == [0xC3, 0xA9] and one["tokens"] == ["\ufffd", "\ufffd"]
    assert tokenized(model, "\udcff\udcc3a", "--no-special")[0]["ids"] == [0xFF, 0xC3, 97]


def test_max_length_cuts_and_says_so(model):
    cut = tokenized(model, "xyz", "ab", "--max-length", "3")
    assert [one["ids"] for one in cut] == [[256, 120, 121], [256, 97, 98]]
    assert [one["truncated"] for one in cut] == [True, False]
    assert weighbridge("tokenize", model, "xyz", "--max-length", "2").stdout.endswith("  (truncated)\n")


def test_offsets_are_for_wordpiece(model):
    done = weighbridge("tokenize", model, "a", "--offsets", "--json", status=2)
    assert "only wordpiece has offsets" in done.stderr
    assert validated(done.stdout, "failure")["findings"][0]["rule"] == "misuse/offsets"


def test_a_megabyte_of_one_letter_does_not_hang(model, tmp_path):
    (tmp_path / "a.txt").write_text("a" * (1 << 20))
    shown = weighbridge("tokenize", model, "--input", tmp_path / "a.txt").stdout
    assert shown.startswith("<bos>/256 a/97 ") and shown.count(" a/97") == 1 << 20


def test_a_vocabulary_given_counts_instead(model, tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\na\n")
    assert tokenized(model, "a", "--vocab", tmp_path / "vocab.txt", "--offsets")[0]["ids"] == [1, 3, 2]
