#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tokenising on one thread in turns with the Rust crate `tokenizers` (PyPI) over the same lines: processor time, best of the rounds.

usage: tokenize_peers.py BENCH VOCAB TEXT      (BENCH: the program of tokenize_bench.cc; TEXT: a text a line)
The ids must agree before the clock starts: bench/tokenize_bench.cc checks its own, the number of tokens is compared here.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # read when the module is loaded
import tokenizers  # noqa: E402

ROUNDS = 5


def peer(vocab):
    tokens = pathlib.Path(vocab).read_text(encoding="utf-8").split("\n")
    ids = {token: number for number, token in enumerate(tokens) if token}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return made


def theirs(tokenizer, lines):
    encode = getattr(tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    begin = time.process_time()
    encoded = encode(lines)
    return time.process_time() - begin, sum(len(one.ids) for one in encoded)


def ours(bench, text):
    out = subprocess.run([bench, "--benchmark_filter=encode_all/sentences$", "--benchmark_min_time=0.2", "--benchmark_format=json"],
                         env={**os.environ, "WEIGHBRIDGE_TOKENIZE_TEXT": text}, check=True, capture_output=True).stdout
    found = json.loads(out)["benchmarks"][0]
    if "error_message" in found:
        sys.exit(found["error_message"])
    return found["cpu_time"] * 1e-9, int(found["tokens"])


def main():
    bench, vocab, text = sys.argv[1:]
    raw = pathlib.Path(text).read_bytes()
    lines = raw.decode("utf-8").removesuffix("\n").split("\n")
    size = sum(len(line.encode()) for line in lines) / 1e6
    tokenizer = peer(vocab)
    us, them = [], []
    for _ in range(ROUNDS):
        seconds, our_tokens = ours(bench, text)
        us.append(seconds)
        seconds, their_tokens = theirs(tokenizer, lines)
        them.append(seconds)
        if our_tokens != their_tokens:
            sys.exit(f"{our_tokens} tokens, and the peer finds {their_tokens}")
    print(f"weighbridge {size / min(us):.1f} MB/s, tokenizers {tokenizers.__version__} {size / min(them):.1f} MB/s, "
          f"ratio {min(them) / min(us):.1f} ({len(lines)} lines, {size:.2f} MB, {our_tokens} tokens, one thread)")


if __name__ == "__main__":
    main()
