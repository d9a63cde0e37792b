# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of language models: a slow, simple implementation made only from readings M10, M11, M14 and M17. Also the greedy encoder by
scores that llama2.c uses, which M14 says gives the same ids. The only file format that it reads is llama2.c's tokenizer file, for
the scores.
"""
import struct

FIRST_BYTE, FIRST_PIECE = 3, 259


def characters(data):
    """The UTF-8 characters of bytes; invalid bytes singly."""
    out, at = [], 0
    while at < len(data):
        for length in range(1, 5):
            try:
                if len(data[at:at + length].decode()) == 1:
                    break
            except UnicodeDecodeError:
                continue
        else:
            length = 1
        out.append(data[at:at + length])
        at += length
    return out


class BytePair:
    """M11 over tokens (id, bytes) and merges (left, right, output, rank); special: BOS, EOS, PAD, UNK."""

    def __init__(self, vocab_size, special, tokens, merges, prefix_space=None):
        self.vocab_size, self.tokens = vocab_size, dict(tokens)
        self.bos, self.eos, self.pad, self.unk = special
        self.outputs = {merge[2] for merge in merges}
        self.spelled, self.merges = {}, {}
        for number, raw in sorted(tokens):
            self.spelled[raw] = number  # of several the highest id
        for left, right, output, rank in merges:
            if (left, right) not in self.merges or rank < self.merges[left, right][0]:
                self.merges[left, right] = rank, output
        of_sentencepiece = (self.bos, self.eos) == (1, 2) and all(
            self.tokens.get(FIRST_BYTE + value) == bytes([value]) for value in range(256))
        self.prefix_space = of_sentencepiece if prefix_space is None else prefix_space

    def byte(self, value):
        if bytes([value]) in self.spelled:
            return self.spelled[bytes([value])]
        return value if value not in self.tokens and value < self.vocab_size else self.unk

    def encode(self, data):
        """The ids of bytes, without BOS and EOS."""
        if self.prefix_space and data:
            data = b" " + data
        ids = []
        for character in characters(data):
            whole = self.spelled.get(character)
            # A character of one byte is its byte, whether some merge gives that token or not.
            if len(character) > 1 and whole is not None and whole not in self.outputs:
                ids.append(whole)
            else:
                ids += [self.byte(value) for value in character]
        while True:
            best = min(((self.merges[pair][0], i) for i, pair in enumerate(zip(ids, ids[1:])) if pair in self.merges),
                       default=None)
            if best is None:
                return ids
            i = best[1]
            ids[i:i + 2] = [self.merges[ids[i], ids[i + 1]][1]]

    def decode(self, ids):
        """Bytes. UNK comes before PAD, which M14 makes the same where the source has none."""
        out, before = b"", None
        for number in ids:
            piece = self.tokens.get(number, bytes([number]) if number < 256 else b"?")
            if number in (self.bos, self.eos):
                piece = b""
            elif number == self.unk:
                piece = b"?"
            elif number == self.pad:
                piece = b""
            elif before == self.bos and self.prefix_space and piece.startswith(b" "):
                piece = piece[1:]
            out += piece
            before = number
        return out


def byte_tokenizer():
    """M10."""
    return BytePair(260, (256, 257, 258, 259), [], [])


def scored_pieces(data):
    """[(score, bytes)] of llama2.c's tokenizer file: the longest piece's length, then score, length and bytes of each."""
    out, at = [], 4
    while at < len(data):
        score, length = struct.unpack_from("<fi", data, at)
        out.append((score, data[at + 8:at + 8 + length]))
        at += 8 + length
    return out


def from_scores(pieces):
    """M14: vocab_size, special, tokens and merges of a vocabulary with scores; equal scores share a rank."""
    tokens = [(number, bytes([number - FIRST_BYTE]) if FIRST_BYTE <= number < FIRST_PIECE else raw)
              for number, (_, raw) in enumerate(pieces)]
    known = {raw: number for number, (_, raw) in enumerate(pieces) if number >= FIRST_PIECE}
    place = {score: rank for rank, score in enumerate(sorted({score for score, _ in pieces}, reverse=True))}
    merges = [(known[raw[:cut]], known[raw[cut:]], number, place[pieces[number][0]])
              for raw, number in known.items() for cut in range(1, len(raw))
              if raw[:cut] in known and raw[cut:] in known]
    return len(pieces), (1, 2, 0, 0), tokens, merges


def encode_by_scores(pieces, text):
    """The ids of a str as sentencepiece's scores give them: a space, then its characters (those without a piece as
    bytes), then always the neighbors whose joined text is the piece of the best score, the leftmost of equals."""
    known = {raw: number for number, (_, raw) in enumerate(pieces) if number >= FIRST_PIECE}
    ids = []
    for character in (" " + text if text else ""):
        raw = character.encode()
        ids += [known[raw]] if raw in known else [value + FIRST_BYTE for value in raw]
    while True:
        joined = [(i, known.get(pieces[a][1] + pieces[b][1])) for i, (a, b) in enumerate(zip(ids, ids[1:]))]
        joined = [(pieces[number][0], -i, number) for i, number in joined if number is not None]
        if not joined:
            return ids
        _, place, number = max(joined)
        ids[-place:-place + 2] = [number]
