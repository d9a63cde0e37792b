#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times GGUF in turns with `amn` (anamnesis), the package gguf, and `cp` and `sync`.

usage: gguf.py FOLDER [--ours COMMAND] [--peers FOLDER] [--python PYTHON] [--vocabulary FILE] [-n TURNS] [--only WORD] [--json FILE]

FOLDER keeps the inputs (about 1.5 GB). --python: an interpreter with the package gguf. --vocabulary: a real one, such as
ggml-vocab-gemma-4.gguf, which tools/fetch-vocabularies.sh fetches. What is listed, written and dequantized is checked before the clock
starts."""
import json
import os
import struct
import sys

from results import Results
from turns import GIB, Peers, Turns, copy_and_sync, output, parser_of, run, write_safetensors

BLOCK = 144  # bytes of 256 elements of q4_k
MATRICES, ROWS, COLUMNS = 64, 4096, 2048


def text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def array(kind, count, elements):
    return struct.pack("<IIQ", 9, kind, count) + elements


def write_gguf(path, metadata, tensors, payload):
    """metadata: key -> its type and bytes; tensors: (name, shape, type, bytes); payload: writes all of it to a file."""
    if os.path.exists(path):
        return
    head = [struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(metadata))]
    head += [text(key) + value for key, value in metadata.items()]
    offset = 0
    for name, shape, kind, size in tensors:
        head.append(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
                    + struct.pack("<IQ", kind, offset))
        offset += size
    head = b"".join(head)
    with open(path + ".part", "wb") as file:
        file.write(head + b"\0" * (-len(head) % 32))
        payload(file)
    os.replace(path + ".part", path)


def inputs(folder):
    os.makedirs(folder, exist_ok=True)
    count = 256_000
    metadata = {
        "general.architecture": struct.pack("<I", 8) + text("llama"),
        "tokenizer.ggml.tokens": array(8, count, b"".join(text(f"token{i}") for i in range(count))),
        "tokenizer.ggml.scores": array(6, count, struct.pack(f"<{count}f", *range(count))),
        "tokenizer.ggml.token_type": array(5, count, struct.pack("<i", 1) * count)}
    tensors = [(f"blk.{i // 10}.ffn_{i % 10}.weight", (32, 32), 1, 2048) for i in range(1000)]
    write_gguf(os.path.join(folder, "listed.gguf"), metadata, tensors, lambda file: file.write(b"\0\x3c" * 1024 * 1000))
    size = ROWS * COLUMNS // 256 * BLOCK
    block = struct.pack("<ee", 0.01, 0.02) + bytes(range(7, 147))  # scales, then codes

    def matrices(file):
        for _ in range(MATRICES):
            file.write(block * (size // BLOCK))
    write_gguf(os.path.join(folder, "q4_k.gguf"), {"general.architecture": struct.pack("<I", 8) + text("llama")},
               [(f"blk.{i}.ffn_up.weight", (ROWS, COLUMNS), 12, size) for i in range(MATRICES)], matrices)
    write_safetensors(os.path.join(folder, "k.safetensors"),
                      [(f"model.layers.{i // 10}.mlp.{i % 10}.weight", "BF16", [512, 1024], 1 << 20) for i in range(1000)])


def check(t):
    listed = json.loads(output([t.o.ours, "inspect", "--json", t.path("listed.gguf")]).stdout)["files"][0]
    assert len(listed["tensors"]) == 1000 and len(listed["attributes"]["tokenizer.ggml.tokens"]) == 256_000
    t.fresh()
    there, back = os.path.join(t.out, "o.gguf"), os.path.join(t.out, "o.safetensors")
    for command in ([t.o.ours, "convert", t.path("k.safetensors"), there, "--quiet"], [t.o.ours, "convert", there, back, "--quiet"]):
        assert run(command)[2] == 0, command
    digests = output([t.o.ours, "hash", "--no-names", t.path("k.safetensors"), there, back]).stdout.split()[::2]
    assert len(set(digests)) == 1, digests
    t.fresh()


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--vocabulary", default="")
    o = parser.parse_args()
    inputs(o.folder)
    results = Results("gguf", "GGUF", o.ours, f"whole processes, warm page cache, medians of {o.turns} turns; one core for dequantizing")
    t, peers = Turns(o, results), Peers(o, results)
    check(t)
    package = output([o.python, "-c", "import gguf, importlib.metadata; print(importlib.metadata.version('gguf'))"])
    if package.returncode == 0:
        results.peer("gguf", package.stdout.strip())
    else:
        results.leave_out("gguf: the package is not in the interpreter that was given")

    def listing(path, with_package):
        reading = [o.python, "-c", "import gguf, sys\nfor t in gguf.GGUFReader(sys.argv[1]).tensors: print(t.name, t.shape)", path]
        return {"ours": [o.ours, "inspect", path], "amn": peers.amn and [peers.amn, "inspect", path],
                "gguf": reading if with_package and package.returncode == 0 else None}

    row = t.job("list", "list 1,000 tensors and 256,000 tokens", listing(t.path("listed.gguf"), False), turns=3 * o.turns)
    if row:
        results.asked(row, "amn", 0.5)
    if o.vocabulary and os.path.exists(o.vocabulary):
        row = t.job("list", "list a real vocabulary, " + os.path.basename(o.vocabulary), listing(o.vocabulary, True), turns=1)
        if row and "gguf" in row["peers"]:
            results.asked(row, "gguf", 0.005)
    else:
        results.leave_out("a real vocabulary: none was given")
    source, target = t.path("k.safetensors"), os.path.join(t.out, "o.gguf")
    row = t.job("convert", "convert 1 GiB in 1,000 tensors to .gguf",
                {"ours": [o.ours, "convert", source, target, "--quiet"], "cp + sync": copy_and_sync(source, target)}, size=GIB)
    if row:
        results.asked(row, "cp + sync", 1.3)
    one = ["taskset", "-c", "0"]
    out = os.path.join(t.out, "o.safetensors")
    row = t.job("dequantize", "1 GiB of f16 from q4_k, one core", {
        "ours": [*one, o.ours, "convert", t.path("q4_k.gguf"), out, "--dequantize", "f16", "--allow", "overflow", "--quiet"],
        "amn": peers.amn and [*one, peers.amn, "remember", t.path("q4_k.gguf"), "--to", "f16", "-o", out, "--threads", "1"]}, size=GIB)
    if row:
        results.asked(row, "amn", 0.5)
    t.end()


if __name__ == "__main__":
    sys.exit(main())
