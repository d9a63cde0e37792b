#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The content digest, an independent implementation of src/core/payload/README.md to check src/core/payload/digest.cc.

As a program: prints the digests of the test vectors that src/core/payload/content_digest_test.cc holds. `--check FILE` reads
that file and fails when a vector differs. As a module: model_digest(), nameless_digest(), tensor_digest() over tuples, and
as_text(). All of them compute version 2; in `with version(1):` they compute version 1.
"""
import contextlib
import hashlib
import re
import struct
import sys
from typing import NamedTuple

LEAF = 65536
INDEX_ROLES = {"sparse_csr": {"indices", "indptr"}, "sparse_coo": {"coords"}}
# By block type in version 2, by layout in version 1.
PARAMETERS = {"slm.q8_0": ("block_size",), "slm.q4_0": ("block_size",), "zt.group": ("bits", "group_size", "packing"),
              "zt.quant": ("bits", "group_size", "packing", "zero_point"),
              "zt.quant_zeros": ("bits", "group_size", "packing", "zero_point"), "zt.mx": ("block_size",)}
PARAMETERS_1 = {"quantized_group": ("bits", "group_size", "packing"), "quantized_block": ("block_size",)}
BLOCK_TYPES = {("quantized_row", "q8_0"): "slm.q8_0", ("quantized_block", "q4_0"): "slm.q4_0",
               ("quantized_group", "quantized_group"): "zt.group"}
VERSION = 2
INTEGERS = {"u8": "B", "i8": "b", "u16": "H", "i16": "h", "u32": "I", "i32": "i", "u64": "Q", "i64": "q"}


class Part(NamedTuple):
    role: str
    dtype: str
    count: int      # elements
    data: bytes     # decoded, little-endian, row-major


class Tensor(NamedTuple):
    layout: str
    type_name: str
    shape: tuple
    parts: list
    attributes: dict = {}


def u64(n):
    return struct.pack("<Q", n)


def text(s):
    raw = s.encode("utf-8")
    return u64(len(raw)) + raw


@contextlib.contextmanager
def version(number):
    global VERSION
    before, VERSION = VERSION, number
    try:
        yield
    finally:
        VERSION = before


def node(kind, body):
    tag = f"wbdig{VERSION}.{kind}"
    assert len(tag) == 8
    return hashlib.sha256(tag.encode("ascii") + body).digest()


def as_text(digest):
    """As `hash` prints it."""
    return ("wb2:" if VERSION == 2 else "") + digest.hex()


def dims(shape):
    return u64(len(shape)) + b"".join(u64(d) for d in shape)


def part_digest(tensor, part):
    dtype, data = part.dtype, part.data
    if dtype == "bool":
        data = bytes(1 if b else 0 for b in data)
    if part.role in INDEX_ROLES.get(tensor.layout, ()):
        values = struct.unpack("<%d%s" % (part.count, INTEGERS[dtype]), data)
        data = b"".join(u64(v & 0xFFFFFFFFFFFFFFFF) for v in values)
        dtype = "u64"
    shape = tensor.shape if tensor.layout == "dense" else (part.count,)
    leaves = [node("L", data[i:i + LEAF]) for i in range(0, len(data), LEAF)]
    return node("P", text(part.role) + text(dtype) + dims(shape) + u64(len(data))
                + u64(len(leaves)) + b"".join(leaves))


def tensor_digest(tensor):
    kind = tensor.type_name     # in version 1 what people read
    if VERSION == 2:
        if tensor.layout.startswith("quantized") and not kind.startswith("ggml."):     # GGML's types say their ids
            kind = BLOCK_TYPES[tensor.layout, kind]
    keys = PARAMETERS.get(kind, ()) if VERSION == 2 else PARAMETERS_1.get(tensor.layout, ())
    parameters = [(k, str(tensor.attributes[k])) for k in keys if k in tensor.attributes]
    parts = sorted(tensor.parts, key=lambda p: p.role.encode("utf-8"))
    return node("T", text(tensor.layout) + text(kind) + dims(tensor.shape)
                + u64(len(parameters)) + b"".join(text(k) + text(v) for k, v in parameters)
                + u64(len(parts)) + b"".join(part_digest(tensor, p) for p in parts))


def model_digest(tensors):
    names = sorted(tensors, key=lambda n: n.encode("utf-8"))
    return node("M", u64(len(names)) + b"".join(text(n) + tensor_digest(tensors[n]) for n in names))


def nameless_digest(tensors):
    return node("N", u64(len(tensors)) + b"".join(sorted(tensor_digest(t) for t in tensors.values())))


def dense(dtype, shape, data):
    count = 1
    for d in shape:
        count *= d
    return Tensor("dense", dtype, tuple(shape), [Part("data", dtype, count, data)])


def pattern(size, seed=0):
    """Bytes that are easy to generate in any language: byte i is (i * 131 + i / 251 + seed) mod 256."""
    return bytes((i * 131 + i // 251 + seed) & 0xFF for i in range(size))


def vectors():
    f32 = dense("f32", (2, 3), struct.pack("<6f", 0, 1, -2, 3.5, -0.0, 1e9))
    boolean = dense("bool", (4,), bytes([0, 1, 1, 0]))
    scalar = dense("i64", (), struct.pack("<q", -7))
    empty = dense("bf16", (0, 5), b"")
    one_leaf = dense("u8", (65536,), pattern(65536))
    two_leaves = dense("u8", (65537,), pattern(65537))
    many_leaves = dense("u16", (3, 500000), pattern(3000000, 7))
    large = dense("f32", (1250, 1000), pattern(5000000, 9))
    six_bits = dense("f6_e2m3", (4,), bytes([1, 2, 3]))
    csr = Tensor("sparse_csr", "f32", (2, 4), [
        Part("values", "f32", 3, struct.pack("<3f", 1, 2, 3)),
        Part("indices", "u16", 3, struct.pack("<3H", 0, 3, 1)),
        Part("indptr", "i32", 3, struct.pack("<3i", 0, 2, 3))])
    coo = Tensor("sparse_coo", "f16", (2, 2), [
        Part("values", "f16", 1, struct.pack("<e", 1.5)),
        Part("coords", "u8", 2, bytes([1, 0]))])
    group = Tensor("quantized_group", "quantized_group", (8, 2), [
        Part("packed_weight", "i32", 2, struct.pack("<2i", 0x76543210, -1)),
        Part("scales", "f16", 4, struct.pack("<4e", 1, 2, 0.5, 0.25)),
        Part("zeros", "f16", 4, struct.pack("<4e", 8, 8, 0, 1))],
        {"bits": 4, "group_size": 4, "packing": "8_per_i32", "note": "does not count"})
    row = Tensor("quantized_row", "q8_0", (2, 4), [
        Part("data", "i8", 8, bytes([0, 1, 127, 129, 5, 250, 7, 8])),
        Part("scales", "f32", 2, struct.pack("<2f", 0.5, 2))],
        {"type": "q8_0", "block_size": 4})
    block = Tensor("quantized_block", "q4_0", (2, 4), [
        Part("data", "u8", 4, bytes([0x10, 0x7f, 0x98, 0x2b])),
        Part("scales", "f32", 4, struct.pack("<4f", 0.5, 2, 1, 0.25))],
        {"type": "q4_0", "block_size": 2})
    single = {"f32": f32, "boolean": boolean, "scalar": scalar, "empty": empty, "one_leaf": one_leaf,
              "two_leaves": two_leaves, "many_leaves": many_leaves, "large": large, "six_bits": six_bits,
              "csr": csr, "coo": coo, "group": group, "row": row, "block": block}
    for name, tensor in single.items():
        yield "tensor_" + name, as_text(tensor_digest(tensor))
    every = {"b": f32, "a": boolean, "\u00e9": scalar, "": empty, "z.large": large, "Z": csr, "q": group}
    yield "model_empty", as_text(model_digest({}))
    yield "model_every", as_text(model_digest(every))
    yield "nameless_empty", as_text(nameless_digest({}))
    yield "nameless_every", as_text(nameless_digest(every))


def both():
    yield from vectors()
    with version(1):
        yield from [("v1_" + name, digest) for name, digest in vectors()]


def main(arguments):
    if arguments[:1] == ["--check"]:
        with open(arguments[1], encoding="utf-8") as file:
            held = dict(re.findall(r'\{"(\w+)",\s*"((?:wb2:)?[0-9a-f]{64})"\}', file.read()))
        expected = dict(both())
        wrong = sorted(k for k in expected.keys() | held.keys() if expected.get(k) != held.get(k))
        for name in wrong:
            print(f"{name}: the file has {held.get(name)}, the document gives {expected.get(name)}", file=sys.stderr)
        print(f"{len(expected)} vectors, {len(wrong)} differ")
        return 1 if wrong else 0
    for name, digest in both():
        print(f'  {{"{name}", "{digest}"}},')
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
