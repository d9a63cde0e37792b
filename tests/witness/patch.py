# SPDX-License-Identifier: Apache-2.0
"""Patches by docs/patching.md, independent of the library: reads one, applies it to arrays, makes one. Checks nothing that applying does
not need. Needs numpy, zstandard and cbor2."""
import hashlib
import io
import struct

import cbor2
import numpy as np
import zstandard

MAGIC = b"ZTEN1000"
NAMES, NODES = "weighbridge.delta/names", "weighbridge.delta/nodes"
DTYPES = {"bf16": "u2", "f16": "u2", "f32": "u4", "f64": "u8", "u8": "u1", "i8": "u1", "i16": "u2", "u16": "u2", "i32": "u4", "u32": "u4",
          "i64": "u8", "u64": "u8", "bool": "u1", "f8_e4m3": "u1", "f8_e5m2": "u1"}
CHUNK = 1 << 20


def node(dtype, shape, data):
    """The node of a dense tensor (src/core/payload/README.md)."""
    u64, text = (lambda n: struct.pack("<Q", n)), (lambda s: struct.pack("<Q", len(s)) + s.encode())
    leaves = [hashlib.sha256(b"wbdig2.L" + data[i:i + 65536]).digest() for i in range(0, len(data), 65536)]
    dims = u64(len(shape)) + b"".join(map(u64, shape))
    part = hashlib.sha256(b"wbdig2.P" + text("data") + text(dtype) + dims + u64(len(data)) + u64(len(leaves)) + b"".join(leaves)).digest()
    return hashlib.sha256(b"wbdig2.T" + text("dense") + text(dtype) + dims + u64(0) + u64(1) + part).digest()


def root(nodes):
    body = struct.pack("<Q", len(nodes))
    for name in sorted(nodes, key=str.encode):
        body += struct.pack("<Q", len(name.encode())) + name.encode() + nodes[name]
    return "wb2:" + hashlib.sha256(b"wbdig2.M" + body).hexdigest()


def decoded(data, component):
    raw = data[component["offset"]:component["offset"] + component["length"]]
    if component.get("encoding", "raw") == "raw":
        return raw
    return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(raw), read_across_frames=True).read()


def zigzag(d):
    bits = d.dtype.itemsize * 8
    return (d << d.dtype.type(1)) ^ (np.zeros_like(d) - (d >> d.dtype.type(bits - 1)))


def unzigzag(w):
    return (w >> w.dtype.type(1)) ^ (np.zeros_like(w) - (w & w.dtype.type(1)))


def manifest_of(data):
    assert data[:8] == MAGIC and data[-8:] == MAGIC
    size = struct.unpack("<Q", data[-16:-8])[0]
    return cbor2.loads(data[-16 - size:-16])


def applied(path, base):
    """base: {name: (dtype, shape, bytes)}; returns the same of the result."""
    data = open(path, "rb").read()
    manifest = manifest_of(data)
    attributes, objects = manifest["attributes"], manifest["objects"]
    assert attributes["weighbridge.delta"] == "1"
    assert attributes["weighbridge.delta.base"] == root({name: node(*tensor) for name, tensor in base.items()})
    names, nodes, at = decoded(data, objects[NAMES]["components"]["data"]), decoded(data, objects[NODES]["components"]["data"]), 0
    out = {}
    for i in range(len(nodes) // 64):
        size = struct.unpack_from("<I", names, at)[0]
        name = names[at + 4:at + 4 + size].decode()
        at += 4 + size
        wanted = nodes[64 * i + 32:64 * i + 64]
        if wanted == bytes(32):
            continue
        if name in objects:
            out[name] = changed(data, objects[name], name, base)
        else:
            out[name] = base[name]
        assert node(*out[name]) == wanted, name
    assert attributes["weighbridge.delta.result"] == root({name: node(*tensor) for name, tensor in out.items()})
    return out


def changed(data, entry, name, base):
    said, component = entry.get("attributes") or {}, entry["components"]["data"]
    stored = decoded(data, component)
    if "delta.op" not in said:
        return component["dtype"], tuple(entry["shape"]), stored
    dtype, shape, old = base[said.get("from", name)]
    if said["delta.op"] == "rename":
        return dtype, shape, old
    unit = np.dtype("<" + DTYPES[said["dtype"]])
    units, width, at = np.frombuffer(old, unit).copy(), unit.itemsize, 0
    chunk, gap = int(said.get("chunk", CHUNK)), int(said.get("gap", 2))
    chunks = -(-len(units) // chunk)
    for c in range(chunks):
        part = units[c * chunk:(c + 1) * chunk]
        count = len(part) if said["delta.op"] == "dense" else int(said["counts"].split(",")[c]) if "counts" in said else len(stored) // (gap + width)

        def numbers(planes):
            nonlocal at
            out = np.zeros(count, np.uint64)
            for b in range(planes):
                out |= np.frombuffer(stored, np.uint8, count, at).astype(np.uint64) << np.uint64(8 * b)
                at += count
            return out

        where = slice(None) if said["delta.op"] == "dense" else np.cumsum(numbers(gap).astype(np.int64) + 1) - 1
        words = numbers(width).astype(unit)
        code = said.get("code", "sub")
        part[where] = part[where] + unzigzag(words) if code == "sub" else part[where] ^ words if code == "xor" else words
    assert at == len(stored)
    return dtype, shape, units.tobytes()


def made(path, base, result, code="sub"):
    """Writes a patch of tensors with the same names, dtypes and shapes: sparse, gaps of 4 bytes, chunks of 65,536."""
    payloads, objects = MAGIC, {}

    def add(name, stored, decoded_size, encoding, attributes=None):
        nonlocal payloads
        payloads += bytes(-len(payloads) % 64)
        component = {"dtype": "u8", "offset": len(payloads), "length": len(stored), **({"encoding": "zstd"} if encoding else {})}
        payloads += stored
        objects[name] = {"shape": [decoded_size], "format": "dense", "components": {"data": component},
                         **({"attributes": attributes} if attributes else {})}

    names = sorted(base, key=str.encode)
    for name in names:
        dtype, shape, old = base[name]
        unit = np.dtype("<" + DTYPES[dtype])
        a, b, counts, frames, stored = np.frombuffer(old, unit), np.frombuffer(result[name][2], unit), [], [], b""
        if old == result[name][2]:
            continue
        for begin in range(0, len(a), 65536):
            x, y = a[begin:begin + 65536], b[begin:begin + 65536]
            where = np.flatnonzero(x != y)
            counts.append(len(where))
            gaps = (np.diff(where, prepend=-1) - 1).astype("<u4")
            words = (zigzag(y[where] - x[where]) if code == "sub" else x[where] ^ y[where] if code == "xor" else y[where]).astype(unit)
            for plane in (*gaps.view(np.uint8).reshape(-1, 4).T, *words.view(np.uint8).reshape(-1, unit.itemsize).T):
                if len(where):
                    frames.append(zstandard.ZstdCompressor(level=1).compress(np.ascontiguousarray(plane).tobytes()))
        add(name, b"".join(frames), sum(counts) * (4 + unit.itemsize), True,
            {"delta.op": "sparse", "code": code, "dtype": dtype, "shape": ",".join(map(str, shape)), "chunk": "65536", "gap": "4",
             "counts": ",".join(map(str, counts)), "frames": ",".join(str(len(f)) for f in frames)})
    listed = b"".join(struct.pack("<I", len(n.encode())) + n.encode() for n in names)
    add(NAMES, listed, len(listed), False)
    nodes = b"".join(node(*base[n]) + node(*result[n]) for n in names)
    add(NODES, nodes, len(nodes), False)
    ids = {"base": root({n: node(*base[n]) for n in names}), "result": root({n: node(*result[n]) for n in names})}
    manifest = cbor2.dumps({"version": "1.1.0", "objects": objects, "attributes": {
        "weighbridge.delta": "1", "weighbridge.delta.base": ids["base"], "weighbridge.delta.result": ids["result"], "weighbridge.delta.metadata": "keep"}})
    with open(path, "wb") as out:
        out.write(payloads + manifest + struct.pack("<Q", len(manifest)) + MAGIC)
