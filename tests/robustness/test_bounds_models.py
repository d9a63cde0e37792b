# SPDX-License-Identifier: Apache-2.0
# The same for containers of models: each number of each header as large as possible, tables of millions of meaningless entries,
# and folders of them. The witnesses make the files. The bounds are those of test_bounds.py.
import json
import struct
import sys

import pytest

from jobs import bert, embd
from robustness import MIB, ROOT, Measured
from test_bounds import BESIDE, BIG, HUGE, SECONDS, cbor_head, mapping, number, text

np = pytest.importorskip("numpy", reason="the witnesses need numpy")
sys.path.insert(0, str(ROOT / "tests/witness"))
import slm  # noqa: E402
import slm_adapter  # noqa: E402
import stb  # noqa: E402


def require_bounded(header, *words, statuses=(0, 1, 3)):
    """Requires the run to end by itself, at once, in memory proportional to the header. Returns its result."""
    done = Measured(*words, "--json")
    assert done.status in statuses, (words, done.status, done.stderr)
    assert done.peak < header + BESIDE, f"{words}: {done.peak / MIB:.0f} MiB at the peak, the header has {header / MIB:.0f}"
    assert done.user < SECONDS, f"{words}: {done.user} s"
    return done


def require_refused(header, path):
    for verb in ("verify", "inspect"):
        done = require_bounded(header, verb, path, statuses=(1,))
        assert json.loads(done.stdout)["files"][0]["findings"], verb


def places(form, at=0):
    """(offset, size) of each number in a struct's format, without text fields."""
    for letter in form.lstrip("<"):
        if letter not in "0123456789s":
            yield at, struct.calcsize("<" + letter)
        at += struct.calcsize("<" + letter)


def expanded(form):
    """A struct's format without repeat counts."""
    out, count = "", ""
    for letter in form.format.lstrip("<"):
        if letter.isdigit():
            count += letter
        else:
            out += "x" * int(count or 1) if letter == "s" else letter * int(count or 1)
            count = ""
    return out


def numbers(form, at):
    return [place for place, letter in zip(places(expanded(form), at), expanded(form)) if letter != "x"]


def small_embd():
    return embd.build(*bert())


def small_slm():
    return slm.build(**slm.fixture())


def small_adapter():
    base = slm_adapter.identity_of(slm.parse(small_slm()))
    return slm_adapter.build("ADP1", base, [("norm.weight", (8,), np.ones(8, np.float32), None)])


SMALL = {
    "stb": lambda: (stb.to_bytes([stb.tensor(0, np.zeros((2, 3), np.float32)), stb.tensor(1, np.zeros(5, np.int8))]),
                    numbers(stb.HEADER, 0) + numbers(stb.DESCRIPTOR, 32)),
    "weights": lambda: (small_embd(), numbers(embd.HEADER, 0)),
    "slm": lambda: (small_slm(), numbers(slm.HEADER, 0)),
}
RESEAL = {"stb": bytes, "weights": embd.reseal, "slm": slm.reseal}


@pytest.mark.parametrize("kind", SMALL)
def test_each_number_of_a_header_is_too_large(tmp_path, kind):
    """All ones, the highest bit, and a value too large for a file of this size. Checksums are repaired, so that they are not reported
    first."""
    data, fields = SMALL[kind]()
    path = tmp_path / f"hostile.{kind}"
    for at, size in fields:
        for value in {(1 << 8 * size) - 1, 1 << (8 * size - 1), 1 << (8 * size * 3 // 4)}:
            patched = bytearray(data)
            patched[at:at + size] = value.to_bytes(size, "little")
            path.write_bytes(RESEAL[kind](bytes(patched)))
            require_bounded(len(data), "verify", path)


@pytest.mark.parametrize("table", ["entry", "tokenizer"])
def test_each_number_of_slm_tables(tmp_path, table):
    fixture = slm.fixture()
    data = small_slm()
    header = dict(zip(slm.HEADER_FIELDS, slm.HEADER.unpack_from(data)))
    fields = numbers(slm.ENTRY, header["tensor_directory_offset"])
    if table == "tokenizer":
        data = slm.build(fixture["header"], slm.bpe1(260, (256, 257, 258, 259), [(5, b"a")], [(5, 5, 5, 0)]), fixture["tensors"])
        fields = [(108 + 4 * i, 4) for i in range(1, 15)]
    path = tmp_path / "hostile.slm"
    for at, size in fields:
        for value in ((1 << 8 * size) - 1, 1 << (8 * size - 2)):
            patched = bytearray(data)
            patched[at:at + size] = value.to_bytes(size, "little")
            path.write_bytes(slm.reseal(bytes(patched)))
            require_bounded(len(data), "verify", path)


def cbor(value):
    if isinstance(value, dict):
        return mapping({key: cbor(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return cbor_head(4, len(value)) + b"".join(map(cbor, value))
    return text(value) if isinstance(value, str) else number(value)


def zt0(index):
    return b"ZTEN0001" + bytes(56) + index + struct.pack("<Q", len(index))


ENTRY = {"name": "w", "offset": 64, "size": 0, "dtype": "uint8", "layout": "dense", "shape": [0], "encoding": "raw"}
ZT0 = {
    "an array of 2^60": cbor_head(4, HUGE),
    "an array of 2^64 - 1": cbor_head(4, (1 << 64) - 1),
    "a map of 2^60": b"\x81" + cbor_head(5, HUGE),
    "a text of 2^60": b"\x81\xa1" + cbor_head(3, HUGE),
    "a shape of 2^60 extents": b"\x81\xa1\x65shape" + cbor_head(4, HUGE),
    "nested arrays": b"\x81" * BIG,
    "nested maps": b"\x81" + b"\xa1\x00" * (BIG // 2),
    "nested tags": b"\xc1" * BIG,
    "nested arrays without counts": b"\x9f" * BIG,
    "a text in chunks without end": b"\x81\xa1\x7f" + b"\x61a" * (BIG // 2),
    "numbers without end": b"\x9f" + b"\x00" * BIG,
    "entries without fields": cbor_head(4, BIG) + b"\xa0" * BIG,
    "the same key again and again": b"\x81" + cbor_head(5, BIG // 3) + b"\x61w\xa0" * (BIG // 3),
    "the same tensor again and again": cbor_head(4, BIG // 64) + cbor(ENTRY) * (BIG // 64),
    "2^60 bytes": cbor([ENTRY | {"size": HUGE, "shape": [HUGE]}]),
    "2^60 compressed bytes": cbor([ENTRY | {"shape": [HUGE], "encoding": "zstd"}]),
    "a product past 2^64": cbor([ENTRY | {"shape": [1 << 32] * 60}]),
}


@pytest.mark.parametrize("case", ZT0)
def test_zt0(tmp_path, case):
    path = tmp_path / "hostile.zt"
    path.write_bytes(zt0(ZT0[case]))
    require_refused(len(ZT0[case]), path)


SIDECARS = {
    "nested arrays": b'{"files":' + b"[" * BIG,
    "nested objects": b'{"files":' + b'{"a":' * (BIG // 5),
    "100 MB of junk": b"{" + b"\xa5" * 99_999_998 + b"}",
    "tensors without fields": b'{"schema":1,"files":[],"tensors":[' + b"{}," * (BIG // 3) + b"{}]}",
    "shapes without end": b'{"schema":1,"files":[],"shapes":[' + b"[]," * (BIG // 3) + b"[]]}",
    "a shape without end": b'{"schema":1,"files":[],"shapes":[[' + b"1," * (BIG // 2) + b"1]]}",
    "the same tensor again and again": b'{"schema":1,"files":[{"id":0,"path":"a"}],"tensors":['
                                       + b'{"file":0,"id":0,"name":"a"},' * 60_000 + b'{"file":0,"id":0,"name":"a"}]}',
    "a long path": b'{"schema":1,"files":[{"id":0,"path":"' + b"../" * (BIG // 3) + b'"}]}',
}


@pytest.mark.parametrize("case", SIDECARS)
def test_a_sidecar(tmp_path, case):
    path = tmp_path / "w.stb"
    stb.write(path, [stb.tensor(0, np.zeros(3, np.float32))])
    (tmp_path / "w.khm.json").write_bytes(SIDECARS[case])
    require_refused(len(SIDECARS[case]), path)


def sections(**changed):
    metadata, tokens, special, tensors = bert()
    parts = {"metadata": metadata, "tokens": tokens, "special": special, "tensors": tensors} | changed
    return embd.build(parts["metadata"], parts["tokens"], parts["special"], parts["tensors"])


class Entries(dict):
    """Metadata with repeated keys."""

    def __init__(self, pairs):
        super().__init__()
        self.pairs = pairs

    def items(self):
        return self.pairs

    def __len__(self):
        return len(self.pairs)


EMBD = {
    "metadata entries that nobody needs": lambda: sections(metadata=Entries([("k%06d" % i, "") for i in range(50_000)])),
    "the same metadata key": lambda: sections(metadata=Entries([("k", "")] * 50_000)),
    "two million empty tokens": lambda: sections(tokens=[b""] * 2_000_000),
    "the same tensor name": lambda: sections(tensors=[("w", "f32", (0,), b"")] * 200_000),
    "tensors over each other": lambda: sections(tensors=[("w%06d" % i, "f32", (0,), b"") for i in range(200_000)]),
}


@pytest.mark.parametrize("case", EMBD)
def test_embd_tables(tmp_path, case):
    data = EMBD[case]()
    path = tmp_path / "hostile.weights"
    path.write_bytes(data)
    require_refused(len(data), path)


def bpe(tokens, merges):
    """A section of many records, without the witness' loop."""
    return slm.bpe1(260, (256, 257, 258, 259), [], [])[:28] + struct.pack("<II", tokens[0], merges[0]) + tokens[1] + merges[1]


SLM = {
    "one token again and again": lambda: bpe((BIG // 9, struct.pack("<IIc", 5, 1, b"a") * (BIG // 9)), (0, b"")),
    "one merge again and again": lambda: bpe((0, b""), (BIG // 16, struct.pack("<4I", 5, 5, 5, 0) * (BIG // 16))),
    "merges of many pairs": lambda: bpe((0, b""), (65_536, b"".join(struct.pack("<4I", i & 255, i >> 8, 7, i)
                                                                     for i in range(65_536)))),
}


@pytest.mark.parametrize("case", SLM)
def test_slm_tokenizers(tmp_path, case):
    fixture = slm.fixture()
    section = SLM[case]()
    path = tmp_path / "hostile.slm"
    # The checksum is not repaired: the witness' loop would take half a minute, and structure is checked before.
    real, slm.reseal = slm.reseal, bytes
    try:
        path.write_bytes(slm.build(fixture["header"], section, fixture["tensors"]))
    finally:
        slm.reseal = real
    require_refused(len(section), path)


@pytest.mark.parametrize("name", FILES := {
    "config.json": b'{"a":' + b"[" * BIG,
    "vocab.txt": b"\n" * BIG,
    "tokenizer.json": b'{"model":{"vocab":{' + b'"a":0,' * (BIG // 12) + b'"b":0}}}',
    "tokenizer_config.json": b'{"do_lower_case":' + b'{"a":' * (BIG // 5),
    "modules.json": b"[" * BIG,
    "model.safetensors.index.json": b'{"weight_map":{' + b",".join(b'"t%d":"s%d.safetensors"' % (i, i) for i in range(200_000))
                                    + b"}}",
})
def test_a_folder(tmp_path, name):
    text = FILES[name]
    folder, source = tmp_path / "model", tmp_path / "model.weights"
    embd.write(source, *bert())
    assert Measured("convert", source, folder, "--to", "hf").status == 0
    if name.endswith("index.json"):
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(text)
    require_bounded(len(text), "verify", folder, statuses=(1, 4))


@pytest.mark.parametrize("case", WORDS := {"jumps": b"\x00\x00\x00\x00" * (BIG // 4), "noise": b"\xa5\x5a\x33\x21" * (BIG // 4)})
def test_a_module(tmp_path, case):
    words = WORDS[case]
    path = tmp_path / "m.knu"
    path.write_bytes(words)
    done = Measured("khlnary", "verify", path, "--json")
    assert done.status == 1 and done.peak < len(words) + BESIDE and done.user < SECONDS, (done.status, done.peak / MIB, done.user)


def test_an_adapter_package(tmp_path):
    base = tmp_path / "base.slm"
    base.write_bytes(small_slm())
    data = small_adapter()
    path = tmp_path / "hostile.adp1"
    for at, size in numbers(slm_adapter.HEADER, 0) + numbers(slm_adapter.ENTRY, 128):
        patched = bytearray(data)
        patched[at:at + size] = b"\xff" * size
        data_offset = slm_adapter.FIELD_AT["data_offset"]
        path.write_bytes(bytes(patched) if at == data_offset else slm_adapter.reseal(bytes(patched)))
        require_bounded(len(data), "verify", path)


@pytest.mark.parametrize("words", [["embed"], ["embed", "-o", "vectors.npy"], ["tokenize", "--json"]], ids=" ".join)
def test_texts_stream(tmp_path, words):
    """A hundred times the texts without more memory: neither texts nor vectors are kept."""
    model, few, many = tmp_path / "model.weights", tmp_path / "few.txt", tmp_path / "many.txt"
    embd.write(model, *bert())
    few.write_text("word1 word2\n" * 1000)
    many.write_text("word1 word2\n" * 100_000)
    peaks = []
    for texts in (few, many):
        done = Measured(words[0], model, "--input", texts, *(str(tmp_path / texts.stem) + ".npy" if w == "vectors.npy" else w for w in words[1:]))
        assert done.status == 0, done.stderr
        peaks.append(done.peak)
    assert peaks[1] < peaks[0] + 4 * MIB, [peak / MIB for peak in peaks]
    if "-o" in words:
        assert np.load(tmp_path / "many.npy", mmap_mode="r").shape == (100_000, 4)
