# SPDX-License-Identifier: Apache-2.0
"""SLM 1: an independent writer and reader, made from the specification and its readings alone.

Owns: the 108-byte header, the file, tokenizer and layout checksums (M1, M3), FNV-1a/64 names, the BTOK and BPE1
sections, f32 / q8_0 / q4_0 payloads with quantizing and dequantizing (M7), the file layout and its known sizes (M19),
two fixtures, and every failure case. `read` raises ValueError with one sentence; other findings are in `warnings`.
"""
import struct

import numpy as np

FILE_SEED, TOKENIZER_SEED = 0x9E3779B97F4A7C15, 0x746F6B656E697A65
PRIME, MASK = 0x100000001B3, 0xFFFFFFFFFFFFFFFF
TIED = 1
HEADER = struct.Struct("<4s13I2f3QIQQ")
HEADER_FIELDS = ("magic", "version", "header_length", "model_type", "flags", "vocab_size", "special_token_count",
                 "hidden_size", "layer_count", "head_count", "kv_head_count", "head_dim", "ffn_size", "max_context",
                 "rope_theta", "rms_norm_epsilon", "tokenizer_offset", "tokenizer_length", "tensor_directory_offset",
                 "tensor_count", "tensor_data_offset", "checksum")
FIELD_AT = dict(zip(HEADER_FIELDS, (*range(0, 64, 4), 64, 72, 80, 88, 92, 100)))
ENTRY = struct.Struct("<QII4IQQQII")
DTYPES = {1: "f32", 2: "q8_0", 3: "q4_0"}
DTYPE_ID = {name: number for number, name in DTYPES.items()}
SPECIAL = ("bos", "eos", "pad", "unk")


# ---------------------------------------------------------------------------------------------------- checksums

def checksum(data, seed=FILE_SEED):
    """M1: h = rotl64(h ^ (byte + i), 7) * prime, mod 2^64. The bits that the shift pushes past 64 fall to the mask."""
    h, prime, mask = seed, PRIME, MASK
    for start in range(0, len(data), 1 << 16):
        part = np.frombuffer(data[start:start + (1 << 16)], np.uint8)
        for value in (part + np.arange(start, start + len(part), dtype=np.int64)).tolist():
            h ^= value
            h = ((h << 7 | h >> 57) * prime) & mask
    return h


OTHER_FORMS = {
    "byte ^ i": lambda h, byte, i: h ^ (byte ^ i),
    "byte + i * golden": lambda h, byte, i: h ^ ((byte + i * FILE_SEED) & MASK),
    "byte ^ (i * golden)": lambda h, byte, i: h ^ (byte ^ (i * FILE_SEED & MASK)),
    "h + byte + i": lambda h, byte, i: (h + byte + i) & MASK,
    "byte + (i << 8)": lambda h, byte, i: h ^ (byte + (i << 8)),
}


def checksum_other(data, form, seed=FILE_SEED):
    """The plausible forms that are not M1's: what a foreign writer may have meant (slow; for small files)."""
    h, mix = seed, OTHER_FORMS[form]
    for i, byte in enumerate(data):
        h = mix(h, byte, i)
        h = ((h << 7 | h >> 57) * PRIME) & MASK
    return h


def file_checksum(data):
    """M1 over the whole file with its own field, bytes 100..108, as zero."""
    return checksum(bytes(data[:100]) + bytes(8) + bytes(data[108:]))


def tokenizer_checksum(section):
    return checksum(section, TOKENIZER_SEED)


def layout_checksum(entries):
    """M3: M1 over 44 bytes an entry, sorted by name hash."""
    return checksum(b"".join(
        struct.pack("<QII4IIQ", e["name_hash"], DTYPE_ID[e["dtype"]], len(e["dims"]),
                    *e.get("raw_dims", tuple(e["dims"]) + (0,) * (4 - len(e["dims"]))), e["block_size"],
                    len(e["payload"]))
        for e in sorted(entries, key=lambda e: e["name_hash"])))


def fnv1a64(name):
    value = 0xCBF29CE484222325
    for byte in name.encode() if isinstance(name, str) else name:
        value = ((value ^ byte) * PRIME) & MASK
    return value


# --------------------------------------------------------------------------------------------------- tokenizers

def btok():
    """The 28-byte byte tokenizer section."""
    return struct.pack("<4s6I", b"BTOK", 1, 260, 256, 257, 258, 259)


def bpe1(vocab_size, special, tokens, merges):
    """A BPE1 section; special: BOS, EOS, PAD, UNK; tokens: (id, bytes); merges: (left, right, output, rank)."""
    out = struct.pack("<4s8I", b"BPE1", 1, vocab_size, *special, len(tokens), len(merges))
    for number, raw in tokens:
        out += struct.pack("<II", number, len(raw)) + raw
    return out + b"".join(struct.pack("<4I", *merge) for merge in merges)


def parse_tokenizer(section, vocab_size, warnings=None):
    """A dict of kind, vocab_size, special, tokens and merges, in the section's own order."""
    warnings = [] if warnings is None else warnings
    need(len(section) >= 4, "The tokenizer section is too short for its magic.")
    magic = section[:4]
    need(magic in (b"BTOK", b"BPE1"), "The tokenizer's magic is neither BTOK nor BPE1.")
    if magic == b"BTOK":
        need(len(section) == 28, "A BTOK section is 28 bytes long.")
        version, vocab, *special = struct.unpack_from("<6I", section, 4)
        need(version == 1, "The tokenizer's version is not 1.")
        need(vocab == 260, "A BTOK section has a vocabulary of 260.")
        need(special == [256, 257, 258, 259], "A BTOK section has the special ids 256, 257, 258, 259.")
        need(vocab_size == 260, "The header's vocab_size is not the BTOK section's 260.")
        return {"kind": "BTOK", "vocab_size": 260, "special": dict(zip(SPECIAL, special)), "tokens": [], "merges": []}
    need(len(section) >= 36, "A BPE1 section is at least 36 bytes long.")
    version, vocab, *special, token_count, merge_count = struct.unpack_from("<8I", section, 4)
    need(version == 1, "The tokenizer's version is not 1.")
    need(vocab == vocab_size, "The tokenizer's vocabulary size is not the header's.")
    for key, number in zip(SPECIAL, special):
        need(number < vocab, f"The special id {key} = {number} is outside the vocabulary.")
    need(token_count * 9 + merge_count * 16 <= len(section) - 36,
         "The tokenizer states more records than its section can hold.")
    tokens, ids, position = [], set(), 36
    for _ in range(token_count):
        need(position + 8 <= len(section), "A token record passes the tokenizer section.")
        number, length = struct.unpack_from("<II", section, position)
        position += 8
        need(number < vocab, f"The token id {number} is outside the vocabulary.")
        need(number not in ids, f"The token id {number} is repeated.")
        need(length > 0, f"The token {number} has no bytes.")
        need(position + length <= len(section), "A token record passes the tokenizer section.")
        ids.add(number)
        tokens.append((number, section[position:position + length]))
        position += length
    need(position + 16 * merge_count <= len(section), "The merge records pass the tokenizer section.")
    merges, pairs = [], set()
    for _ in range(merge_count):
        left, right, output, rank = struct.unpack_from("<4I", section, position)
        position += 16
        need(max(left, right, output) < vocab, f"The merge {left} + {right} has an id outside the vocabulary.")
        need(output in ids, f"The merge output {output} is not in the token table.")
        if (left, right) in pairs:
            warnings.append(f"The merge pair {left} + {right} is repeated.")
        pairs.add((left, right))
        merges.append((left, right, output, rank))
    need(position == len(section), "The tokenizer section has bytes after its last record.")
    return {"kind": "BPE1", "vocab_size": vocab, "special": dict(zip(SPECIAL, special)), "tokens": tokens,
            "merges": merges}


# ----------------------------------------------------------------------------------------------------- payloads

def rows_columns(dims):
    rows = dims[0] if len(dims) > 1 else 1
    return rows, product(dims) // rows


def product(dims):
    out = 1
    for dim in dims:
        out *= int(dim)
    return out


def q4_block(columns):
    """32 where it divides the columns, else the largest even divisor below 32; None for odd columns."""
    return next((block for block in range(32, 0, -2) if columns % block == 0), None)


def quantize(groups, levels, low, high):
    """Codes and scales of a [groups, width] array: all in f32, x / scale rounded to nearest even, then clamped."""
    scales = np.abs(groups).max(axis=1) / np.float32(levels)
    scales = np.where(scales > 0, scales, np.float32(1)).astype("<f4")
    return np.clip(np.rint(groups / scales[:, None]), low, high).astype(np.int8), scales


def target(dims, dtype, quantize_norms=False):
    """The dtype and block size that a tensor of these dims gets when a model is written in `dtype`."""
    columns = rows_columns(dims)[1]
    if dtype == "f32" or (len(dims) == 1 and not quantize_norms):
        return "f32", 0
    if dtype == "q4_0" and columns % 2 == 0:
        return "q4_0", q4_block(columns)
    return "q8_0", columns


def lengths(dims, dtype, block):
    """Bytes of the payload and of its scales."""
    rows, columns = rows_columns(dims)
    if dtype == "f32":
        return rows * columns * 4, 0
    return (rows * columns, rows * 4) if dtype == "q8_0" else (rows * columns // 2, rows * (columns // block) * 4)


def pack(name, values, dtype="f32", block=None):
    """A directory entry with its payload and scales; `name` may be a hash. block: q4_0's, else M7's choice."""
    values = np.ascontiguousarray(values, "<f4")
    rows, columns = rows_columns(values.shape)
    scales, block_size = b"", 0
    if dtype == "f32":
        payload = values.tobytes()
    elif dtype == "q8_0":
        codes, found = quantize(values.reshape(rows, columns), 127, -127, 127)
        payload, scales, block_size = codes.tobytes(), found.tobytes(), columns
    else:
        block_size = block or q4_block(columns)
        codes, found = quantize(values.reshape(-1, block_size), 7, -8, 7)
        nibbles = codes.view(np.uint8).reshape(-1) & 15
        payload, scales = (nibbles[0::2] | nibbles[1::2] << 4).tobytes(), found.tobytes()
    name_hash = name if isinstance(name, int) else fnv1a64(name)
    return {"name": f"#{name:016x}" if isinstance(name, int) else name, "name_hash": name_hash, "dtype": dtype,
            "dims": values.shape, "payload": payload, "scales": scales, "block_size": block_size}


def values(entry):
    """An entry's values as an f32 array of its dims."""
    if entry["dtype"] == "f32":
        return np.frombuffer(entry["payload"], "<f4").reshape(entry["dims"])
    scales = np.frombuffer(entry["scales"], "<f4")
    if entry["dtype"] == "q8_0":
        codes = np.frombuffer(entry["payload"], np.int8)
    else:
        raw = np.frombuffer(entry["payload"], np.uint8)
        codes = np.stack([raw & 15, raw >> 4], axis=1).reshape(-1).astype(np.int8)
        codes = np.where(codes > 7, codes - 16, codes)
    groups = codes.astype(np.float32).reshape(len(scales), -1)
    return (groups * scales[:, None]).astype(np.float32).reshape(entry["dims"])


# ------------------------------------------------------------------------------------------------------ writing

def tensor_shapes(header):
    """Name and dims of every required tensor, in the specification's order; output.weight unless tied."""
    vocab, hidden, ffn = header["vocab_size"], header["hidden_size"], header["ffn_size"]
    out = [("tok_embeddings.weight", (vocab, hidden)), ("norm.weight", (hidden,))]
    if not header["flags"] & TIED:
        out.append(("output.weight", (vocab, hidden)))
    for layer in range(header["layer_count"]):
        for part, dims in (("attention_norm", (hidden,)), ("ffn_norm", (hidden,)), ("wq", (hidden, hidden)),
                           ("wk", (hidden, hidden)), ("wv", (hidden, hidden)), ("wo", (hidden, hidden)),
                           ("w1", (ffn, hidden)), ("w2", (hidden, ffn)), ("w3", (ffn, hidden))):
            out.append((f"layers.{layer}.{part}.weight", dims))
    return out


def align(position):
    return (position + 63) // 64 * 64


def plan(header_length, tokenizer_length, sizes):
    """Where the writer puts things: (directory, data, [(payload, scales)], file size); sizes as of `lengths`."""
    directory = align(header_length + tokenizer_length)
    data = position = align(directory + ENTRY.size * len(sizes))
    places = []
    for payload, scales in sizes:
        start = align(position)
        position = start + payload
        scale_start = align(position) if scales else 0
        position = scale_start + scales if scales else position
        places.append((start, scale_start))
    return directory, data, places, align(position)


def file_size(header, dtype, *, quantize_norms=False, tokenizer_length=28, header_length=108):
    """The size of a file of this shape by the writer's own layout, without making it."""
    sizes = []
    for _, dims in tensor_shapes(header):
        sizes.append(lengths(dims, *target(dims, dtype, quantize_norms)))
    return plan(header_length, tokenizer_length, sizes)[3]


def original_size(dtype):
    """M19: the original's 17,048,064-parameter model, norms quantized."""
    return file_size(dict(ORIGINAL), dtype, quantize_norms=True)


ORIGINAL = {"flags": 0, "vocab_size": 260, "special_token_count": 4, "hidden_size": 512, "layer_count": 4,
            "head_count": 8, "kv_head_count": 8, "head_dim": 64, "ffn_size": 2048, "max_context": 512,
            "rope_theta": 10000.0, "rms_norm_epsilon": 1e-5}


def fixture(kind="tiny", seed=1):
    """header, tokenizer and f32 tensors of `tiny` or `tiny-tied`: the first three arguments of `build`, by name."""
    header = {"flags": {"tiny": 0, "tiny-tied": TIED}[kind], "vocab_size": 260, "special_token_count": 4,
              "hidden_size": 8, "layer_count": 1, "head_count": 2, "kv_head_count": 2, "head_dim": 4, "ffn_size": 16,
              "max_context": 32, "rope_theta": 10000.0, "rms_norm_epsilon": 1e-5}
    generator = np.random.Generator(np.random.PCG64(seed))
    tensors = []
    for name, dims in tensor_shapes(header):
        array = generator.standard_normal(dims).astype(np.float32) * np.float32(0.25)
        tensors.append((name, array + np.float32(1) if len(dims) == 1 else array))
    return {"header": header, "tokenizer": btok(), "tensors": tensors}


def build(header, tokenizer, tensors, *, dtype="f32", quantize_norms=False, extra=b"", tail=0):
    """The bytes of a file. tensors: (name or hash, f32 array), or entries as `pack` and `read` give them.

    Arrays are quantized as M7 says for `dtype`; entries are written as they are. `extra` follows the 108 header
    bytes, `tail` zero bytes follow the file's padding. Nothing is checked: an invalid file can be made on purpose.
    """
    entries = []
    for item in tensors:
        if not isinstance(item, dict):
            name, array = item
            kind, block = target(array.shape, dtype, quantize_norms)
            item = pack(name, array, kind, block)
        entries.append(item)
    length = HEADER.size + len(extra)
    directory, data, places, size = plan(length, len(tokenizer), [(len(e["payload"]), len(e["scales"]))
                                                                 for e in entries])
    out = bytearray(size + tail)
    fields = {"magic": b"SLM1", "version": 1, "header_length": length, "model_type": 1, "tokenizer_offset": length,
              "tokenizer_length": len(tokenizer), "tensor_directory_offset": directory, "tensor_count": len(entries),
              "tensor_data_offset": data, "checksum": 0}
    fields = {**header, **fields}
    HEADER.pack_into(out, 0, *(fields[name] for name in HEADER_FIELDS))
    out[HEADER.size:length] = extra
    out[length:length + len(tokenizer)] = tokenizer
    for number, (entry, (payload_at, scales_at)) in enumerate(zip(entries, places)):
        dims = entry.get("raw_dims", tuple(entry["dims"]) + (0,) * (4 - len(entry["dims"])))
        ENTRY.pack_into(out, directory + ENTRY.size * number, entry["name_hash"], DTYPE_ID[entry["dtype"]],
                        len(entry["dims"]), *dims, payload_at, len(entry["payload"]), scales_at,
                        entry["block_size"], 0)
        out[payload_at:payload_at + len(entry["payload"])] = entry["payload"]
        out[scales_at:scales_at + len(entry["scales"])] = entry["scales"]
    return reseal(bytes(out))


def reseal(data):
    """The same bytes with the file checksum computed anew."""
    total = file_checksum(data)
    if total == 0:
        raise ValueError("The file's checksum comes out as 0, which cannot be written.")
    return data[:100] + struct.pack("<Q", total) + data[108:]


def write(path, header, tokenizer, tensors, **options):
    """Write a file (options as in `build`) and return its bytes."""
    data = build(header, tokenizer, tensors, **options)
    with open(path, "wb") as out:
        out.write(data)
    return data


# ------------------------------------------------------------------------------------------------------ reading

def need(condition, sentence):
    if not condition:
        raise ValueError(sentence)


def check_header(h, data):
    need(h["magic"] == b"SLM1", "The file does not start with SLM1.")
    need(h["version"] == 1, f"The version {h['version']} is not 1.")
    need(108 <= h["header_length"] <= len(data), "header_length is below 108 or passes the file.")
    need(h["model_type"] == 1, f"The model type {h['model_type']} is not 1.")
    need(h["flags"] <= 1, "A flag other than bit 0 is set.")
    need(h["checksum"] != 0, "The file checksum is 0.")
    need(h["checksum"] == file_checksum(data), "The file checksum does not match.")
    need(h["vocab_size"] >= 260, "vocab_size is below 260.")
    for field in ("hidden_size", "layer_count", "head_count", "kv_head_count", "head_dim", "ffn_size", "max_context"):
        need(h[field] > 0, f"{field} is 0.")
    need(h["kv_head_count"] <= h["head_count"] and h["head_count"] % h["kv_head_count"] == 0,
         "kv_head_count does not divide head_count.")
    need(h["hidden_size"] == h["head_count"] * h["head_dim"], "hidden_size is not head_count x head_dim.")
    for field in ("rope_theta", "rms_norm_epsilon"):
        need(np.isfinite(h[field]) and h[field] > 0, f"{field} is not finite and positive.")
    size, table = len(data), ENTRY.size * h["tensor_count"]
    need(h["tensor_directory_offset"] % 64 == 0, "tensor_directory_offset is not a multiple of 64.")
    need(h["tensor_data_offset"] % 64 == 0, "tensor_data_offset is not a multiple of 64.")
    need(h["tokenizer_offset"] >= h["header_length"], "The tokenizer section overlaps the header.")
    need(h["tokenizer_offset"] + h["tokenizer_length"] <= size, "The tokenizer section passes the file.")
    need(h["special_token_count"] >= 4 or data[h["tokenizer_offset"]:][:4] != b"BTOK",
         "special_token_count is below 4 in a file with a byte tokenizer.")
    need(h["tensor_directory_offset"] >= h["header_length"], "The tensor directory overlaps the header.")
    need(h["tensor_directory_offset"] + table <= size, "The tensor directory passes the file.")
    need(h["tensor_directory_offset"] + table <= h["tensor_data_offset"] <= size,
         "tensor_data_offset is not between the tensor directory and the end of the file.")
    need(not table or not h["tokenizer_length"]
         or h["tokenizer_offset"] + h["tokenizer_length"] <= h["tensor_directory_offset"]
         or h["tensor_directory_offset"] + table <= h["tokenizer_offset"],
         "The tokenizer section and the tensor directory overlap.")


def read_entry(data, row, h, known, warnings):
    name_hash, dtype, rank, *raw_dims, offset, length, scale_offset, block, _ = row
    name = known.get(name_hash, f"#{name_hash:016x}")
    need(dtype in DTYPES, f"The tensor {name} has the unknown dtype {dtype}.")
    need(1 <= rank <= 4, f"The tensor {name} has rank {rank}, not 1 to 4.")
    dims = tuple(raw_dims[:rank])
    need(all(dims), f"The tensor {name} has a dimension of 0.")
    if any(raw_dims[rank:]):
        warnings.append(f"The tensor {name} has a nonzero dimension past its rank.")
    elements, (rows, columns), kind = product(dims), rows_columns(dims), DTYPES[dtype]
    need(offset % 64 == 0, f"The payload of {name} does not start on a multiple of 64.")
    need(offset >= h["tensor_data_offset"], f"The payload of {name} starts before tensor_data_offset.")
    need(offset + length <= len(data), f"The payload of {name} passes the file.")
    scales = b""
    if kind == "f32":
        need(length == elements * 4, f"The payload of {name} has not its exact length.")
        need(scale_offset == 0 and block == 0, f"The f32 tensor {name} has a scale offset or block size.")
        need(bool(np.isfinite(np.frombuffer(data, "<f4", elements, offset)).all()),
             f"The f32 tensor {name} has a value that is not finite.")
    else:
        if kind == "q8_0":
            need(block == columns, f"The block size of {name} is not its columns per row.")
            need(length == elements, f"The payload of {name} has not its exact length.")
            scale_length = rows * 4
        else:
            need(elements % 2 == 0, f"The q4_0 tensor {name} has an odd number of elements.")
            need(block > 0 and block % 2 == 0 and columns % block == 0,
                 f"The block size of {name} is zero, odd or does not divide its columns.")
            need(length * 2 == elements, f"The payload of {name} has not its exact length.")
            scale_length = rows * (columns // block) * 4
        need(scale_offset != 0, f"The scales of {name} are missing.")
        need(scale_offset >= h["tensor_data_offset"], f"The scales of {name} start before tensor_data_offset.")
        need(scale_offset + scale_length <= len(data), f"The scales of {name} pass the file.")
        if scale_offset % 4:
            warnings.append(f"The scales of {name} are not 4-byte aligned.")
        scales = data[scale_offset:scale_offset + scale_length]
        found = np.frombuffer(scales, "<f4")
        need(bool((np.isfinite(found) & (found > 0)).all()), f"A scale of {name} is not finite and positive.")
    return {"name": name, "name_hash": name_hash, "dtype": kind, "dims": dims, "raw_dims": tuple(raw_dims),
            "payload": data[offset:offset + length], "scales": scales, "block_size": block, "byte_offset": offset,
            "scale_offset": scale_offset}


def parse(data):
    """The parts of a file's bytes; ValueError on whatever is forbidden. See `read`."""
    warnings = []
    need(len(data) >= HEADER.size, "The file is shorter than its 108-byte header.")
    h = dict(zip(HEADER_FIELDS, HEADER.unpack_from(data)))
    check_header(h, data)
    section = data[h["tokenizer_offset"]:h["tokenizer_offset"] + h["tokenizer_length"]]
    tokenizer = parse_tokenizer(section, h["vocab_size"], warnings)

    per_model = 2 + (not h["flags"] & TIED)
    need(per_model + 9 * h["layer_count"] <= h["tensor_count"],
         "A required tensor is missing: layer_count needs more tensors than there are.")
    shapes, alias = dict(tensor_shapes(h)), {}
    shapes["output.weight"] = (h["vocab_size"], h["hidden_size"])
    for layer in range(h["layer_count"]):
        alias[fnv1a64(f"layers.{layer}.attn_norm.weight")] = f"layers.{layer}.attention_norm.weight"
    known = {fnv1a64(name): name for name in shapes} | alias
    directory = data[h["tensor_directory_offset"]:h["tensor_directory_offset"] + ENTRY.size * h["tensor_count"]]
    entries, hashes, names = [], set(), {}
    for row in ENTRY.iter_unpack(directory):
        entry = read_entry(data, row, h, known, warnings)
        need(entry["name_hash"] not in hashes, f"The name hash of {entry['name']} is repeated.")
        hashes.add(entry["name_hash"])
        need(entry["name"] not in names, f"{entry['name']} is present under both of its names.")
        if entry["name_hash"] in alias:
            warnings.append(f"{entry['name']} is stored as attn_norm.")
        names[entry["name"]] = entry
        entries.append(entry)
    for name, dims in shapes.items():
        if name == "output.weight" and h["flags"] & TIED and name not in names:
            continue
        need(name in names, f"The required tensor {name} is missing.")
        need(names[name]["dims"] == dims, f"The tensor {name} has dims {names[name]['dims']}, not {dims}.")
    warn_ranges(h, entries, len(data), warnings)
    counts = {name: sum(e["dtype"] == name for e in entries) for name in DTYPE_ID}
    return {"header": h, "extra": data[HEADER.size:h["header_length"]], "tokenizer": tokenizer,
            "tokenizer_bytes": section, "tokenizer_checksum": tokenizer_checksum(section), "tensors": entries,
            "parameter_count": sum(product(e["dims"]) for e in entries), "layout_checksum": layout_checksum(entries),
            "directory_identity": checksum(directory), "dtype": label(entries), "dtype_counts": counts,
            "warnings": warnings}


def label(entries):
    """The dtype that all entries share, else `mixed`."""
    kinds = {entry["dtype"] for entry in entries}
    return kinds.pop() if len(kinds) == 1 else "mixed"


def warn_ranges(h, entries, size, warnings):
    ranges = [(e["byte_offset"], e["byte_offset"] + len(e["payload"]), e["name"]) for e in entries]
    ranges += [(e["scale_offset"], e["scale_offset"] + len(e["scales"]), e["name"]) for e in entries if e["scales"]]
    tokenizer_end = h["tokenizer_offset"] + h["tokenizer_length"]
    ranges.append((h["tokenizer_offset"], tokenizer_end, "the tokenizer section"))
    reach, covered = 0, None
    for start, stop, name in sorted(ranges):
        if start < reach and (start, stop) != covered:
            warnings.append(f"The bytes of {name} overlap others in part.")
        if stop >= reach:
            reach, covered = stop, (start, stop)
    if size - reach > 63:
        warnings.append("More than 63 bytes follow the last payload.")


def read(path):
    """A dict of header, extra, tokenizer, tensors, checksums, dtype label and warnings; every rule is checked."""
    with open(path, "rb") as file:
        return parse(file.read())
