# SPDX-License-Identifier: Apache-2.0
"""Tests the two parsers against cbor2 and Python's json. They agree on valid input; on mutations ours may only be stricter, for a reason
listed here. Callers check duplicate keys, so these pass at this level."""
import json
import os
import pathlib
import random
import struct
import subprocess

import pytest

from interop_tools import COMMAND, cbor2

PARSE_DUMP = os.environ.get("WEIGHBRIDGE_PARSE_DUMP") or str(pathlib.Path(COMMAND).parent / "tests/programs/parse_dump")
if not os.path.exists(PARSE_DUMP):
    pytest.skip(f"{PARSE_DUMP} is missing: builds with tests make it", allow_module_level=True)

SEMANTIC_TAGS = 60000  # cbor2 gives tags below this a meaning of its own, and refuses what does not fit it


def parse(kind, items):
    """Our parser's result for each item: nested lists, or {"error", "offset"}."""
    records = b"".join(kind + struct.pack("<I", len(item)) + item for item in items)
    done = subprocess.run([PARSE_DUMP], input=records, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(items)
    return [json.loads(line) for line in lines]


def refused(answer):
    return isinstance(answer, dict)


# ------------------------------------------------------------------------------------------------------------------ CBOR


def head(draw, major, argument):
    """Any of the widths that can hold the argument."""
    widths = [w for w, limit in ((0, 24), (1, 1 << 8), (2, 1 << 16), (4, 1 << 32), (8, 1 << 64)) if argument < limit]
    width = widths[0] if draw.random() < 0.7 else draw.choice(widths)
    if width == 0:
        return bytes([major << 5 | argument])
    return bytes([major << 5 | {1: 24, 2: 25, 4: 26, 8: 27}[width]]) + argument.to_bytes(width, "big")


def random_text(draw):
    letters = "aZ \"\\/\0\n\x7f\u00e9\u4e2d\u202e\U0001f980\ufeff\uffff"
    return "".join(draw.choice(letters) for _ in range(draw.choice([0, 1, 3, 30])))


def string(draw, major, content):
    if draw.random() < 0.8:
        return head(draw, major, len(content)) + content
    out, step = bytes([major << 5 | 31]), draw.choice([1, 5, 100])
    text = content.decode() if major == 3 else content  # a chunk of text is UTF-8 by itself
    for i in range(0, len(text), step):
        chunk = text[i:i + step].encode() if major == 3 else text[i:i + step]
        out += head(draw, major, len(chunk)) + chunk
    return out + b"\xff"


def random_cbor(draw, depth=0, key=False):
    choice = draw.randrange(7 if key or depth > 5 else 11)
    if choice in (0, 1):
        return head(draw, choice, draw.choice([0, 1, 23, 24, 255, 256, 65535, 65536, 2**32, 2**53 + 1, 2**63, 2**64 - 1]))
    if choice == 2:
        return string(draw, 2, draw.randbytes(draw.choice([0, 1, 24, 300])))
    if choice in (3, 4) or key:
        return string(draw, 3, random_text(draw).encode())
    if choice == 5:
        return draw.choice([b"\xf4", b"\xf5", b"\xf6", b"\xf7", b"\xe0", b"\xf3", b"\xf8\x20", b"\xf8\xff"])
    if choice == 6:
        width, mark = draw.choice([(2, b"\xf9"), (4, b"\xfa"), (8, b"\xfb")])
        return mark + draw.randbytes(width)
    if choice == 7:
        return head(draw, 6, draw.choice([SEMANTIC_TAGS, 70000, 2**64 - 1])) + random_cbor(draw, depth + 1)
    items = [random_cbor(draw, depth + 1) for _ in range(draw.choice([0, 1, 2, 5, 30 if depth == 0 else 3]))]
    if choice == 8 or choice == 9:
        return b"\x9f" + b"".join(items) + b"\xff" if draw.random() < 0.3 else head(draw, 4, len(items)) + b"".join(items)
    entries = b"".join(random_cbor(draw, depth + 1, key=True) + item for item in items)
    return b"\xbf" + entries + b"\xff" if draw.random() < 0.3 else head(draw, 5, len(items)) + entries


class Meaning(Exception):
    """Whether the tree has a tag that cbor2 interprets, so that its result cannot be predicted."""


def as_cbor2(tree, key=False):
    """The value that cbor2 should give for our parser's result."""
    kind = tree[0]
    if kind == "+":
        return int(tree[1])
    if kind == "-":
        return -1 - int(tree[1])
    if kind in "bt":
        content = bytes.fromhex(tree[1])
        return content.decode() if kind == "t" else content
    if kind == "o":
        return tree[1] == "1"
    if kind == "n":
        return None
    if kind == "s":
        return cbor2.undefined if tree[1] == "23" else cbor2.CBORSimpleValue(int(tree[1]))
    if kind == "f":
        return struct.unpack("<d", struct.pack("<Q", int(tree[1])))[0]
    if kind == "g":
        if tree[1] < SEMANTIC_TAGS or key:
            raise Meaning
        return cbor2.CBORTag(tree[1], as_cbor2(tree[2]))
    if kind == "a":
        items = [as_cbor2(item, key) for item in tree[1]]
        return tuple(items) if key else items
    if key:
        raise Meaning
    return {as_cbor2(k, True): as_cbor2(v) for k, v in tree[1]}


def canonical(value):
    """Text that is equal if two values are. Keeps the sign of zero; all NaNs are equal (cbor2 drops the payload of half NaNs)."""
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("<d", value).hex()
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (dict, cbor2.frozendict)):
        return "{" + ",".join(sorted(f"{canonical(k)}:{canonical(v)}" for k, v in value.items())) + "}"
    if isinstance(value, cbor2.CBORTag):
        return f"tag{value.tag}({canonical(value.value)})"
    return f"{type(value).__name__}:{value!r}"


def cbor2_reads(item):
    """(True, value), or (False, why not)."""
    try:
        return True, cbor2.loads(item)
    except (cbor2.CBORError, UnicodeDecodeError, TypeError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        return False, error


def test_valid_cbor_reads_as_cbor2_reads_it():
    draw = random.Random(11)
    items = [random_cbor(draw) for _ in range(4000)]
    answers = parse(b"C", items)
    for item, answer in zip(items, answers):
        read, value = cbor2_reads(item)
        assert read, (item.hex(), value)
        assert not refused(answer), (item.hex(), answer)
        assert canonical(as_cbor2(answer)) == canonical(value), item.hex()
    assert sum(len(item) > 100 for item in items) > 300


def test_what_cbor2_writes_reads_back():
    draw = random.Random(12)
    values = [as_cbor2(parse(b"C", [random_cbor(draw)])[0]) for _ in range(50)]
    for value, answer in zip(values, parse(b"C", [cbor2.dumps(value) for value in values])):
        assert canonical(as_cbor2(answer)) == canonical(value)


def mutated(draw, item):
    data = bytearray(item)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        at = draw.randrange(len(data) + 1)
        action = draw.randrange(4)
        if action == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif action == 1 and at < len(data):
            data[at] = draw.choice([0x00, 0x18, 0x1b, 0x1c, 0x3f, 0x5f, 0x7f, 0x9f, 0xbf, 0xdf, 0xf8, 0xff, draw.randrange(256)])
        elif action == 2:
            del data[at:at + draw.choice([1, 1, 8, len(data)])]
        else:
            data[at:at] = draw.randbytes(draw.choice([1, 2]))
    return bytes(data)


def test_mutated_cbor_is_refused_by_both_or_read_alike():
    draw = random.Random(13)
    items = [mutated(draw, random_cbor(draw)) for _ in range(12000)]
    accepted = stricter = 0
    for item, answer in zip(items, parse(b"C", items)):
        read, value = cbor2_reads(item)
        if refused(answer):
            stricter += read
            # cbor2 stops after one item, reads two-byte simple values below 32 and nests to 400; nothing else may pass there.
            assert not read or answer["error"] in {"trailing-bytes", "bad-simple", "too-deep"}, (item.hex(), answer, value)
            assert answer["offset"] <= len(item)
            continue
        try:
            ours = as_cbor2(answer)
        except Meaning:
            continue
        accepted += 1
        assert read, (item.hex(), answer, value)
        assert canonical(ours) == canonical(value), item.hex()
    assert accepted > 1000 and len(items) - accepted > 3000 and stricter > 0


@pytest.mark.parametrize("item, error", [
    ("1c", "reserved-info"), ("3f", "reserved-info"), ("ff", "unexpected-break"), ("81ff", "unexpected-break"),
    ("7f4161ff", "bad-chunk"), ("5f5f4161ffff", "bad-chunk"), ("61ff", "invalid-utf8"), ("7f61c361a9ff", "invalid-utf8"),
    ("f81f", "bad-simple"), ("0000", "trailing-bytes"), ("9b7fffffffffffffff00", "length-too-large"),
    ("bbffffffffffffffff00", "length-too-large"), ("5bffffffffffffffff00", "length-too-large"), ("a16161", "unexpected-end"), ("a161", "length-too-large"),
    ("", "unexpected-end"), ("81" * 65 + "00", "too-deep"), ("c1" * 65 + "00", "too-deep")])
def test_what_the_readings_refuse(item, error):
    assert parse(b"C", [bytes.fromhex(item)])[0]["error"] == error


# ------------------------------------------------------------------------------------------------------------------ JSON


def random_json(draw, depth=0):
    """Text of a value: numbers of every spelling, escapes of every kind, white space anywhere."""
    space = draw.choice(["", "", "", " ", "\n\t", "\r "])
    choice = draw.randrange(5 if depth > 5 else 8)
    if choice == 0:
        out = draw.choice(["true", "false", "null"])
    elif choice <= 2:
        out = draw.choice(["", "-"]) + draw.choice(["0", "7", "10", "18446744073709551615", "123456789012345678901234567890"])
        out += draw.choice(["", "", ".0", ".125", ".000001"]) + draw.choice(["", "", "e5", "E-7", "e+300", "e-320", "e400"])
    elif choice <= 4:
        out = json_string(draw)
    elif choice <= 6:
        out = "[" + ",".join(random_json(draw, depth + 1) for _ in range(draw.choice([0, 1, 2, 9]))) + space + "]"
    else:
        members = [space + json_string(draw) + space + ":" + random_json(draw, depth + 1) for _ in range(draw.choice([0, 1, 2, 9]))]
        out = "{" + ",".join(members) + space + "}"
    return space + out + space


def json_string(draw):
    out = '"'
    for c in random_text(draw):
        escaped = json.dumps(c, ensure_ascii=draw.random() < 0.3)[1:-1]
        out += draw.choice([escaped, escaped, "\\/"]) if c == "/" else escaped
    return out + '"'


class Pairs(list):
    """An object's members in their order, duplicates included."""


def python_reads(item):
    def number(text):
        return ("d", text)

    def refuse(_):
        raise ValueError("not JSON")

    try:
        return True, json.loads(item.decode("utf-8"), object_pairs_hook=Pairs, parse_int=number, parse_float=number,
                                parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        return False, error


def same_json(tree, value):
    kind = tree[0]
    if kind == "m":
        return isinstance(value, Pairs) and len(tree[1]) == len(value) and all(
            same_json(a, c) and same_json(b, d) for (a, b), (c, d) in zip(tree[1], value))
    if kind == "a":
        return type(value) is list and len(tree[1]) == len(value) and all(map(same_json, tree[1], value))
    if kind == "t":
        return isinstance(value, str) and bytes.fromhex(tree[1]).decode() == value
    if kind == "d":
        number = float(tree[1])
        bits = None if number in (float("inf"), float("-inf")) else struct.unpack("<Q", struct.pack("<d", number))[0]
        return value == ("d", tree[1]) and tree[2] == bits
    return value is {"n": None, "o1": True, "o0": False}[kind + tree[1]]


def test_valid_json_reads_as_python_reads_it():
    draw = random.Random(21)
    items = [random_json(draw).encode() for _ in range(4000)]
    for item, answer in zip(items, parse(b"J", items)):
        read, value = python_reads(item)
        assert read, (item, value)
        assert not refused(answer), (item, answer)
        assert same_json(answer, value), item


def test_mutated_json_is_refused_by_both_or_read_alike():
    draw = random.Random(22)
    marks = b'"\\{}[],:0-+.eEutfn \n\x00\x1f\x7f\x80\xc3\xed\xef\xff'
    items = []
    for _ in range(12000):
        data = bytearray(random_json(draw).encode())
        for _ in range(draw.choice([1, 1, 2])):
            at = draw.randrange(len(data) + 1)
            data[at:at + draw.randrange(3)] = bytes([draw.choice(marks)]) * draw.randrange(2)
        items.append(bytes(data))
    accepted = 0
    for item, answer in zip(items, parse(b"J", items)):
        read, value = python_reads(item)
        if refused(answer):
            # Python accepts lone surrogates; nothing else may differ.
            assert not read or answer["error"] in {"lone-surrogate", "too-deep"}, (item, answer)
            assert answer["offset"] <= len(item)
        else:
            accepted += 1
            assert read and same_json(answer, value), (item, answer)
    assert accepted > 1000 and len(items) - accepted > 3000


@pytest.mark.parametrize("item, error", [
    (b'"\\ud800"', "lone-surrogate"), (b'"\\udc00x"', "lone-surrogate"), (b'"\\ud800\\u0041"', "lone-surrogate"),
    (b'"\xed\xa0\x80"', "invalid-utf8"), (b'"\x1f"', "control-character"), (b'\xef\xbb\xbf{}', "byte-order-mark"),
    (b"01", "bad-number"), (b"-x", "bad-number"), (b"1.]", "bad-number"), (b"1.", "unexpected-end"), (b"NaN", "unexpected-byte"), (b'"\\x"', "bad-escape"),
    (b"{} {}", "trailing-bytes"), (b"[1,]", "unexpected-byte"), (b"[" * 65 + b"]" * 65, "too-deep"), (b"", "unexpected-end")])
def test_json_that_the_readings_refuse(item, error):
    assert parse(b"J", [item])[0]["error"] == error
