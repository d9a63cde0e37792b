# SPDX-License-Identifier: Apache-2.0
"""zTensor 0.1: a second reader and writer, made from the specification and readings G and Z.

Owns: the file's frame, the CBOR index with an encoder and a decoder of its own, every rule on the fields, CRC-32C,
the walk through a zstd frame, and the values of dense and sparse tensors. A file that breaks a rule gives a
ValueError whose text is a sentence. What a reading calls a warning is collected; what it calls unsupported opens, and
`reason` says why it has no values. zstd content needs the package `zstandard`; everything else is the standard
library and numpy.
"""

import hashlib
import pathlib
import re
import struct
from typing import NamedTuple, Optional

import numpy as np

try:
    import zstandard
except ImportError:
    zstandard = None

MAGIC = b"ZTEN0001"
ALIGNMENT = 64
MAX_NESTING = 64
U64 = 1 << 64
DECODED_LIMIT = 64 << 30
# The file's name of a dtype -> the short name and numpy's type of the stored elements (bfloat16 as its 16 bits).
DTYPES = {
    "float64": ("f64", "<f8"),
    "float32": ("f32", "<f4"),
    "float16": ("f16", "<f2"),
    "bfloat16": ("bf16", "<u2"),
    "int64": ("i64", "<i8"),
    "int32": ("i32", "<i4"),
    "int16": ("i16", "<i2"),
    "int8": ("i8", "i1"),
    "uint64": ("u64", "<u8"),
    "uint32": ("u32", "<u4"),
    "uint16": ("u16", "<u2"),
    "uint8": ("u8", "u1"),
    "bool": ("bool", "?"),
}
LONG = {short: name for name, (short, _) in DTYPES.items()}
SPARSE = ("sparsecoo", "sparsecsr")
SPECIFIED = ("name", "offset", "size", "dtype", "shape", "encoding", "data_endianness", "checksum")


# ---- CBOR ----


class Tag(NamedTuple):
    number: int
    value: object


class Simple(NamedTuple):
    """A simple value without a meaning here; 23 is `undefined`."""

    number: int


class Pairs(NamedTuple):
    """A map with a key that is no text."""

    items: tuple  # of (key, value)


class Indefinite(NamedTuple):
    """Asks the encoder for a map or an array of indefinite length; the decoder gives the plain value."""

    value: object


def head(major, argument):
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 24:
            return bytes([major << 5 | argument])
        if argument < 1 << 8 * size:
            return bytes([major << 5 | code]) + argument.to_bytes(size, "big")
    raise ValueError(f"{argument} does not fit a CBOR head.")


def encode_float(value):
    """The shortest of half, single and double that keeps the value."""
    if value != value:
        return b"\xf9\x7e\x00"
    for first, form in ((0xF9, ">e"), (0xFA, ">f"), (0xFB, ">d")):
        try:
            short = struct.pack(form, value)
        except OverflowError:
            continue
        if struct.unpack(form, short)[0] == value:
            return bytes([first]) + short
    raise AssertionError("a double keeps every value")


def encode(value):
    if value is False or value is True:
        return b"\xf5" if value else b"\xf4"
    if value is None:
        return b"\xf6"
    if isinstance(value, Indefinite):
        inner = value.value
        body = (
            b"".join(encode(k) + encode(v) for k, v in inner.items())
            if isinstance(inner, dict)
            else b"".join(map(encode, inner))
        )
        return (b"\xbf" if isinstance(inner, dict) else b"\x9f") + body + b"\xff"
    if isinstance(value, Tag):
        return head(6, value.number) + encode(value.value)
    if isinstance(value, Simple):
        return head(7, value.number)
    if isinstance(value, Pairs):
        return head(5, len(value.items)) + b"".join(encode(k) + encode(v) for k, v in value.items)
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, float):
        return encode_float(value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        raw = value.encode("utf-8")
        return head(3, len(raw)) + raw
    if isinstance(value, (list, tuple)):
        return head(4, len(value)) + b"".join(map(encode, value))
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(encode(k) + encode(v) for k, v in value.items())
    raise ValueError(f"CBOR has no {type(value).__name__}.")


BREAK = object()


class Decoder:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        if size > len(self.data) - self.at:
            raise ValueError(f"CBOR: {size} bytes are declared, {len(self.data) - self.at} are left.")
        self.at += size
        return self.data[self.at - size : self.at]

    def item(self, depth, allow_break=False):
        """One item; `depth` counts the arrays, maps and tags around it."""
        first = self.take(1)[0]
        major, info = first >> 5, first & 31
        if first == 0xFF:
            if allow_break:
                return BREAK
            raise ValueError("CBOR: a break stands where no item of indefinite length is open.")
        if 28 <= info <= 30 or info == 31 and major not in (2, 3, 4, 5):
            raise ValueError(f"CBOR: the byte {first:#04x} starts no item.")
        if major == 7:
            return self.simple(info)
        argument = None if info == 31 else info if info < 24 else int.from_bytes(self.take(1 << info - 24), "big")
        if major == 0:
            return argument
        if major == 1:
            return -1 - argument
        if major == 2:
            return b"".join(self.strings(2, argument))
        if major == 3:
            return "".join(self.text(part) for part in self.strings(3, argument))
        if depth >= MAX_NESTING:
            raise ValueError(f"CBOR: the nesting is deeper than {MAX_NESTING}.")
        if major == 4:
            return list(self.members(argument, 1, depth))
        if major == 5:
            return self.map(argument, depth)
        return Tag(argument, self.item(depth + 1))

    def simple(self, info):
        if info < 24:
            return {20: False, 21: True, 22: None}.get(info, Simple(info))
        if info == 24:
            number = self.take(1)[0]
            if number < 32:
                raise ValueError(f"CBOR: the simple value {number} is spelled in two bytes.")
            return Simple(number)
        size = 1 << info - 24
        return struct.unpack({2: ">e", 4: ">f", 8: ">d"}[size], self.take(size))[0]

    def strings(self, major, length):
        """The parts of a string: one, or the chunks up to the break."""
        if length is not None:
            yield self.take(length)
            return
        while (first := self.take(1)[0]) != 0xFF:
            info = first & 31
            if first >> 5 != major or info > 27:
                raise ValueError("CBOR: a chunk of a string is no string of its kind and of definite length.")
            yield self.take(info if info < 24 else int.from_bytes(self.take(1 << info - 24), "big"))

    @staticmethod
    def text(raw):
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError("CBOR: a text is no UTF-8.") from error

    def members(self, count, width, depth):
        """The items inside an array (width 1) or a map (width 2)."""
        if count is None:
            while (value := self.item(depth + 1, allow_break=True)) is not BREAK:
                yield value
                if width == 2:
                    yield self.item(depth + 1)
            return
        if count * width > len(self.data) - self.at:
            raise ValueError(f"CBOR: {count} members are declared, {len(self.data) - self.at} bytes are left.")
        for _ in range(count * width):
            yield self.item(depth + 1)

    def map(self, count, depth):
        flat = list(self.members(count, 2, depth))
        pairs = list(zip(flat[::2], flat[1::2]))
        if len({encode(key) for key, _ in pairs}) != len(pairs):
            raise ValueError("CBOR: a map has a key twice.")
        return dict(pairs) if all(isinstance(key, str) for key, _ in pairs) else Pairs(tuple(pairs))


def decode(data):
    """The one item that fills the data."""
    decoder = Decoder(data)
    value = decoder.item(0)
    if decoder.at != len(data):
        raise ValueError(f"CBOR: {len(data) - decoder.at} bytes follow the item.")
    return value


# ---- checksums and zstd ----


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def checksum_of(algorithm, data):
    if algorithm == "crc32c":
        return f"crc32c:0x{crc32c(data):08X}"
    if algorithm == "sha256":
        return "sha256:" + hashlib.sha256(data).hexdigest()
    raise ValueError(f"The checksum algorithm {algorithm!r} is not defined.")


def frame_length(data):
    """(bytes of the one zstd frame that the data starts with, content size that it states or None)."""

    def need(size):
        if size > len(data):
            raise ValueError("The zstd frame is cut off.")

    need(5)
    if data[:4] != b"\x28\xb5\x2f\xfd":
        raise ValueError(f"{data[:4].hex()} starts no zstd frame.")
    descriptor = data[4]
    if descriptor & 8:
        raise ValueError("A reserved bit of the zstd frame header is set.")
    single = descriptor >> 5 & 1
    dictionary = (0, 1, 2, 4)[descriptor & 3]
    size_bytes = (single, 2, 4, 8)[descriptor >> 6]
    at = 5 + (1 - single)
    need(at + dictionary + size_bytes)
    if any(data[at : at + dictionary]):
        raise ValueError("The zstd frame needs a dictionary.")
    at += dictionary
    stated = (
        int.from_bytes(data[at : at + size_bytes], "little") + (256 if size_bytes == 2 else 0) if size_bytes else None
    )
    at += size_bytes
    last = False
    while not last:
        need(at + 3)
        block = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        if kind == 3:
            raise ValueError("The zstd frame has a block of the reserved kind.")
        at += 3 + (1 if kind == 1 else size)
        need(at)
    at += 4 if descriptor & 4 else 0
    need(at)
    return at, stated


def frames(data):
    """Each zstd frame of a stored part with the content size that it states or None; the skippable ones are left out."""
    if not data:
        raise ValueError("There is no zstd frame.")
    while data:
        if len(data) >= 8 and data[1:4] == b"\x2a\x4d\x18" and data[0] >> 4 == 5:
            length = 8 + int.from_bytes(data[4:8], "little")
            if length > len(data):
                raise ValueError("The skippable zstd frame is cut off.")
        else:
            length, stated = frame_length(data)
            yield data[:length], stated
        data = data[length:]


def decompress(data, size):
    """The content of a stored part whose frames, skippable ones passed over, hold exactly `size` bytes."""
    if zstandard is None:
        raise RuntimeError("The Python package zstandard is missing.")
    content = b""
    for frame, stated in frames(data):
        if stated is not None and stated > size - len(content):
            raise ValueError(f"The zstd frame states {stated} bytes, the shape takes {size}.")
        try:
            stream = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(frame, read_across_frames=False)
            while len(content) <= size and (more := stream.read(size + 1 - len(content))):
                content += more
        except zstandard.ZstdError as error:
            raise ValueError(f"The zstd frame is broken: {error}.") from error
    if len(content) != size:
        raise ValueError(
            f"The zstd frame has {'more' if len(content) > size else len(content)} bytes, the shape takes {size}."
        )
    return content


# ---- writing ----


class Tensor(NamedTuple):
    """What write() takes."""

    name: str
    dtype: str  # short name, or any text that is to stand in the file
    shape: tuple
    data: bytes  # elements, little-endian and row-major; of an unknown dtype or a sparse layout, what is to be stored
    encoding: str = "raw"
    endianness: Optional[str] = None  # written where it is given; "big" swaps raw elements
    checksum: Optional[str] = None  # "crc32c", "sha256", or a whole text with a colon
    layout: Optional[str] = "dense"  # None leaves the field out
    attributes: dict = {}


def tensor(name, array, dtype=None, **options):
    """A Tensor of a numpy array; bfloat16 is given as u16 with dtype="bf16"."""
    array = np.asarray(array)
    little = array.astype(array.dtype.newbyteorder("<"))
    names = [short for short, kind in DTYPES.values() if short != "bf16" and np.dtype(kind) == little.dtype]
    return Tensor(name, dtype or names[0], array.shape, little.tobytes(), **options)


def stored_bytes(t, content_size):
    kind = DTYPES.get(LONG.get(t.dtype))
    data = t.data
    if t.encoding == "raw" and t.endianness == "big" and kind:  # of a sparse blob all bytes, those of indices too
        data = np.frombuffer(data, kind[1]).byteswap().tobytes()
    if t.encoding == "zstd":
        if zstandard is None:
            raise RuntimeError("The Python package zstandard is missing.")
        if content_size:
            return zstandard.ZstdCompressor(write_content_size=True).compress(data)
        stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
        return stream.compress(data) + stream.flush()
    return data


def to_bytes(tensors, indefinite=False, padding=b"\0", content_size=True):
    """The file, by default as reading Z6 has it.

    `indefinite`: maps of indefinite length, as the published 0.1 packages write; `padding`: the byte between payloads;
    `content_size`: whether zstd frames state their size."""
    out, index = MAGIC, []
    for t in tensors:
        t = Tensor(*t)
        out += padding * (-len(out) % ALIGNMENT)
        data = stored_bytes(t, content_size)
        fields = {"name": t.name, "offset": len(out), "size": len(data), "dtype": LONG.get(t.dtype, t.dtype)}
        if t.layout is not None:
            fields["layout"] = t.layout
        fields["shape"] = list(t.shape)
        fields["encoding"] = t.encoding
        if t.endianness is not None:
            fields["data_endianness"] = t.endianness
        if t.checksum is not None:
            fields["checksum"] = t.checksum if ":" in t.checksum else checksum_of(t.checksum, data)
        for key in sorted(t.attributes, key=lambda key: key.encode("utf-8")):
            if key in fields:
                raise ValueError(f"The attribute {key!r} has the name of a field.")
            fields[key] = t.attributes[key]
        index.append(Indefinite(fields) if indefinite else fields)
        out += data
    return frame(out, index)


def frame(payloads, index):
    """A file of the magic with the payloads, and of an index of any content (bytes stand as they are)."""
    blob = index if isinstance(index, bytes) else encode(index)
    return payloads + blob + struct.pack("<Q", len(blob))


def write(path, tensors, **options):
    pathlib.Path(path).write_bytes(to_bytes(tensors, **options))


# ---- reading ----


class Entry(NamedTuple):
    name: str
    dtype: str  # short name, or the text in the file where that is no dtype of 0.1
    shape: tuple
    offset: int
    size: int
    encoding: str
    layout: str  # dense, sparsecoo, sparsecsr
    endianness: Optional[str]
    checksum: Optional[str]
    attributes: dict  # every key that the specification does not name
    stored: bytes
    reason: Optional[str]  # why the elements cannot be read


class Container(NamedTuple):
    entries: list  # in the order of the index
    warnings: list  # sentences


def is_uint(value):
    return type(value) is int and 0 <= value < U64


def product(shape):
    """The number of elements; one dimension of 0 makes it 0, otherwise it has to fit 64 bits."""
    if 0 in shape:
        return 0
    count = 1
    for dim in shape:
        count *= dim
    if count >= U64:
        raise ValueError(f"The product of the shape {list(shape)} does not fit 64 bits.")
    return count


def dense_size(entry):
    size = product(entry.shape) * np.dtype(DTYPES[LONG[entry.dtype]][1]).itemsize
    if size >= U64:
        raise ValueError(f"Tensor {entry.name!r}: its size does not fit 64 bits.")
    return size


def parse(data):
    """The tensors of a file and its warnings; every rule that needs no payload is checked."""
    if len(data) < len(MAGIC) + 1 + 8:
        raise ValueError(f"The file has {len(data)} bytes; the smallest has 17.")
    if data[:8] != MAGIC:
        raise ValueError(f"The magic is {data[:8]!r}, not {MAGIC!r}.")
    index_size = struct.unpack("<Q", data[-8:])[0]
    if not 1 <= index_size <= len(data) - 16:
        raise ValueError(f"An index of {index_size} bytes does not fit the file of {len(data)}.")
    end = len(data) - 8 - index_size
    index = decode(data[end:-8])
    if not isinstance(index, list):
        raise ValueError("The index is no array.")
    entries, warnings, names = [], [], set()
    for number, fields in enumerate(index):
        if not isinstance(fields, dict):
            raise ValueError(f"Element {number} of the index is no map with text keys.")
        entry = parse_entry(data, end, number, fields, warnings)
        if entry.name in names:
            raise ValueError(f"Two tensors have the name {entry.name!r}.")
        names.add(entry.name)
        entries.append(entry)
    ranges = sorted((e.offset, e.size, e.name) for e in entries if e.size)
    for (offset, size, name), (next_offset, next_size, next_name) in zip(ranges, ranges[1:]):
        if next_offset < offset + size and (offset, size) != (next_offset, next_size):
            warnings.append(f"The payloads of {name!r} and {next_name!r} overlap in part.")
    return Container(entries, warnings)


def parse_entry(data, end, number, fields, warnings):
    what = f"Element {number} of the index"
    checks = {
        "name": (str, "text"),
        "offset": (None, "unsigned integer"),
        "size": (None, "unsigned integer"),
        "dtype": (str, "text"),
        "shape": (list, "array"),
        "encoding": (str, "text"),
    }
    for key, (kind, noun) in checks.items():
        if key not in fields:
            raise ValueError(f"{what} has no {key!r}.")
        if not (is_uint(fields[key]) if kind is None else isinstance(fields[key], kind)):
            raise ValueError(f"{what}: {key!r} is no {noun}.")
    name, offset, size, encoding = fields["name"], fields["offset"], fields["size"], fields["encoding"]
    what = f"Tensor {name!r}"
    if not all(map(is_uint, fields["shape"])):
        raise ValueError(f"{what}: a dimension is no unsigned integer.")
    if "data_endianness" in fields and fields["data_endianness"] not in ("little", "big"):
        raise ValueError(f"{what}: data_endianness is {fields['data_endianness']!r}, neither 'little' nor 'big'.")
    if "checksum" in fields:
        check_checksum(what, fields["checksum"], warnings)
    if offset < ALIGNMENT or offset % ALIGNMENT:
        raise ValueError(f"{what}: offset {offset} is no multiple of {ALIGNMENT} from {ALIGNMENT} on.")
    if offset + size > end:
        raise ValueError(f"{what}: {size} bytes at {offset} pass the start of the index, {end}.")
    layout = fields.get("layout")
    known_layout = isinstance(layout, str) and layout in ("dense", *SPARSE)
    attributes = {
        key: value for key, value in fields.items() if key not in SPECIFIED and not (key == "layout" and known_layout)
    }
    known = fields["dtype"] in DTYPES
    dtype = DTYPES[fields["dtype"]][0] if known else fields["dtype"]
    layout = layout if known_layout else "dense"
    reason = None
    if not known:
        reason = f"dtype {dtype!r} is not defined"
    elif encoding not in ("raw", "zstd"):
        reason = f"encoding {encoding!r} is not defined"
    entry = Entry(
        name,
        dtype,
        tuple(fields["shape"]),
        offset,
        size,
        encoding,
        layout,
        fields.get("data_endianness"),
        fields.get("checksum"),
        attributes,
        data[offset : offset + size],
        reason,
    )
    product(entry.shape)
    if layout in SPARSE and reason is None and encoding == "raw":
        check_blob(entry, size)
    if known and layout == "dense":
        demanded = dense_size(entry)
        if encoding == "raw" and size != demanded:
            raise ValueError(
                f"{what}: the shape {list(entry.shape)} of {dtype} takes {demanded} bytes, size says {size}."
            )
    return entry


def check_blob(entry, size):
    """The number of entries in a blob of `size` bytes."""
    what, rank, width = f"Tensor {entry.name!r}", len(entry.shape), np.dtype(DTYPES[LONG[entry.dtype]][1]).itemsize
    csr = entry.layout == "sparsecsr"
    if csr and rank != 2 or rank == 0:
        raise ValueError(f"{what}: {rank} dimensions do not fit the layout {entry.layout}.")
    bounds = 8 * (entry.shape[0] + 1) if csr else 0
    count, rest = divmod(size - bounds, 8 * (1 if csr else rank) + width)
    if size < bounds or rest:
        raise ValueError(f"{what}: {size} bytes are no whole number of entries.")
    return count


def check_checksum(what, checksum, warnings):
    if not isinstance(checksum, str):
        raise ValueError(f"{what}: the checksum is no text.")
    algorithm = checksum.partition(":")[0]
    forms = {"crc32c": r"crc32c:0x[0-9A-Fa-f]{8}", "sha256": r"sha256:[0-9A-Fa-f]{64}"}
    if algorithm not in forms or ":" not in checksum:
        warnings.append(f"{what}: the checksum {checksum!r} is of an unknown algorithm.")
    elif not re.fullmatch(forms[algorithm], checksum):
        raise ValueError(f"{what}: the checksum {checksum!r} is malformed.")


def verify(entry):
    """Checks what needs the payload: the checksum, and that zstd content is what the shape demands."""
    if entry.checksum is not None and entry.checksum.startswith(("crc32c:", "sha256:")):
        found = checksum_of(entry.checksum.partition(":")[0], entry.stored)
        if found.lower() != entry.checksum.lower():
            raise ValueError(f"Tensor {entry.name!r}: the checksum is {entry.checksum}, the stored bytes give {found}.")
    if entry.reason is None and entry.layout in SPARSE:
        densified(entry)
    elif entry.reason is None and entry.encoding == "zstd":
        logical_bytes(entry)


def logical_bytes(entry, limit=DECODED_LIMIT):
    """The elements of a dense tensor: little-endian, row-major, bools 0 and 1."""
    if entry.reason or entry.layout in SPARSE:
        raise ValueError(f"Tensor {entry.name!r} is unsupported: {entry.reason or 'it is sparse'}.")
    kind = np.dtype(DTYPES[LONG[entry.dtype]][1])
    size = dense_size(entry)
    if size > limit:
        raise ValueError(f"Tensor {entry.name!r} takes {size} bytes, more than the limit of {limit}.")
    data = decompress(entry.stored, size) if entry.encoding == "zstd" else entry.stored
    if entry.encoding == "raw" and entry.endianness == "big":
        data = np.frombuffer(data, kind).byteswap().tobytes()
    return bytes(map(bool, data)) if entry.dtype == "bool" else data


def array(entry):
    """The numpy array of a dense tensor; bf16 as u16."""
    return np.frombuffer(logical_bytes(entry), DTYPES[LONG[entry.dtype]][1]).reshape(entry.shape)


def densified(entry):
    """The little-endian dense form of a sparse blob, as reading Z1 describes what real 0.1 writers store."""
    if entry.layout not in SPARSE or entry.reason:
        raise ValueError(f"Tensor {entry.name!r} is no sparse tensor that can be read.")
    kind = np.dtype(DTYPES[LONG[entry.dtype]][1])
    data = zstandard.ZstdDecompressor().decompressobj().decompress(entry.stored) if entry.encoding == "zstd" else entry.stored
    if entry.encoding == "raw" and entry.endianness == "big":
        data = np.frombuffer(data, kind).byteswap().tobytes()
    count, rank = check_blob(entry, len(data)), len(entry.shape)
    if entry.layout == "sparsecoo":
        entries = np.frombuffer(data, np.dtype([("place", "<u8", (rank,)), ("value", f"V{kind.itemsize}")]))
        places, values = entries["place"].reshape(count, rank), entries["value"]
    else:
        rows = entry.shape[0]
        starts = [int(start) for start in np.frombuffer(data, "<u8", rows + 1)]
        if starts[0] or starts[-1] != count or starts != sorted(starts):
            raise ValueError(f"Tensor {entry.name!r}: the row starts do not fit {count} values.")
        columns = np.frombuffer(data, "<u8", count, 8 * (rows + 1))
        places = np.stack([np.repeat(np.arange(rows, dtype=np.uint64), np.diff(starts)), columns], 1)
        values = np.frombuffer(data, f"V{kind.itemsize}", count, 8 * (rows + 1 + count))
    if (places >= np.array(entry.shape, np.uint64)).any():
        raise ValueError(f"Tensor {entry.name!r}: an index is outside the shape.")
    out = np.zeros(entry.shape, f"V{kind.itemsize}")
    for place, value in zip(places, values):
        out[tuple(int(i) for i in place)] = value
    return out.tobytes()


def read(path):
    """name -> Entry."""
    return {entry.name: entry for entry in parse(pathlib.Path(path).read_bytes()).entries}
