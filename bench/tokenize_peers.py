#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times tokenizing on one thread in turns with the Rust crate `tokenizers` (PyPI) over the same lines, in processor time.

usage: tokenize_peers.py --ours TOKENIZE_BENCH --cli WEIGHBRIDGE --vocab VOCAB --text TEXT [-n TURNS] [--json FILE]

TOKENIZE_BENCH is the program built from tokenize_bench.cc; TEXT has one text per line. Without the package only ours is timed. The ids
must agree before the clock starts: bench/tokenize_bench.cc checks its own, and this script compares the numbers of tokens."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

from results import Results, figures

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # read when the module is loaded
try:
    import tokenizers
except ImportError:
    tokenizers = None


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--cli", required=True, help="the command weighbridge, which says what build this is")
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("-n", dest="turns", type=int, default=5)
    parser.add_argument("--json", default="")
    o = parser.parse_args()
    results = Results("tokenize", "Tokenizing", o.cli, f"one thread, processor time, medians of {o.turns} turns")
    lines = pathlib.Path(o.text).read_bytes().decode("utf-8").removesuffix("\n").split("\n")
    size = sum(len(line.encode()) for line in lines) / 1e6
    tokenizer = None
    if tokenizers:
        tokenizer = peer(o.vocab)
        results.peer("tokenizers", f"the crate by its Python package {tokenizers.__version__}")
    else:
        results.leave_out("tokenizers: the Python that was given has no such package")
    us, them = [], []
    for _ in range(o.turns):
        seconds, our_tokens = ours(o.ours, o.text)
        us.append(size / seconds)
        if tokenizer:
            seconds, their_tokens = theirs(tokenizer, lines)
            them.append(size / seconds)
            if our_tokens != their_tokens:
                sys.exit(f"{our_tokens} tokens, and the peer finds {their_tokens}")
    results.row("tokenize", f"{len(lines):,} lines of English, {size:.2f} MB, {our_tokens:,} tokens", figures(us, "MB/s"),
                {"tokenizers": figures(them, "MB/s")} if tokenizer else {}, unit="MB/s")
    results.write(o.json)


if __name__ == "__main__":
    main()
