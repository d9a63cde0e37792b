# SPDX-License-Identifier: Apache-2.0
"""Self tests of the witness byte_pair.py: results worked out by hand from the readings."""
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import byte_pair  # noqa: E402

SPECIAL = (256, 257, 258, 259)


def test_bytes_and_special_ids():
    plain = byte_pair.byte_tokenizer()
    assert plain.encode("aé".encode() + b"\xff") == [97, 0xC3, 0xA9, 0xFF] and not plain.prefix_space
    assert plain.decode([256, 97, 258, 259, 257]) == b"a?"


def test_characters_are_cut_as_utf8():
    assert byte_pair.characters("aé一🙂".encode()) == [b"a", "é".encode(), "一".encode(), "🙂".encode()]
    assert byte_pair.characters(b"\xe4\xb8a\xed\xa0\x80") == [b"\xe4", b"\xb8", b"a", b"\xed", b"\xa0", b"\x80"]


def test_lowest_rank_first_then_leftmost():
    tokens = [(260, b"ab"), (261, b"bc"), (262, b"aa")]
    plain = byte_pair.BytePair(263, SPECIAL, tokens, [(97, 98, 260, 5), (98, 99, 261, 4), (97, 97, 262, 4), (97, 98, 261, 9)])
    assert plain.encode(b"abc") == [97, 261] and plain.encode(b"aaabc") == [262, 97, 261] and plain.encode(b"ab") == [260]


def test_starts():
    tokens = [(260, "é".encode()), (261, "€".encode()), (98, b"x"), (262, b"a")]
    plain = byte_pair.BytePair(263, SPECIAL, tokens, [(1, 2, 261, 0)])
    assert plain.encode("é€bxa".encode()) == [260, 0xE2, 0x82, 0xAC, 259, 98, 262]


def test_scores():
    raw = [b"<unk>", b"<s>", b"</s>"] + [b"<0x%02X>" % value for value in range(256)] + [b" ", b"a", b"b", b"ab", b" a"]
    scores = [0] * byte_pair.FIRST_PIECE + [-3, -4, -5, -2, -1]
    data = struct.pack("<i", 6) + b"".join(struct.pack("<fi", score, len(piece)) + piece for score, piece in zip(scores, raw))
    pieces = byte_pair.scored_pieces(data)
    size, special, tokens, merges = byte_pair.from_scores(pieces)
    assert (size, special) == (264, (1, 2, 0, 0)) and tokens[3] == (3, b"\0") and tokens[263] == (263, b" a")
    assert sorted(merges) == [(259, 260, 263, 1), (260, 261, 262, 2)]
    plain = byte_pair.BytePair(size, special, tokens, merges)
    expected = {"": [], "ab": [263, 261], "b ab": [259, 261, 263, 261], "bab": [259, 261, 262], "é": [259, 0xC3 + 3, 0xA9 + 3]}
    for text, ids in expected.items():
        assert plain.encode(text.encode()) == byte_pair.encode_by_scores(pieces, text) == ids
        assert plain.decode([1] + ids) == text.encode()
