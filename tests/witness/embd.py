# SPDX-License-Identifier: Apache-2.0
"""EMBD `.weights` 1.0: an independent writer and reader, made from the specification and its readings alone.

Owns: the 64-byte header, the metadata, vocabulary, tensor index and data sections, the 16-byte footer, the three
CRC32s, FNV-1a/32 names, the rules that make a file invalid, a small valid BERT model and a pair of colliding names.
`read` raises ValueError with one sentence on whatever is forbidden; findings that are no error are in `warnings`.
"""
import struct
import zlib

import numpy as np

VOCAB_EMBEDDED, TENSORS_ALIGNED, CHECKSUM_ENABLED, COMPRESSED = 1, 2, 4, 8
HEADER = struct.Struct("<4sHHIIIIIIIIQQII")
HEADER_FIELDS = ("magic", "version_major", "version_minor", "flags", "metadata_offset", "metadata_size",
                 "vocab_offset", "vocab_size", "tensor_index_offset", "tensor_index_count", "tensor_data_offset",
                 "tensor_data_size", "total_file_size", "header_checksum", "reserved")
FOOTER = struct.Struct("<II4sI")
DESCRIPTOR = struct.Struct("<IBBH4IQ")
DTYPES = (("f32", 4), ("f16", 2), ("bf16", 2), ("i32", 4), ("i16", 2), ("i8", 1), ("u32", 4), ("u16", 2), ("u8", 1))
DTYPE_ID = {name: number for number, (name, _) in enumerate(DTYPES)}
FLOAT_IDS = (0, 1, 2)
SPECIAL = ("pad", "unk", "cls", "sep", "mask")
NUMERIC_KEYS = ("embedding_dim", "vocab_size", "num_layers", "num_attention_heads", "hidden_size",
                "intermediate_size", "max_position_emb")
REQUIRED_KEYS = ("model_name", "model_version") + NUMERIC_KEYS + ("created_at",)


def fnv1a32(name):
    """FNV-1a, 32 bits, over the bytes of a name (text is taken as UTF-8)."""
    value = 0x811C9DC5
    for byte in name.encode() if isinstance(name, str) else name:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def crc(data):
    return zlib.crc32(data) & 0xFFFFFFFF


def required_tensors(hidden, layers, intermediate, vocab, positions):
    """Name and shape of every required tensor, in the order of the specification's tables."""
    wide, flat = (hidden, hidden), (hidden,)
    out = [("embeddings.word_embeddings.weight", (vocab, hidden)),
           ("embeddings.position_embeddings.weight", (positions, hidden)),
           ("embeddings.token_type_embeddings.weight", (2, hidden)),
           ("embeddings.LayerNorm.weight", flat), ("embeddings.LayerNorm.bias", flat)]
    for layer in range(layers):
        p = f"encoder.layer.{layer}"
        for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            out += [(f"{p}.{part}.weight", wide), (f"{p}.{part}.bias", flat)]
        out += [(f"{p}.attention.output.LayerNorm.weight", flat), (f"{p}.attention.output.LayerNorm.bias", flat),
                (f"{p}.intermediate.dense.weight", (intermediate, hidden)),
                (f"{p}.intermediate.dense.bias", (intermediate,)),
                (f"{p}.output.dense.weight", (hidden, intermediate)), (f"{p}.output.dense.bias", flat),
                (f"{p}.output.LayerNorm.weight", flat), (f"{p}.output.LayerNorm.bias", flat)]
    return out


# ---------------------------------------------------------------------------------------------------- writing

def build(metadata, vocab, special, tensors, *, flags=VOCAB_EMBEDDED | TENSORS_ALIGNED | CHECKSUM_ENABLED,
          version=(1, 0), section_gap=0, tensor_gap=0, tail_gap=0, gap_byte=0):
    """The bytes of a file; everything is written as given, so an invalid file can be made on purpose.

    tensors: (name, dtype name or number, shape, bytes); special: the five ids by `SPECIAL`'s keys.
    section_gap, tensor_gap and tail_gap are bytes put before each section, before each tensor but the first, and
    before the footer; `gap_byte` fills them and all padding. Without VOCAB_EMBEDDED, vocab and special are unused.
    """
    def fill(upto):
        body.extend(bytes([gap_byte]) * (upto - len(body)))

    def align(position):
        return (position + 63) // 64 * 64 if flags & TENSORS_ALIGNED else position

    body = bytearray(HEADER.size)
    fill(len(body) + section_gap)
    metadata_offset = len(body)
    entries = b""
    for key, value in metadata.items():
        raw_key, raw_value = (part.encode() if isinstance(part, str) else part for part in (key, value))
        entries += struct.pack("<HH", len(raw_key), len(raw_value)) + raw_key + raw_value
    body += struct.pack("<II", len(metadata), len(entries)) + entries
    metadata_size = len(body) - metadata_offset
    vocab_offset = vocab_size = 0
    if flags & VOCAB_EMBEDDED:
        fill(len(body) + section_gap)
        vocab_offset = len(body)
        entries = b"".join(struct.pack("<H", len(token)) + token for token in vocab)
        body += struct.pack("<III", len(vocab), len(entries), vocab_offset + 12 + len(entries)) + entries
        body += struct.pack("<5I", *(special[key] for key in SPECIAL))
        vocab_size = len(body) - vocab_offset
    fill(len(body) + section_gap)
    index_offset = len(body)
    names = [name.encode() if isinstance(name, str) else name for name, _, _, _ in tensors]
    data_offset = align(index_offset + DESCRIPTOR.size * len(names) + sum(map(len, names)) + section_gap)
    position, places = data_offset, []
    for number, (_, _, _, raw) in enumerate(tensors):
        position = align(position + (tensor_gap if number else 0))
        places.append(position - data_offset)
        position += len(raw)
    data_size = position - data_offset
    for name, place, (_, dtype, shape, _) in zip(names, places, tensors):
        dims = tuple(shape) + (0,) * (4 - len(shape))
        body += DESCRIPTOR.pack(fnv1a32(name), DTYPE_ID.get(dtype, dtype), len(shape), len(name), *dims, place)
    body += b"".join(names)
    for place, (_, _, _, raw) in zip(places, tensors):
        fill(data_offset + place)
        body += raw
    fill(data_offset + data_size + tail_gap)
    total = len(body) + FOOTER.size
    HEADER.pack_into(body, 0, b"EMBD", *version, flags, metadata_offset, metadata_size, vocab_offset, vocab_size,
                     index_offset, len(names), data_offset, data_size, total, 0, 0)
    body += FOOTER.pack(0, 0, b"DBME", 0)
    return reseal(bytes(body)) if flags & CHECKSUM_ENABLED else bytes(body)


def reseal(data):
    """The same file with its three checksums computed anew (the footer is the last 16 bytes)."""
    out = bytearray(data)
    struct.pack_into("<I", out, 56, crc(out[:56]))
    start, size = struct.unpack_from("<IQ", out, 36)
    struct.pack_into("<I", out, len(out) - 16, crc(out[start:start + size]))
    struct.pack_into("<I", out, len(out) - 12, crc(out[:-16]))
    return bytes(out)


def write(path, metadata, vocab, special, tensors, **options):
    """Write a file (options as in `build`) and return its bytes."""
    data = build(metadata, vocab, special, tensors, **options)
    with open(path, "wb") as out:
        out.write(data)
    return data


def minimal(hidden=8, layers=1, heads=2, vocab=40, positions=16, seed=1, intermediate=None, dtype="f32"):
    """(metadata, vocab, special, tensors) of a small valid model: the arguments that `write` takes."""
    intermediate = intermediate or 2 * hidden
    metadata = {"model_name": "tiny-bert", "model_version": "1.0.0", "embedding_dim": str(hidden),
                "vocab_size": str(vocab), "num_layers": str(layers), "num_attention_heads": str(heads),
                "hidden_size": str(hidden), "intermediate_size": str(intermediate),
                "max_position_emb": str(positions), "created_at": "1970-01-01T00:00:00Z"}
    tokens = [b"[PAD]", b"[UNK]", b"[CLS]", b"[SEP]", b"[MASK]"]
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.,!?'-\u00e9\u4e2d"
    tokens += [letter.encode() for letter in letters] + [b"##" + letter.encode() for letter in letters]
    tokens += [b"word%d" % number for number in range(vocab)]
    generator = np.random.Generator(np.random.PCG64(seed))
    tensors = []
    for name, shape in required_tensors(hidden, layers, intermediate, vocab, positions):
        values = generator.standard_normal(shape).astype(np.float32) * np.float32(0.1)
        if name.endswith("LayerNorm.weight"):
            values = values + np.float32(1)
        tensors.append((name, dtype, shape, encode(values, dtype)))
    return metadata, tokens[:vocab], dict(zip(SPECIAL, range(5))), tensors


def collision_pair(hidden=8):
    """Two optional tensors whose names share one FNV-1a/32 hash: a lookup has to compare the strings."""
    assert fnv1a32("costarring") == fnv1a32("liquid")
    return [(name, "f32", (hidden,), np.full(hidden, value, "<f4").tobytes())
            for name, value in (("costarring", 1.5), ("liquid", -2.5))]


def encode(values, dtype):
    """f32 values as stored bytes of f32, f16 or bf16 (nearest even; finite values only)."""
    values = np.asarray(values, "<f4")
    if dtype == "bf16":
        bits = values.view("<u4")
        return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(
            "<u2").tobytes()
    return values.astype({"f32": "<f4", "f16": "<f2"}[dtype]).tobytes()


def decode(tensor):
    """A tensor of `read` as an array of its shape; bf16 is widened to f32."""
    dtype, raw = tensor["dtype"], tensor["data"]
    if dtype == "bf16":
        values = (np.frombuffer(raw, "<u2").astype("<u4") << np.uint32(16)).view("<f4")
    else:
        kind = {"f": "f", "i": "i", "u": "u"}[dtype[0]]
        values = np.frombuffer(raw, f"<{kind}{int(dtype[1:]) // 8}")
    return values.reshape(tensor["shape"])


# ---------------------------------------------------------------------------------------------------- reading

def need(condition, sentence):
    if not condition:
        raise ValueError(sentence)


def text(raw, what):
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{what} is not valid UTF-8.") from None


def iso8601(value):
    """A date, or a date and a time with an optional fraction and zone, in the extended form."""
    date, mark, clock = value.partition("T")
    parts = date.split("-")
    if [len(part) for part in parts] != [4, 2, 2] or not all(part.isdecimal() and part.isascii() for part in parts):
        return False
    year, month, day = map(int, parts)
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]:
        return False
    if not mark:
        return True
    if clock.endswith("Z"):
        clock = clock[:-1]
    for sign in "+-":
        if sign in clock:
            clock, zone = clock.split(sign, 1)
            zone = zone.split(":") if ":" in zone else [zone[:2], zone[2:]] if len(zone) == 4 else [zone]
            if not all(len(part) == 2 and part.isdecimal() and part.isascii() for part in zone) or len(zone) > 2:
                return False
    clock, dot, fraction = clock.partition(".")
    if dot and not (fraction.isdecimal() and fraction.isascii()):
        return False
    parts = clock.split(":")
    if len(parts) not in (2, 3) or not all(len(p) == 2 and p.isdecimal() and p.isascii() for p in parts):
        return False
    return all(int(part) <= limit for part, limit in zip(parts, (24, 59, 60)))


def read_metadata(section):
    need(len(section) >= 8, "The metadata section is shorter than its 8-byte header.")
    count, total = struct.unpack_from("<II", section)
    need(len(section) == 8 + total, "metadata_size is not 8 + the metadata's total_size.")
    need(count * 4 <= total, "The metadata states more entries than its size can hold.")
    out, position = {}, 8
    for _ in range(count):
        need(position + 4 <= len(section), "A metadata entry passes the end of its section.")
        key_length, value_length = struct.unpack_from("<HH", section, position)
        position += 4
        end = position + key_length + value_length
        need(end <= len(section), "A metadata entry passes the end of its section.")
        key = text(section[position:position + key_length], "A metadata key")
        need(key not in out, f"The metadata key {key!r} is repeated.")
        out[key] = text(section[position + key_length:end], f"The metadata value of {key!r}")
        position = end
    need(position == len(section), "The metadata entries do not fill total_size.")
    return out


def read_vocab(section, offset, warnings):
    need(len(section) >= 12, "The vocabulary section is shorter than its 12-byte header.")
    count, total, special_at = struct.unpack_from("<III", section)
    need(12 + total <= len(section), "The vocabulary's total_size passes its section.")
    need(count * 2 <= total, "The vocabulary states more tokens than its size can hold.")
    tokens, position = [], 12
    for number in range(count):
        need(position + 2 <= 12 + total, "A token passes the vocabulary's total_size.")
        length = struct.unpack_from("<H", section, position)[0]
        position += 2 + length
        need(position <= 12 + total, "A token passes the vocabulary's total_size.")
        token = section[position - length:position]
        text(token, f"Token {number}")
        tokens.append(token)
    need(position == 12 + total, "The tokens do not fill the vocabulary's total_size.")
    place = special_at - offset
    need(place >= 0 and place + 20 <= len(section), "special_tokens is not inside the vocabulary section.")
    need(place >= 12 + total, "The special token indices overlap the vocabulary's header or tokens.")
    if place - 12 - total > 63 or len(section) - place - 20 > 63:
        warnings.append("The vocabulary section has a gap of more than 63 bytes.")
    special = dict(zip(SPECIAL, struct.unpack_from("<5I", section, place)))
    for key, number in special.items():
        need(number < count, f"The {key} id {number} is not below the vocabulary's {count} tokens.")
    if len(set(tokens)) != count:
        warnings.append("The vocabulary repeats a token.")
    return tokens, special


def check_model(metadata, tensors, warnings):
    """The required keys, the required tensors that follow from them, and their shapes."""
    for key in REQUIRED_KEYS:
        need(key in metadata, f"The required metadata key {key!r} is missing.")
    number = {}
    for key in NUMERIC_KEYS:
        value = metadata[key]
        need(value.isascii() and value.isdecimal() and int(value) > 0,
             f"The metadata value of {key!r} is no positive integer.")
        number[key] = int(value)
    need(number["embedding_dim"] == number["hidden_size"], "embedding_dim is not hidden_size.")
    need(number["hidden_size"] % number["num_attention_heads"] == 0,
         "hidden_size is not a multiple of num_attention_heads.")
    need(5 + 16 * number["num_layers"] <= len(tensors), "num_layers needs more tensors than the index has.")
    by_name = {tensor["name"]: tensor for tensor in tensors}
    hidden = number["hidden_size"]
    for name, shape in required_tensors(hidden, number["num_layers"], number["intermediate_size"],
                                        number["vocab_size"], number["max_position_emb"]):
        need(name in by_name, f"The required tensor {name!r} is missing.")
        tensor = by_name[name]
        need(tensor["shape"] == shape, f"The tensor {name!r} has shape {tensor['shape']}, the metadata wants {shape}.")
        if tensor["supported"]:
            need(tensor["dtype_id"] in FLOAT_IDS, f"The required tensor {name!r} has no float dtype.")
        if tensor["dtype_id"] != 0:
            warnings.append(f"The required tensor {name!r} is not FLOAT32.")
    for name, shape in (("pooler.dense.weight", (hidden, hidden)), ("pooler.dense.bias", (hidden,))):
        need(name not in by_name or by_name[name]["shape"] == shape, f"The tensor {name!r} has not shape {shape}.")
    if not iso8601(metadata["created_at"]):
        warnings.append("created_at is not ISO 8601.")


def looks_like_first_converter(data):
    """Magic, u32 1, u32 tensor count, then records that begin with the length of a printable name."""
    if len(data) < 17 or data[:8] != b"EMBD\1\0\0\0" or data[-12:-4] == b"DBME" + bytes(4):
        return False
    for form in ("<I", "<H"):
        length, start = struct.unpack_from(form, data, 12)[0], 12 + struct.calcsize(form)
        if 0 < length < 512 and start + length <= len(data) and all(32 < b < 127 for b in data[start:start + length]):
            return True
    return False


def parse(data):
    """The parts of a file's bytes; ValueError on whatever is forbidden. See `read`."""
    try:
        return parse_1_0(data)
    except ValueError as error:
        if looks_like_first_converter(data):
            raise ValueError(f"{error} The file looks like the library's first converter layout.") from None
        raise


def parse_1_0(data):
    warnings = []
    need(data[:4] == b"EMBD", "The file does not start with EMBD.")
    need(len(data) >= HEADER.size + FOOTER.size, "The file is shorter than a header and a footer.")
    header = dict(zip(HEADER_FIELDS, HEADER.unpack_from(data)))
    flags = header["flags"]
    need(header["version_major"] == 1, f"The major version {header['version_major']} is not 1.")
    if header["version_minor"]:
        warnings.append("The minor version is newer than 0.")
    need(not flags & COMPRESSED, "The flag COMPRESSED is not supported.")
    need(flags < 8, "A reserved flag is set.")
    if flags & CHECKSUM_ENABLED:
        need(header["header_checksum"] == crc(data[:56]), "The header's CRC32 does not match.")
    need(header["total_file_size"] == len(data), "total_file_size is not the length of the file.")
    if header["reserved"]:
        warnings.append("The header's reserved field is not 0.")
    end = len(data) - FOOTER.size
    data_checksum, file_checksum, magic_end, reserved = FOOTER.unpack_from(data, end)
    need(magic_end == b"DBME", "The footer does not hold DBME.")
    if reserved:
        warnings.append("The footer's reserved field is not 0.")

    count, index_at = header["tensor_index_count"], header["tensor_index_offset"]
    need(index_at + DESCRIPTOR.size * count <= end, "The tensor index does not lie inside the file.")
    rows = [DESCRIPTOR.unpack_from(data, index_at + DESCRIPTOR.size * number) for number in range(count)]
    strings_at = index_at + DESCRIPTOR.size * count
    sections = [("header", 0, HEADER.size), ("metadata", header["metadata_offset"], header["metadata_size"]),
                ("tensor index", index_at, strings_at - index_at + sum(row[3] for row in rows)),
                ("tensor data", header["tensor_data_offset"], header["tensor_data_size"])]
    if flags & VOCAB_EMBEDDED:
        sections.append(("vocabulary", header["vocab_offset"], header["vocab_size"]))
    else:
        need(header["vocab_offset"] == 0 and header["vocab_size"] == 0,
             "VOCAB_EMBEDDED is off, but the header names a vocabulary section.")
    for name, start, size in sections:
        need(start + size <= end, f"The section '{name}' does not lie between the header and the footer.")
    before, previous = "header", 0
    for name, start, size in sorted((s for s in sections if s[2]), key=lambda s: s[1]) + [("footer", end, 16)]:
        need(start >= previous, f"The sections '{before}' and '{name}' overlap.")
        if start - previous > 63:
            warnings.append(f"There is a gap of more than 63 bytes before the section '{name}'.")
        before, previous = name, start + size

    def section(offset, size):
        return data[header[offset]:header[offset] + header[size]]

    metadata = read_metadata(section("metadata_offset", "metadata_size"))
    vocab = special = None
    if flags & VOCAB_EMBEDDED:
        vocab, special = read_vocab(section("vocab_offset", "vocab_size"), header["vocab_offset"], warnings)
        need(metadata.get("vocab_size") is None or metadata["vocab_size"].lstrip("0") == str(len(vocab)),
             "The vocabulary's token_count is not the metadata's vocab_size.")
    tensors = read_index(data, header, rows, strings_at, warnings)
    check_model(metadata, tensors, warnings)

    payload = section("tensor_data_offset", "tensor_data_size")
    if flags & CHECKSUM_ENABLED:
        need(data_checksum == crc(payload), "The CRC32 of the tensor data does not match.")
        need(file_checksum == crc(data[:end]), "The CRC32 of the file does not match.")
    return {"header": header, "metadata": metadata, "vocab": vocab, "special": special, "tensors": tensors,
            "footer": {"data_checksum": data_checksum, "file_checksum": file_checksum}, "warnings": warnings}


def read_index(data, header, rows, strings_at, warnings):
    base, limit = header["tensor_data_offset"], header["tensor_data_size"]
    tensors, seen, ranges = [], set(), []
    for name_hash, dtype, ndim, name_length, *dims, offset in rows:
        raw_name = data[strings_at:strings_at + name_length]
        strings_at += name_length
        name = text(raw_name, "A tensor name")
        need(name_hash == fnv1a32(raw_name), f"The name_hash of {name!r} is not FNV-1a of the name.")
        need(name not in seen, f"The tensor name {name!r} is repeated.")
        seen.add(name)
        need(1 <= ndim <= 4, f"The tensor {name!r} has {ndim} dimensions, not 1 to 4.")
        if any(dims[ndim:]):
            warnings.append(f"The tensor {name!r} has a nonzero unused dimension.")
        shape, supported, size = tuple(dims[:ndim]), dtype < len(DTYPES), None
        if supported:
            size = DTYPES[dtype][1]
            for dim in shape:
                size *= dim
        need(offset + (size or 0) <= limit, f"The tensor {name!r} does not lie inside the tensor data.")
        if header["flags"] & TENSORS_ALIGNED:
            need((base + offset) % 64 == 0, f"The tensor {name!r} does not start on a multiple of 64.")
        if size:
            ranges.append((offset, offset + size, name))
        tensors.append({"name": name, "dtype": DTYPES[dtype][0] if supported else None, "dtype_id": dtype,
                        "shape": shape, "offset": offset, "supported": supported,
                        "data": data[base + offset:base + offset + size] if supported else None})
    reach, covered = 0, (None, None)
    for start, stop, name in sorted(ranges):
        if start < reach and (start, stop) != covered:
            warnings.append(f"The tensor {name!r} overlaps another in part.")
        elif start > reach:
            if header["flags"] & TENSORS_ALIGNED and any(data[base + reach:base + start]):
                warnings.append(f"The padding before the tensor {name!r} is not zero.")
            if header["flags"] & TENSORS_ALIGNED and start - reach > 63:
                warnings.append(f"There is a gap of more than 63 bytes before the tensor {name!r}.")
        if stop >= reach:
            reach, covered = stop, (start, stop)
    return tensors


def read(path):
    """A dict of header, metadata, vocab (bytes, by id), special ids, tensors (raw bytes in `data`) and warnings.

    Every rule is checked, structural and content alike. A tensor of an unknown dtype is listed with
    `supported: False` and without data.
    """
    with open(path, "rb") as file:
        return parse(file.read())


def find(result, name):
    """Lookup by hash and then by string, as the specification resolves collisions."""
    wanted = fnv1a32(name)
    for tensor in result["tensors"]:
        if fnv1a32(tensor["name"]) == wanted and tensor["name"] == name:
            return tensor
    raise KeyError(name)
