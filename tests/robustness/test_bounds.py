# SPDX-License-Identifier: Apache-2.0
# Small hostile files that demand large work: counts without data, nesting, junk headers, compressed bombs. Each must be refused
# with a finding, at once, and in memory proportional to its own bytes. The time limit is processor time and twice what is promised, so
# that a busy machine does not fail the test.
import json
import struct

import pytest

from robustness import MIB, Measured

SECONDS = 2
BESIDE = 64 * MIB  # in addition to the header's own bytes


def require_refused(path, header, format):
    """Refused by a rule of the format, or by a limit."""
    for words in (["verify", path, "--json"], ["inspect", path, "--json"]):
        done = Measured(*words)
        assert done.status == 1, (words, done.status, done.stderr)
        findings = json.loads(done.stdout)["files"][0]["findings"]
        assert findings and all(f["rule"].startswith((format + "/", "limit/")) for f in findings), findings[:3]
        assert done.peak < header + BESIDE, f"{words[0]}: {done.peak / MIB:.0f} MiB at the peak, the header has {header / MIB:.0f}"
        assert done.user < SECONDS, f"{words[0]}: {done.user} s"


def zt(manifest, payload=b""):
    """A .zt file with this manifest, and the payload at offset 64."""
    start = b"ZTEN1000" + bytes(56) + payload if payload else b"ZTEN1000"
    return start + manifest + struct.pack("<Q", len(manifest)) + b"ZTEN1000"


def text(string):
    return cbor_head(3, len(string)) + string.encode()


def cbor_head(major, argument):
    if argument < 24:
        return bytes([major << 5 | argument])
    for info, width in ((24, "B"), (25, "H"), (26, "I"), (27, "Q")):
        if argument < 1 << (8 * struct.calcsize(width)):
            return bytes([major << 5 | info]) + struct.pack(f">{width}", argument)
    raise ValueError(argument)


def number(value):
    return cbor_head(0, value)


def mapping(entries):
    return cbor_head(5, len(entries)) + b"".join(text(key) + value for key, value in entries.items())


def manifest(objects, **root):
    return mapping({"version": text("1.1.0"), "objects": objects, **root})


def component(offset, length, dtype="u8", **more):
    return mapping({"dtype": text(dtype), "offset": number(offset), "length": number(length), **more})


def dense(shape, data):
    return mapping({"shape": cbor_head(4, len(shape)) + b"".join(map(number, shape)), "format": text("dense"),
                    "components": mapping({"data": data})})


BIG = 8 * MIB  # bytes of a bomb
HUGE = 1 << 60

SAFETENSORS = {
    "a length of 2^63": struct.pack("<Q", 1 << 63) + b"{}" + bytes(100),
    "a length just past the file": struct.pack("<Q", 99_999_999) + b"{}" + bytes(100),
    "nested arrays": b'{"w":' + b"[" * BIG,
    "nested objects": b'{"w":' + b'{"a":' * (BIG // 5),
    "nested arrays in metadata": b'{"__metadata__":{"a":' + b"[" * BIG,
    "a string without end": b'{"' + b"a" * BIG,
    "a string of escapes": b'{"' + rb"\u0041" * (BIG // 6),
    "a shape without end": b'{"w":{"dtype":"F32","shape":[' + b"0," * (BIG // 2),
    "data_offsets without end": b'{"w":{"dtype":"F32","data_offsets":[' + b"0," * (BIG // 2),
    "white space": b"{" + b" " * BIG,
    "one number": b'{"w":{"shape":[' + b"9" * BIG,
    "a number of zeros": b'{"w":{"shape":[0.' + b"0" * BIG + b"1",
    "100 MB of junk": b"{" + b"\xa5" * 99_999_998 + b"}",
    "100 MB of braces": b"{" * 100_000_000,
    "the same key again and again": b"{" + b'"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},' * (BIG // 56) + b'"x":0}',
    "broken tensors": b"{" + b",".join(b'"%d":{"dtype":"F32","shape":[1],"data_offsets":[9,1]}' % i for i in range(BIG // 56)) + b"}",
    "tensors over each other": b"{" + b",".join(b'"%d":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}' % i
                                                for i in range(BIG // 56)) + b"}",
    "a product past 2^64": b'{"w":{"dtype":"F64","shape":[' + b",".join([b"4294967296"] * 60) + b'],"data_offsets":[0,0]}}',
}


@pytest.mark.parametrize("case", SAFETENSORS)
def test_safetensors(tmp_path, case):
    data = SAFETENSORS[case]
    if case.startswith("a length"):
        header = 0
    else:
        header = len(data)
        data = struct.pack("<Q", header) + data
    path = tmp_path / "hostile.safetensors"
    path.write_bytes(data)
    require_refused(path, header, "safetensors")


ZT = {
    "an array of 2^60": manifest(cbor_head(4, HUGE)),
    "a map of 2^60": manifest(cbor_head(5, HUGE)),
    "a text of 2^60": manifest(cbor_head(3, HUGE)),
    "bytes of 2^60": mapping({"version": text("1.1.0"), "attributes": mapping({"a": cbor_head(2, HUGE)})}),
    "a map of 2^64 - 1": manifest(cbor_head(5, (1 << 64) - 1)),
    "a shape of 2^60 extents": manifest(mapping({"w": mapping({"shape": cbor_head(4, HUGE)})})),
    "nested arrays": mapping({"version": text("1.1.0"), "attributes": mapping({"a": b"\x81" * BIG})}),
    "nested maps": mapping({"version": text("1.1.0"), "attributes": mapping({"a": b"\xa1\x00" * (BIG // 2)})}),
    "nested tags": mapping({"version": text("1.1.0"), "attributes": mapping({"a": b"\xc1" * BIG})}),
    "nested arrays without counts": mapping({"version": text("1.1.0"), "attributes": mapping({"a": b"\x9f" * BIG})}),
    "a text in chunks without end": mapping({"version": text("1.1.0"), "attributes": mapping({"a": b"\x7f" + b"\x61a" * (BIG // 2)})}),
    "an array without end": manifest(b"\x9f" + b"\x00" * BIG),
    "a shape whose product passes 2^64": manifest(mapping({"w": dense([1 << 32] * 60, component(64, 0))})),
    "a component of 2^60 bytes": manifest(mapping({"w": dense([HUGE], component(64, HUGE))})),
    "the same key again and again": manifest(cbor_head(5, BIG // 3) + b"\x61w\xa0" * (BIG // 3)),
    "objects without components": manifest(cbor_head(5, BIG // 6) + b"".join(cbor_head(3, 5) + b"%05x" % (i % (1 << 20)) + b"\xa0"
                                                                          for i in range(BIG // 6))),
}


@pytest.mark.parametrize("case", ZT)
def test_zt(tmp_path, case):
    path = tmp_path / "hostile.zt"
    path.write_bytes(zt(ZT[case]))
    require_refused(path, len(ZT[case]), "zt")


def test_a_manifest_longer_than_the_file(tmp_path):
    for size in (1 << 63, (1 << 64) - 1, 1 << 30, 4096):
        path = tmp_path / "hostile.zt"
        path.write_bytes(b"ZTEN1000" + bytes(64) + struct.pack("<Q", size) + b"ZTEN1000")
        require_refused(path, 0, "zt")


def zstd_zeros(blocks, window=27, declared=None):
    """A frame that becomes blocks x 128 KiB of zeros, four bytes for each."""
    descriptor = bytes([0xC0 if declared is not None else 0x00])
    head = b"\x28\xb5\x2f\xfd" + descriptor + bytes([(window - 10) << 3])
    head += struct.pack("<Q", declared) if declared is not None else b""
    size = 128 << 10
    return head + b"".join(((size << 3 | 1 << 1 | (i == blocks - 1)).to_bytes(3, "little") + b"\0") for i in range(blocks))


@pytest.mark.parametrize("declared", [None, 4 * MIB, 32 << 30, HUGE])
def test_a_compressed_bomb_ends_where_the_tensor_ends(tmp_path, declared):
    """32 GiB of zeros in 1 MiB, for a tensor of 4 MiB: the rest is never decoded. The window takes at most 128 MiB."""
    frame = zstd_zeros(1 << 18, declared=declared)
    path = tmp_path / "bomb.zt"
    path.write_bytes(zt(manifest(mapping({"w": dense([4 * MIB], component(64, len(frame), encoding=text("zstd")))})), frame))
    done = Measured("verify", path, "--json")
    assert done.status == 1, (done.status, done.stdout, done.stderr)
    assert done.peak < 128 * MIB + BESIDE and done.user < SECONDS, (done.peak / MIB, done.user)


def test_many_bombs_in_one_payload(tmp_path):
    """The same compressed payload under 10,000 names is one range of the file: it is not decoded 10,000 times, or refused."""
    frame = zstd_zeros(32)
    one = dense([4 * MIB], component(64, len(frame), encoding=text("zstd")))
    path = tmp_path / "bomb.zt"
    path.write_bytes(zt(manifest(mapping({f"w{i}": one for i in range(10_000)})), frame))
    done = Measured("verify", path, "--quiet")
    assert done.status in (0, 1) and done.peak < 128 * MIB + BESIDE and done.user < SECONDS, (done.status, done.peak / MIB, done.user)


@pytest.mark.parametrize("window", [28, 31, 41])
def test_a_window_past_the_limit_is_refused(tmp_path, window):
    frame = zstd_zeros(32, window=window)
    path = tmp_path / "window.zt"
    path.write_bytes(zt(manifest(mapping({"w": dense([4 * MIB], component(64, len(frame), encoding=text("zstd")))})), frame))
    done = Measured("verify", path, "--json")
    assert done.status == 1 and done.peak < BESIDE, (done.status, done.stdout, done.peak / MIB)


def test_many_tiny_tensors_cost_what_their_names_cost(tmp_path):
    """Half a million valid tensors: linear in the header, within seconds."""
    count = 500_000
    head = b"{" + b",".join(b'"t.%d":{"dtype":"U8","shape":[1],"data_offsets":[%d,%d]}' % (i, i, i + 1) for i in range(count)) + b"}"
    path = tmp_path / "many.safetensors"
    path.write_bytes(struct.pack("<Q", len(head)) + head + bytes(count))
    done = Measured("verify", path)
    assert done.status == 0, done.stderr
    assert done.peak < 3 * len(head) + BESIDE and done.user < SECONDS, (done.peak / MIB, len(head) / MIB, done.user)


def test_the_smallest_metadata_takes_at_most_what_the_page_says(tmp_path):
    """SECURITY.md: a valid file takes at most 32 times the bytes of its header."""
    entries = {f"{i:04x}": "" for i in range(1 << 16)}
    entries.update({f"{i:05x}": "" for i in range(1 << 18)})
    header = json.dumps({"__metadata__": entries, "w": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}}, separators=(",", ":"))
    path = tmp_path / "metadata.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode())
    for words in (["inspect", path, "--json"], ["verify", path], ["hash", path]):
        done = Measured(*words)
        assert done.status == 0, done.stderr
        assert done.peak < 32 * len(header), f"{words[0]}: {done.peak / len(header):.1f} times the header"


METADATA = {
    "the smallest keys": lambda i: (f"{i:x}", ""),
    "keys with escapes": lambda i: (f"\n{i:x}", ""),
    "short texts": lambda i: (f"{i:x}", f"{i:x}"),
}


@pytest.mark.parametrize("case", METADATA)
@pytest.mark.parametrize("where", ["metadata", "tensor", "tensors"])
def test_metadata_of_a_refused_file_take_eight_times_the_header(tmp_path, case, where):
    """They took 24 times the header before the tensor behind them was looked at."""
    entries = dict(METADATA[case](i) for i in range(1 << 19))
    usual, bad = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}, {"dtype": "F32", "shape": [1], "data_offsets": [9, 1]}
    parts = {"metadata": {"__metadata__": entries}, "tensor": {"v": usual | entries}}.get(where) or {
        f"v{i:x}": usual | dict([METADATA[case](i)]) for i in range(1 << 16)}
    header = json.dumps(parts | {"w": bad}, separators=(",", ":")).encode()
    path = tmp_path / "metadata.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header)
    for verb in ("verify", "inspect"):
        done = Measured(verb, path, "--json")
        rules = [f["rule"] for f in json.loads(done.stdout)["files"][0]["findings"]]
        # Of an unknown key of a tensor there is a warning, and a report holds a thousand.
        assert done.status == 1 and (where != "metadata" or "safetensors/offsets-order" in rules), (done.status, rules[:3])
        assert done.peak < 8 * len(header) + BESIDE, f"{verb}: {done.peak / MIB:.0f} MiB, the header has {len(header) / MIB:.1f}"


def keys(count):
    return [f"{i:05x}".encode() for i in range(count)]


SMALL = {
    "dictionaries of a pickle": lambda: b"\x80\2](" + b"}" * BIG + b"e",
    "numbers of a pickle": lambda: b"\x80\2](" + b"K\0" * (BIG // 2) + b"e",
    "values of a GGUF": lambda: b"GGUF" + struct.pack("<IQQ", 3, 1, BIG // 18) + b"".join(
        struct.pack("<Q", 5) + key + b"\0\0\0\0\1" for key in keys(BIG // 18)) + struct.pack("<Q", 1 << 62),
    "keys of a config": lambda: b"{" + b",".join(b'"%s":0' % key for key in keys(BIG // 10)) + b"}",
}


@pytest.mark.parametrize("case", SMALL)
def test_the_smallest_values_of_a_refused_file_take_40_times_its_header(tmp_path, case):
    data = SMALL[case]()
    path = tmp_path / ("model.pkl" if "pickle" in case else "model.gguf")
    if "config" in case:
        path = tmp_path / "model"
        path.mkdir()
        (path / "config.json").write_bytes(data)
        (path / "model.safetensors").write_bytes(struct.pack("<Q", 9) + b'{"w":[]} ')
    else:
        path.write_bytes(data)
    for verb in ("verify", "inspect"):
        done = Measured(verb, path, "--json")
        assert done.status == 1, (done.status, done.stdout[:200], done.stderr)
        assert done.peak < 40 * len(data) + BESIDE, f"{verb}: {done.peak / MIB:.0f} MiB"


def varint(value):
    return (bytes([value & 127 | 128]) + varint(value >> 7)) if value > 127 else bytes([value])


def record(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def test_an_onnx_model_of_many_tensors_takes_eight_times_its_size(tmp_path):
    """60,000 tensors of one number each, in 700 KB: each had three copies of its rare properties."""
    tensors = b"".join(record(5, b"\x10\x06" + record(5, b"\1") + record(8, b"%03x" % i if i < 4096 else b"%04x" % i)) for i in range(60_000))
    path = tmp_path / "many.onnx"
    path.write_bytes(b"\x08\x08" + record(7, record(2, b"g") + tensors) + record(8, b"\x10\x0d"))
    for words in (["verify", path], ["inspect", path], ["hash", path]):
        done = Measured(*words)
        assert done.status == 0, done.stderr
        assert done.peak < 8 * path.stat().st_size + BESIDE and done.user < SECONDS, (words[0], done.peak / MIB, done.user)


def test_limits_are_checked_before_the_disk_is_reserved(tmp_path):
    """A dense form of 4 TiB was refused for the room on the disk, or took it first."""
    sparse = mapping({
        "shape": cbor_head(4, 2) + number(1 << 21) + number(1 << 21), "format": text("sparse_coo"),
        "components": mapping({"values": component(64, 1), "coords": component(128, 16, dtype="u64")})})
    path = tmp_path / "sparse.zt"
    path.write_bytes(zt(manifest(mapping({"w": sparse})), bytes(64 + 16)))
    done = Measured("convert", path, tmp_path / "w.safetensors", "--allow", "layout", "--limit", "output=8TiB", "--limit", "work=8TiB")
    assert done.status == 1 and "room" not in done.stderr and "limit" in done.stderr, (done.status, done.stderr)
    assert "decoded" in done.stderr, done.stderr


def test_a_dense_form_past_the_limit_is_not_made(tmp_path):
    """A sparse tensor of one element whose dense form would be 2^60 bytes."""
    sparse = mapping({
        "shape": cbor_head(4, 2) + number(1 << 30) + number(1 << 30), "format": text("sparse_coo"),
        "components": mapping({"values": component(64, 1), "coords": component(128, 16, dtype="u64")})})
    path = tmp_path / "sparse.zt"
    path.write_bytes(zt(manifest(mapping({"w": sparse})), bytes(64 + 16)))
    assert Measured("verify", path).status == 0
    for words in (["extract", path, "w", "--dense", "-o", tmp_path / "w.bin"],
                  ["convert", path, tmp_path / "w.safetensors", "--allow", "layout"]):
        done = Measured(*words)
        assert done.status != 0 and done.peak < BESIDE and done.user < SECONDS, (words, done.status, done.stderr, done.peak / MIB)
    counted = Measured("inspect", path, "--stats")  # needs no dense form
    assert counted.status == 0 and counted.peak < BESIDE and counted.user < SECONDS, (counted.stderr, counted.peak / MIB)
    assert not (tmp_path / "w.bin").exists() and not (tmp_path / "w.safetensors").exists()
