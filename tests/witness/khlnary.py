# SPDX-License-Identifier: Apache-2.0
"""KHLNARY v0.2 words (KNU), modules and their sidecar: a second implementation, made from readings S6, S7, S11 and
S12.

Owns: the 32-bit word and its parity, the table of glyphs, a plain interpreter, and the rules of NAME.khm.json, which
are those of docs/schemas/khm.schema.json and the few that a JSON schema cannot say. A module is stored as
little-endian u32 words. Each error is a KhlnaryError, a ValueError with a sentence and a `kind`.

How the interpreter reads what S7 leaves open:
- All words are decoded before the first one runs, so a bad word is an error also where the run would not reach it.
  Jump targets and the ends of functions are checked when they are reached.
- One stack holds everything. CALL takes one argument (arity 1): it has to be there, and it stays on top, where the
  callee finds it. RET takes one value, its result, and gives it back on top of the same stack; nothing below it is
  removed, also not what the callee left there. The run ends at a RET outside a call, or behind the last word (also
  inside a call); `result` is then the top of the stack, None when it is empty.
- FUNC_DEF's payload is the function's id. Reached in sequence it takes nothing and the run goes on behind its
  FUNC_END (definitions may be nested). CALL finds the function in the sidecar's table, which has to name the word of
  its FUNC_DEF, and goes on at the word behind that. Reaching a FUNC_END is an error.
- A jump's offset counts from the jump word itself; the target must be a word of the module, so the place behind the
  last one is outside. IFZ_JUMP8 pops an i32 and jumps when it is 0.
- CONST_I8 pushes an i32, ADD_I32 wraps modulo 2^32. LOAD_BIN_TENSOR pushes a TensorHandle, MMAP_BIN_REGION a
  RegionHandle (with arity 1 it pops a value first and does not look at it), PREFETCH_BIN pushes nothing. The first
  two open their file and check it; a prefetch may do nothing, and here does nothing. Handles may be passed and returned, arithmetic and IFZ_JUMP8 refuse them.
- A payload means nothing in glyphs without IMM and BIN_REF, and is not looked at.
"""

import json
import mmap
import pathlib
import re
import struct
from typing import NamedTuple, Optional

import stb

VERSION = 0x2
IMM, BIN_REF, SHAPE_DESC = 0x1, 0x2, 0x4
MAX_AUTHORITY = 7
STEP_LIMIT = 1_000_000
PATH = re.compile(r"(?!/)(?![A-Za-z]:)(?!(?:.*/)?\.\.(?:/|\Z))[^\\\0]*[^/\\\0]\Z", re.DOTALL)


class Glyph(NamedTuple):
    id: int
    name: str
    arities: tuple
    flags: tuple  # the values that the whole flags field may have


GLYPHS = {
    g.id: g
    for g in [
        Glyph(0x00, "NOP", (0,), (0,)),
        Glyph(0x01, "CONST_I8", (0,), (IMM,)),
        Glyph(0x02, "ADD_I32", (2,), (0,)),
        Glyph(0x03, "RET", (1,), (0,)),
        Glyph(0x10, "IFZ_JUMP8", (1,), (IMM,)),
        Glyph(0x11, "JUMP8", (0,), (IMM,)),
        Glyph(0x12, "WHILE_HEAD", (0,), (0,)),
        Glyph(0x13, "WHILE_TAIL", (0,), (0,)),
        Glyph(0x20, "FUNC_DEF", (1,), (IMM,)),
        Glyph(0x21, "FUNC_END", (0,), (0,)),
        Glyph(0x22, "CALL", (1,), (IMM,)),
        Glyph(0x30, "LOAD_BIN_TENSOR", (0,), (BIN_REF, BIN_REF | SHAPE_DESC)),
        Glyph(0x31, "MMAP_BIN_REGION", (0, 1), (BIN_REF,)),
        Glyph(0x32, "PREFETCH_BIN", (0,), (BIN_REF,)),
    ]
}
BY_NAME = {g.name: g for g in GLYPHS.values()}


class KhlnaryError(ValueError):
    """`kind`: version, parity, glyph, bin-ref, arity, flags or authority (of a word); storage, stack, type, jump,
    function, steps, file, tensor or sidecar."""

    def __init__(self, kind, sentence):
        super().__init__(sentence)
        self.kind = kind


class Word(NamedTuple):
    version: int
    glyph: int
    arity: int
    flags: int
    payload: int
    authority: int


class TensorHandle(NamedTuple):
    file: int
    id: int


class RegionHandle(NamedTuple):
    file: int


class Outcome(NamedTuple):
    result: object  # an int, a handle, or None: the top of the stack
    stack: list  # as the run left it, with the result on top
    loaded: list  # (file id, tensor id) of each LOAD_BIN_TENSOR, in order
    steps: int  # words that ran


def popcount(n):
    return bin(n).count("1")


def signed8(payload):
    return payload - 256 if payload >= 128 else payload


def wrap32(n):
    return (n + 0x80000000) % 0x100000000 - 0x80000000


# ---- words ----


def encode_raw(version, glyph, arity, flags, payload, authority):
    """A word of any fields, with its parity."""
    for value, bits in zip((version, glyph, arity, flags, payload, authority), (4, 8, 4, 4, 8, 3)):
        if not 0 <= value < 1 << bits:
            raise ValueError(f"{value} does not fit {bits} bits.")
    word = version << 28 | glyph << 20 | arity << 16 | flags << 12 | payload << 4 | authority << 1
    return word | popcount(word) % 2


def encode(name, payload=0, authority=1, flags=None, arity=None):
    """The word of a glyph; a negative payload is an offset or a constant in two's complement."""
    glyph = BY_NAME[name]
    return encode_raw(
        VERSION,
        glyph.id,
        glyph.arities[0] if arity is None else arity,
        glyph.flags[0] if flags is None else flags,
        payload + 256 if -128 <= payload < 0 else payload,
        authority,
    )


def decode(word, authority=MAX_AUTHORITY):
    """The fields of a word that a context of that authority may run."""
    fields = Word(
        word >> 28 & 0xF, word >> 20 & 0xFF, word >> 16 & 0xF, word >> 12 & 0xF, word >> 4 & 0xFF, word >> 1 & 0x7
    )
    if fields.version != VERSION:
        raise KhlnaryError("version", f"The word {word:#010x} has version {fields.version}, not {VERSION}.")
    if popcount(word >> 1) % 2 != word & 1:
        raise KhlnaryError("parity", f"The word {word:#010x} has wrong parity.")
    glyph = GLYPHS.get(fields.glyph)
    if glyph is None:
        raise KhlnaryError("glyph", f"The word {word:#010x} has the unknown glyph {fields.glyph:#04x}.")
    if glyph.flags[0] & BIN_REF and not fields.flags & BIN_REF:
        raise KhlnaryError("bin-ref", f"{glyph.name} needs the flag BIN_REF.")
    if fields.arity not in glyph.arities:
        raise KhlnaryError("arity", f"{glyph.name} has arity {fields.arity}.")
    if fields.flags not in glyph.flags:
        raise KhlnaryError("flags", f"{glyph.name} has the flags {fields.flags:#x}.")
    if fields.authority == 0:
        raise KhlnaryError("authority", f"{glyph.name} has authority class 0.")
    if fields.authority > authority:
        raise KhlnaryError(
            "authority", f"{glyph.name} asks for authority class {fields.authority}, the context has {authority}."
        )
    return fields


def words_of(data):
    if len(data) % 4:
        raise KhlnaryError("storage", f"A module of {len(data)} bytes is no whole number of words.")
    return list(struct.unpack(f"<{len(data) // 4}I", data))


def bytes_of(words):
    return struct.pack(f"<{len(words)}I", *words)


# ---- the sidecar ----


def unique_object(pairs):
    found = dict(pairs)
    if len(found) != len(pairs):
        raise KhlnaryError("sidecar", "A key of the sidecar occurs twice.")
    return found


def refuse_constant(text):
    raise KhlnaryError("sidecar", f"{text} is no JSON.")


def load_sidecar(path):
    try:
        document = json.loads(
            pathlib.Path(path).read_bytes().decode("utf-8"),
            object_pairs_hook=unique_object,
            parse_constant=refuse_constant,
        )
    except KhlnaryError:
        raise
    except (ValueError, RecursionError) as error:
        raise KhlnaryError("sidecar", f"The sidecar is no JSON: {error}.") from error
    return check_sidecar(document)


def fields_of(value, where, required, optional=()):
    if not isinstance(value, dict):
        raise KhlnaryError("sidecar", f"{where} is no object.")
    for key in value:
        if key not in required and key not in optional:
            raise KhlnaryError("sidecar", f"{where} has the unknown key {key!r}.")
    for key in required:
        if key not in value:
            raise KhlnaryError("sidecar", f"{where} has no {key!r}.")
    return value


def items_of(document, key):
    items = document.get(key, [])
    if not isinstance(items, list):
        raise KhlnaryError("sidecar", f"{key} is no array.")
    return [(f"{key}[{index}]", item) for index, item in enumerate(items)]


def integer(value, where, limit):
    if type(value) is not int or not 0 <= value < limit:
        raise KhlnaryError("sidecar", f"{where} is no integer from 0 to {limit - 1}.")
    return value


def text(value, where):
    if not isinstance(value, str):
        raise KhlnaryError("sidecar", f"{where} is no text.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise KhlnaryError("sidecar", f"{where} has half a surrogate pair.") from error
    return value


def relative_path(value, where):
    if not PATH.match(text(value, where)):
        raise KhlnaryError("sidecar", f"{where} is {value!r}: a path is relative, has no '..' and no backslash.")
    return value


def shape(value, where):
    if not isinstance(value, list) or len(value) > 8:
        raise KhlnaryError("sidecar", f"{where} is no array of at most 8 dimensions.")
    for dim in value:
        integer(dim, where, 1 << 64)
    try:
        stb.product(value)
    except ValueError as error:
        raise KhlnaryError("sidecar", f"{where}: {error}") from error
    return value


def add_unique(value, seen, sentence):
    if value in seen:
        raise KhlnaryError("sidecar", sentence)
    seen.add(value)


def check_sidecar(document):
    """The document, when it keeps every rule that needs no other file."""
    fields_of(document, "The sidecar", ("schema", "files"), ("module", "shapes", "functions", "tensors"))
    if type(document["schema"]) is not int or document["schema"] != 1:
        raise KhlnaryError("sidecar", f"The sidecar has schema {document['schema']!r}; only 1 is defined.")
    if "module" in document:
        relative_path(document["module"], "module")
    files, functions, tensors, names = set(), set(), set(), set()
    for where, item in items_of(document, "files"):
        fields_of(item, where, ("id", "path"), ("mmap_required", "size"))
        add_unique(integer(item["id"], f"{where}.id", 256), files, f"Two files have the id {item['id']}.")
        relative_path(item["path"], f"{where}.path")
        if not isinstance(item.get("mmap_required", False), bool):
            raise KhlnaryError("sidecar", f"{where}.mmap_required is neither true nor false.")
        integer(item.get("size", 0), f"{where}.size", 1 << 64)
    for where, item in items_of(document, "shapes"):
        shape(item, where)
    for where, item in items_of(document, "functions"):
        fields_of(item, where, ("id", "offset"), ("name",))
        add_unique(integer(item["id"], f"{where}.id", 256), functions, f"Two functions have the id {item['id']}.")
        integer(item["offset"], f"{where}.offset", 1 << 64)
        text(item.get("name", ""), f"{where}.name")
    for where, item in items_of(document, "tensors"):
        fields_of(item, where, ("file", "id", "name"), ("shape",))
        integer(item["file"], f"{where}.file", 256)
        integer(item["id"], f"{where}.id", 256)
        add_unique((item["file"], item["id"]), tensors, f"Tensor {item['id']} of file {item['file']} is listed twice.")
        add_unique(text(item["name"], f"{where}.name"), names, f"Two tensors have the name {item['name']!r}.")
        if item["file"] not in files:
            raise KhlnaryError("sidecar", f"{where} names file {item['file']}, which is not in the table of files.")
        if "shape" in item:
            shape(item["shape"], f"{where}.shape")
    return document


def open_file(sidecar, folder, file_id):
    """name -> stb.Entry of one file of the table, all that the sidecar says of it checked."""
    entry = next((item for item in sidecar["files"] if item["id"] == file_id), None)
    if entry is None:
        raise KhlnaryError("file", f"File {file_id} is not in the table of files.")
    path = pathlib.Path(folder) / entry["path"]
    try:
        size = path.stat().st_size
        if size != entry.get("size", size):
            raise KhlnaryError("file", f"{entry['path']} has {size} bytes, the sidecar says {entry['size']}.")
        if entry.get("mmap_required", False):
            with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ):
                pass
    except (OSError, ValueError) as error:
        if isinstance(error, KhlnaryError):
            raise
        raise KhlnaryError("file", f"{entry['path']} cannot be opened or mapped: {error}.") from error
    listed = [item for item in sidecar.get("tensors", []) if item["file"] == file_id]
    try:
        names = {item["id"]: item["name"] for item in listed}
        shapes = {item["id"]: item["shape"] for item in listed if "shape" in item}
        tensors = stb.read(path, sidecar.get("shapes"), names, shapes)
    except ValueError as error:
        raise KhlnaryError("file", f"{entry['path']} is invalid: {error}") from error
    by_id = {found.id: found for found in tensors.values()}
    for item in listed:
        if item["id"] not in by_id:
            raise KhlnaryError("tensor", f"{entry['path']} has no tensor {item['id']}, which the sidecar lists.")
        found = by_id[item["id"]].shape
        if "shape" in item and found is not None and tuple(item["shape"]) != found:
            raise KhlnaryError(
                "tensor", f"Tensor {item['id']} has the shape {list(found)}, the sidecar says {item['shape']}."
            )
    return tensors


# ---- running ----


class Run:
    def __init__(self, words, sidecar, folder, authority):
        self.words = [decode(word, authority) for word in words]
        self.sidecar, self.folder = sidecar, folder
        self.functions = {item["id"]: item["offset"] for item in sidecar.get("functions", [])}
        for number, offset in self.functions.items():
            if (
                offset >= len(words)
                or self.words[offset].glyph != BY_NAME["FUNC_DEF"].id
                or self.words[offset].payload != number
            ):
                raise KhlnaryError("function", f"The word {offset} is not the FUNC_DEF of function {number}.")
        self.files = {}
        self.stack, self.returns, self.loaded = [], [], []

    def pop(self):
        if not self.stack:
            raise KhlnaryError("stack", "The stack is empty.")
        return self.stack.pop()

    def pop_i32(self):
        value = self.pop()
        if type(value) is not int:
            raise KhlnaryError("type", f"{value} is no i32.")
        return value

    def file(self, file_id):
        if file_id not in self.files:
            self.files[file_id] = open_file(self.sidecar, self.folder, file_id)
        return self.files[file_id]

    def behind_function(self, at):
        depth = 0
        for index in range(at, len(self.words)):
            depth += {"FUNC_DEF": 1, "FUNC_END": -1}.get(GLYPHS[self.words[index].glyph].name, 0)
            if depth == 0:
                return index + 1
        raise KhlnaryError("function", f"The FUNC_DEF at word {at} has no FUNC_END.")

    def jump(self, at, payload):
        target = at + signed8(payload)
        if not 0 <= target < len(self.words):
            raise KhlnaryError(
                "jump", f"The jump at word {at} leads to {target}, outside the module of {len(self.words)}."
            )
        return target

    def step(self, at):
        """Runs the word and says which is next; None ends the run."""
        word = self.words[at]
        name = GLYPHS[word.glyph].name
        if name == "CONST_I8":
            self.stack.append(signed8(word.payload))
        elif name == "ADD_I32":
            self.stack.append(wrap32(self.pop_i32() + self.pop_i32()))
        elif name == "RET":
            self.stack.append(self.pop())
            return self.returns.pop() if self.returns else None
        elif name == "IFZ_JUMP8":
            if self.pop_i32() == 0:
                return self.jump(at, word.payload)
        elif name == "JUMP8":
            return self.jump(at, word.payload)
        elif name == "FUNC_DEF":
            return self.behind_function(at)
        elif name == "FUNC_END":
            raise KhlnaryError("function", f"The run reaches the FUNC_END at word {at} without a RET.")
        elif name == "CALL":
            if word.payload not in self.functions:
                raise KhlnaryError("function", f"Function {word.payload} is not in the table of functions.")
            self.stack.append(self.pop())
            self.returns.append(at + 1)
            return self.functions[word.payload] + 1
        elif name == "LOAD_BIN_TENSOR":
            file_id, tensor_id = word.payload >> 4, word.payload & 0xF
            if all(entry.id != tensor_id for entry in self.file(file_id).values()):
                raise KhlnaryError("tensor", f"File {file_id} has no tensor {tensor_id}.")
            self.loaded.append((file_id, tensor_id))
            self.stack.append(TensorHandle(file_id, tensor_id))
        elif name == "MMAP_BIN_REGION":
            if word.arity:
                self.pop()
            self.file(word.payload)
            self.stack.append(RegionHandle(word.payload))
        return at + 1  # a prefetch may do nothing


def run(words, sidecar=None, folder=".", authority=MAX_AUTHORITY, step_limit=STEP_LIMIT) -> Outcome:
    """Runs a module. `sidecar`: the document of NAME.khm.json, whose paths are relative to `folder`."""
    sidecar = check_sidecar({"schema": 1, "files": []} if sidecar is None else sidecar)
    machine = Run(words, sidecar, folder, authority)
    at: Optional[int] = 0
    steps = 0
    while at is not None and at < len(machine.words):
        if steps == step_limit:
            raise KhlnaryError("steps", f"The module did not end within {step_limit} steps.")
        at = machine.step(at)
        steps += 1
    return Outcome(machine.stack[-1] if machine.stack else None, machine.stack, machine.loaded, steps)
