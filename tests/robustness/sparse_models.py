# SPDX-License-Identifier: Apache-2.0
# Large models whose payload is a hole in the file: zeros that take no space on the disk.
import struct
import zlib

from jobs import bert, embd
from robustness import MIB


def write_sparse_embd(path, payload):
    """An encoder whose word embeddings are a hole of about that many bytes, with its checksums."""
    width, words = 64, "embeddings.word_embeddings.weight"
    vocab = payload // (4 * width)
    metadata, _, _, tensors = bert(hidden=width, vocab=vocab, missing=(words,))
    tensors.append(tensors.pop(0))  # the hole at the end
    data = bytearray(embd.build(metadata, None, None, tensors, flags=embd.TENSORS_ALIGNED | embd.CHECKSUM_ENABLED))
    fields = list(embd.HEADER.unpack_from(data))
    place = {name: i for i, name in enumerate(embd.HEADER_FIELDS)}
    start, hole = fields[place["tensor_data_offset"]], 4 * width * vocab
    fields[place["tensor_data_size"]] += hole
    fields[place["total_file_size"]] += hole
    embd.HEADER.pack_into(data, 0, *fields)
    struct.pack_into("<I", data, 56, zlib.crc32(data[:56]))
    sums = [zlib.crc32(data[start:-16]), zlib.crc32(data[:-16])]
    zeros = bytes(16 * MIB)
    for done in range(0, hole, len(zeros)):
        sums = [zlib.crc32(zeros[:hole - done], each) for each in sums]
    with open(path, "wb") as file:
        file.write(data[:-16])
        file.seek(hole, 1)
        file.write(embd.FOOTER.pack(*sums, b"DBME", 0))
    return path


def write_sparse_checkpoint(path, payload):
    """A llama2.c checkpoint of about that many bytes, nearly all of them embeddings, and its tokenizer file."""
    dim, positions = 1024, 4
    layer = 2 * dim + 4 * dim * dim + 3 * dim
    vocab = payload // (4 * dim)
    values = vocab * dim + layer + dim + positions * (dim // 2)
    with open(path, "wb") as file:
        file.write(struct.pack("<7i", dim, 1, 1, 2, 2, vocab, positions))
        file.truncate(28 + 4 * values)
    tokens = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(b"<0x%02X>" % i for i in range(256))]
    tokens += [b"t%d" % i for i in range(len(tokens), vocab)]
    path.with_suffix(".tokenizer").write_bytes(
        struct.pack("<i", 16) + b"".join(struct.pack("<fi", -i, len(token)) + token for i, token in enumerate(tokens)))
    return path
