# SPDX-License-Identifier: Apache-2.0
"""Self tests of the witnesses embd.py, slm.py and slm_adapter.py: round trips, known figures, one test per rule."""
import os
import struct
import sys

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing: tools/python-environments.sh makes the environment")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import embd  # noqa: E402
import slm  # noqa: E402
import slm_adapter  # noqa: E402


def put(data, offset, form, *value):
    out = bytearray(data)
    struct.pack_into("<" + form, out, offset, *value)
    return bytes(out)


def refuses(parse, data, words):
    with pytest.raises(ValueError) as caught:
        parse(data)
    assert words in str(caught.value) and str(caught.value).endswith("."), str(caught.value)


# --------------------------------------------------------------------------------------------------------- EMBD

def model(**changes):
    metadata, vocab, special, tensors = embd.minimal(hidden=4, vocab=12, positions=6)
    return {"metadata": metadata, "vocab": vocab, "special": special, "tensors": tensors, **changes}


@pytest.mark.parametrize("flags", range(8))
@pytest.mark.parametrize("gaps", [{}, {"section_gap": 13, "tensor_gap": 3, "tail_gap": 5}])
def test_embd_round_trip(tmp_path, flags, gaps):
    given = model()
    given["tensors"] = given["tensors"] + embd.collision_pair(4)
    raw = embd.write(tmp_path / "m.weights", **given, flags=flags, **gaps)
    result = embd.read(tmp_path / "m.weights")
    assert (tmp_path / "m.weights").read_bytes() == raw
    gap_free = [w for w in result["warnings"] if not (gaps and "gap of more than 63" in w)]
    assert gap_free == [] and result["metadata"] == given["metadata"]
    assert [(t["name"], t["dtype"], t["shape"], t["data"]) for t in result["tensors"]] == [
        tuple(t) for t in given["tensors"]]
    assert (result["vocab"], result["special"]) == ((given["vocab"], given["special"]) if flags & 1 else (None, None))
    assert embd.decode(embd.find(result, "liquid"))[0] == -2.5
    assert embd.decode(embd.find(result, "costarring"))[0] == 1.5


def test_embd_every_byte_counts():
    raw = embd.build(**model())
    for place in range(len(raw) - 4):
        changed = bytearray(raw)
        changed[place] ^= 0x41
        with pytest.raises(ValueError):
            embd.parse(bytes(changed))
    assert embd.parse(put(raw, len(raw) - 4, "I", 7))["warnings"] == ["The footer's reserved field is not 0."]
    for size in (0, 3, 63, 79, len(raw) - 1):
        with pytest.raises(ValueError):
            embd.parse(raw[:size])
    with pytest.raises(ValueError):
        embd.parse(raw + b"\0")


def test_embd_dtypes_and_warnings():
    for dtype in ("f16", "bf16"):
        result = embd.parse(embd.build(*embd.minimal(dtype=dtype)))
        assert len(result["warnings"]) == 21 and "is not FLOAT32" in result["warnings"][0]
        plain = embd.parse(embd.build(*embd.minimal()))
        for one, two in zip(result["tensors"], plain["tensors"]):
            assert np.allclose(embd.decode(one), embd.decode(two), rtol=2 ** -8, atol=1e-6)
    given = model()
    extra = [("x", 9, (3,), b"abcd"), ("empty", "i16", (0, 7), b"")]
    result = embd.parse(embd.build(**{**given, "tensors": given["tensors"] + extra}))
    assert embd.find(result, "x")["supported"] is False and embd.find(result, "empty")["data"] == b""
    assert embd.parse(embd.build(**given, version=(1, 3)))["warnings"] == ["The minor version is newer than 0."]
    assert len(embd.parse(embd.build(**given, section_gap=64))["warnings"]) >= 3
    assert embd.parse(embd.build(**given, section_gap=20, gap_byte=9))["warnings"] != []
    given["metadata"]["created_at"] = "yesterday"
    assert embd.parse(embd.build(**given))["warnings"] == ["created_at is not ISO 8601."]


def test_embd_iso8601():
    for good in ("2025-01-16T12:00:00Z", "2025-01-16", "2024-02-29T01:02:03.5+01:00", "2025-01-16T12:00-0530"):
        assert embd.iso8601(good)
    for bad in ("", "2025", "2023-02-29", "2025-13-01", "2025-01-16 12:00:00", "2025-01-16T25:00:00Z", "2025-01-16T"):
        assert not embd.iso8601(bad)


def embd_place(raw, field):
    return embd.parse(raw)["header"][field]


@pytest.mark.parametrize("offset, form, value, words", [
    (4, "H", 2, "major version"), (8, "I", 15, "COMPRESSED"), (8, "I", 23, "reserved flag"),
    (48, "Q", 1, "total_file_size"), (12, "I", 60, "overlap"), (16, "I", 1 << 31, "does not lie"),
    (32, "I", 0xFFFFFFFF, "tensor index"), (40, "Q", 1 << 63, "does not lie"), (36, "I", 0, "overlap"),
    (8, "I", 6, "VOCAB_EMBEDDED is off"), (16, "I", 9, "metadata_size")])
def test_embd_header_rules(offset, form, value, words):
    refuses(embd.parse, embd.reseal(put(embd.build(**model()), offset, form, value)), words)


def test_embd_checksums():
    raw = embd.build(**model())
    refuses(embd.parse, put(raw, 56, "I", 0), "header's CRC32")
    refuses(embd.parse, put(raw, len(raw) - 16, "I", 0), "CRC32 of the tensor data")
    refuses(embd.parse, put(raw, len(raw) - 12, "I", 0), "CRC32 of the file")
    refuses(embd.parse, put(raw, len(raw) - 8, "4s", b"EMBD"), "DBME")
    plain = embd.build(**model(), flags=3)
    for place in (56, len(plain) - 16, len(plain) - 12):
        embd.parse(put(plain, place, "I", 123))


@pytest.mark.parametrize("field, offset, form, value, words", [
    ("metadata_offset", 0, "I", 9, "do not fill|passes"), ("metadata_offset", 4, "I", 3, "metadata_size"),
    ("metadata_offset", 12, "s", b"\xff", "UTF-8"), ("vocab_offset", 0, "I", 11, "do not fill"),
    ("vocab_offset", 4, "I", 1 << 20, "total_size passes"), ("vocab_offset", 8, "I", 12, "special_tokens"),
    ("vocab_offset", 14, "s", b"\xff", "UTF-8"), ("vocab_offset", 12, "H", 9999, "A token passes"),
    ("tensor_index_offset", 0, "I", 1, "name_hash"), ("tensor_index_offset", 4, "B", 3, "no float dtype"),
    ("tensor_index_offset", 5, "B", 0, "dimensions"), ("tensor_index_offset", 5, "B", 5, "dimensions"),
    ("tensor_index_offset", 8, "I", 11, "metadata wants"), ("tensor_index_offset", 24, "Q", 1, "multiple of 64"),
    ("tensor_index_offset", 24, "Q", 0xFFFFFFFFFFFFFFC0, "does not lie inside")])
def test_embd_section_rules(field, offset, form, value, words):
    raw = embd.build(**model())
    changed = embd.reseal(put(raw, embd_place(raw, field) + offset, form, value))
    with pytest.raises(ValueError, match=words):
        embd.parse(changed)


def test_embd_warned_dimension():
    raw = embd.build(**model())
    result = embd.parse(embd.reseal(put(raw, embd_place(raw, "tensor_index_offset") + 16, "I", 4)))
    assert result["warnings"] == ["The tensor 'embeddings.word_embeddings.weight' has a nonzero unused dimension."]


def test_embd_model_rules():
    for key in embd.REQUIRED_KEYS:
        given = model()
        del given["metadata"][key]
        refuses(embd.parse, embd.build(**given), "is missing")
    for key, value in (("hidden_size", "-4"), ("num_layers", "0"), ("num_layers", "4294967296"), ("hidden_size", "4.0"),
                       ("embedding_dim", "8"), ("num_attention_heads", "3"), ("vocab_size", "13"),
                       ("intermediate_size", "9"), ("max_position_emb", "7"), ("num_layers", "2")):
        given = model()
        given["metadata"][key] = value
        with pytest.raises(ValueError):
            embd.parse(embd.build(**given))
    for number in range(21):
        given = model()
        gone = given["tensors"].pop(number)
        refuses(embd.parse, embd.build(**given), "more tensors")
        given["tensors"].append(("other", *gone[1:]))
        refuses(embd.parse, embd.build(**given), "is missing")
    given = model()
    refuses(embd.parse, embd.build(**{**given, "tensors": given["tensors"] + given["tensors"][:1]}), "is repeated")
    refuses(embd.parse, embd.build(**{**given, "special": {**given["special"], "mask": 12}}), "mask id 12")
    pooler = [("pooler.dense.weight", "f32", (4, 2), bytes(32))]
    refuses(embd.parse, embd.build(**{**given, "tensors": given["tensors"] + pooler}), "has not shape")
    bad_name = [(b"\xc3(", "f32", (1,), bytes(4))]
    refuses(embd.parse, embd.build(**{**given, "tensors": given["tensors"] + bad_name}), "UTF-8")
    raw = embd.build(**given)
    at = embd_place(raw, "metadata_offset") + 8
    one = raw[at:].index(b"model_version") + at
    refuses(embd.parse, embd.reseal(raw[:one - 4] + struct.pack("<HH", 10, 8) + b"model_name" + b"on1.0.0x"
                                    + raw[one + 18:]), "repeated")


def test_embd_first_converter():
    raw = b"EMBD" + struct.pack("<II", 1, 1) + struct.pack("<I", 11) + b"word.weight" + bytes(80)
    refuses(embd.parse, raw, "first converter")


# ---------------------------------------------------------------------------------------------------------- SLM

def test_slm_known_figures():
    assert slm.tokenizer_checksum(slm.btok()) == 0xA3AF29B8CDCBFA35
    assert len(slm.btok()) == 28
    assert [slm.original_size(dtype) for dtype in ("f32", "q8_0", "q4_0")] == [68194944, 17160000, 10657728]
    shapes = slm.tensor_shapes(slm.ORIGINAL)
    assert len(shapes) == 39 and sum(slm.product(dims) for _, dims in shapes) == 17048064
    for kind, count, parameters in (("tiny", 12, 4824), ("tiny-tied", 11, 2744)):
        for dtype in slm.DTYPE_ID:
            for norms in (False, True):
                given = slm.fixture(kind)
                raw = slm.build(**given, dtype=dtype, quantize_norms=norms)
                result = slm.parse(raw)
                assert (len(result["tensors"]), result["parameter_count"]) == (count, parameters)
                assert len(raw) == slm.file_size(given["header"], dtype, quantize_norms=norms)
                assert result["dtype"] == (dtype if norms or dtype == "f32" else "mixed")
                assert result["warnings"] == []
    assert slm.fnv1a64("") == 0xCBF29CE484222325 and slm.fnv1a64("a") == 0xAF63DC4C8601EC8C


def test_slm_checksum_is_the_plain_loop():
    data = np.random.Generator(np.random.PCG64(5)).integers(0, 256, 70000, np.uint8).tobytes()
    h = slm.FILE_SEED
    for i, byte in enumerate(data):
        h = (h ^ (byte + i)) & slm.MASK
        h = ((h << 7) | (h >> 57)) & slm.MASK
        h = (h * 0x100000001B3) & slm.MASK
    assert slm.checksum(data) == h
    assert len({slm.checksum_other(data[:300], form) for form in slm.OTHER_FORMS} | {slm.checksum(data[:300])}) == 6


def test_slm_round_trip(tmp_path):
    given = slm.fixture()
    raw = slm.write(tmp_path / "m.slm", **given, extra=b"opaque", tail=64)
    result = slm.read(tmp_path / "m.slm")
    assert result["extra"] == b"opaque" and result["warnings"] == ["More than 63 bytes follow the last payload."]
    for (name, array), entry in zip(given["tensors"], result["tensors"]):
        assert entry["name"] == name and np.array_equal(slm.values(entry), array)
    again = slm.build(result["header"], result["tokenizer_bytes"], result["tensors"], extra=result["extra"], tail=64)
    assert again == raw
    other = slm.parse(slm.build(given["header"], given["tokenizer"], given["tensors"][::-1]))
    assert other["layout_checksum"] == result["layout_checksum"]
    assert other["directory_identity"] != result["directory_identity"]


def test_slm_quantizing():
    rows = np.array([[0, 0, 0, 0], [127, -127, 0.5, 1.5], [2.5, -254, 0, 1]], np.float32)
    entry = slm.pack("x", rows, "q8_0")
    assert np.frombuffer(entry["scales"], "<f4").tolist() == [1, 1, 2]
    assert np.frombuffer(entry["payload"], "i1").tolist() == [0, 0, 0, 0, 127, -127, 0, 2, 1, -127, 0, 0]
    entry = slm.pack("x", np.array([[7, -7, 3, -1]], np.float32), "q4_0", 4)
    assert entry["payload"] == bytes([0x97, 0xF3]) and slm.values(entry).tolist() == [[7, -7, 3, -1]]
    assert slm.values({**entry, "payload": b"\x88\x08"}).tolist() == [[-8, -8, -8, 0]]
    assert [slm.q4_block(n) for n in (512, 172, 8, 30, 34, 7, 62)] == [32, 4, 8, 30, 2, None, 2]
    assert slm.target((3, 7), "q4_0") == ("q8_0", 7) and slm.target((8,), "q4_0") == ("f32", 0)
    values = np.random.Generator(np.random.PCG64(3)).standard_normal((5, 64)).astype(np.float32)
    for dtype, width, levels in (("q8_0", 64, 127), ("q4_0", 32, 7)):
        groups = values.reshape(-1, width)
        error = np.abs(slm.values(slm.pack("x", values, dtype)).reshape(-1, width) - groups)
        assert (error <= np.abs(groups).max(axis=1, keepdims=True) / levels * 0.5001).all()
    tiny = np.full((1, 2), 1e-45, np.float32)
    assert np.frombuffer(slm.pack("x", tiny, "q8_0")["scales"], "<f4").tolist() == [1]


def test_slm_every_byte_counts():
    raw = slm.build(**slm.fixture("tiny-tied"), dtype="q4_0")
    for place in list(range(0, 1100, 3)) + list(range(1100, len(raw), 29)):
        changed = bytearray(raw)
        changed[place] ^= 0x41
        with pytest.raises(ValueError):
            slm.parse(bytes(changed))
    for size in (0, 107, 108, len(raw) - 1):
        with pytest.raises(ValueError):
            slm.parse(raw[:size])


@pytest.mark.parametrize("field, form, value, words", [
    ("magic", "4s", b"SLM2", "SLM1"), ("version", "I", 2, "version"), ("header_length", "I", 107, "header_length"),
    ("header_length", "I", 1 << 30, "header_length"), ("model_type", "I", 2, "model type"), ("flags", "I", 2, "flag"),
    ("vocab_size", "I", 259, "below 260"), ("vocab_size", "I", 261, "vocab_size"),
    ("special_token_count", "I", 3, "special_token_count"), ("hidden_size", "I", 0, "hidden_size"),
    ("hidden_size", "I", 16, "head_count x head_dim"), ("layer_count", "I", 0, "layer_count"),
    ("layer_count", "I", 0xFFFFFFFF, "layer_count"), ("head_count", "I", 0, "head_count"),
    ("kv_head_count", "I", 0, "kv_head_count"), ("kv_head_count", "I", 3, "kv_head_count"),
    ("head_dim", "I", 0, "head_dim"), ("ffn_size", "I", 0, "ffn_size"), ("ffn_size", "I", 17, "dims"),
    ("max_context", "I", 0, "max_context"), ("rope_theta", "f", 0, "rope_theta"),
    ("rope_theta", "f", float("inf"), "rope_theta"), ("rms_norm_epsilon", "f", float("nan"), "rms_norm_epsilon"),
    ("rms_norm_epsilon", "f", -1, "rms_norm_epsilon"), ("tokenizer_offset", "Q", 64, "overlaps the header"),
    ("tokenizer_offset", "Q", 1 << 63, "passes"), ("tokenizer_length", "Q", 27, "28 bytes"),
    ("tokenizer_length", "Q", 29, "28 bytes"), ("tokenizer_length", "Q", 200, "overlap"),
    ("tensor_directory_offset", "Q", 193, "multiple of 64"), ("tensor_directory_offset", "Q", 64, "overlaps"),
    ("tensor_directory_offset", "Q", 1 << 40, "passes"), ("tensor_count", "I", 11, "missing"),
    ("tensor_count", "I", 0xFFFFFFFF, "passes"), ("tensor_data_offset", "Q", 961, "multiple of 64"),
    ("tensor_data_offset", "Q", 896, "between"), ("tensor_data_offset", "Q", 1 << 40, "between")])
def test_slm_header_rules(field, form, value, words):
    raw = slm.build(**slm.fixture())
    refuses(slm.parse, slm.reseal(put(raw, slm.FIELD_AT[field], form, value)), words)


def test_slm_checksum_rules():
    raw = slm.build(**slm.fixture())
    refuses(slm.parse, put(raw, 100, "Q", 0), "checksum is 0")
    refuses(slm.parse, put(raw, 100, "Q", 1), "does not match")
    refuses(slm.parse, slm.reseal(put(raw, 108, "4s", b"BTOX")), "magic")
    refuses(slm.parse, slm.reseal(put(raw, 112, "I", 2)), "version")
    refuses(slm.parse, slm.reseal(put(raw, 120, "I", 255)), "special ids")


@pytest.mark.parametrize("dtype, number, offset, form, value, words", [
    ("f32", 0, 0, "Q", 5, "is missing"), ("f32", 0, 8, "I", 0, "dtype"), ("f32", 0, 8, "I", 4, "dtype"),
    ("f32", 0, 12, "I", 0, "rank"), ("f32", 0, 12, "I", 5, "rank"), ("f32", 0, 16, "I", 0, "dimension of 0"),
    ("f32", 0, 16, "I", 130, "exact length"), ("f32", 0, 32, "Q", 961, "multiple of 64"),
    ("f32", 0, 32, "Q", 64, "before tensor_data_offset"), ("f32", 0, 32, "Q", 1 << 40, "passes"),
    ("f32", 0, 40, "Q", 4, "exact length"), ("f32", 0, 48, "Q", 1024, "scale offset"),
    ("f32", 0, 56, "I", 8, "block size"), ("q8_0", 0, 48, "Q", 0, "missing"), ("q8_0", 0, 56, "I", 4, "block size"),
    ("q8_0", 0, 48, "Q", 64, "before"), ("q8_0", 0, 48, "Q", 1 << 40, "pass"),
    ("q8_0", 0, 40, "Q", 9, "exact length"),
    ("q4_0", 0, 56, "I", 0, "block size"), ("q4_0", 0, 56, "I", 3, "block size"),
    ("q4_0", 0, 56, "I", 16, "block size"),
    ("q4_0", 0, 48, "Q", 0, "missing"), ("q4_0", 0, 40, "Q", 9, "exact length")])
def test_slm_entry_rules(dtype, number, offset, form, value, words):
    raw = slm.build(**slm.fixture(), dtype=dtype)
    refuses(slm.parse, slm.reseal(put(raw, 192 + 64 * number + offset, form, value)), words)


def test_slm_payload_rules():
    raw = slm.build(**slm.fixture())
    for value in (float("nan"), float("inf")):
        refuses(slm.parse, slm.reseal(put(raw, 960, "f", value)), "not finite")
    for dtype in ("q8_0", "q4_0"):
        raw = slm.build(**slm.fixture(), dtype=dtype)
        at = slm.parse(raw)["tensors"][0]["scale_offset"]
        for value in (0, -1, float("nan"), float("inf")):
            refuses(slm.parse, slm.reseal(put(raw, at, "f", value)), "scale")
    raw = slm.build(**slm.fixture())
    refuses(slm.parse, slm.reseal(put(raw, 192 + 64, "Q", slm.fnv1a64("tok_embeddings.weight"))), "repeated")
    found = slm.parse(slm.reseal(put(raw, 192 + 24, "I", 1)))
    assert found["warnings"] == ["The tensor tok_embeddings.weight has a nonzero dimension past its rank."]


def test_slm_tensor_rules():
    given = slm.fixture()
    for number in range(12):
        left = given["tensors"][:number] + given["tensors"][number + 1:]
        refuses(slm.parse, slm.build(given["header"], slm.btok(), left), "missing")
        left.append((12345, given["tensors"][number][1]))
        refuses(slm.parse, slm.build(given["header"], slm.btok(), left), "missing")
    result = slm.parse(slm.build(given["header"], slm.btok(), given["tensors"] + [(12345, np.ones((2, 2)))]))
    assert result["tensors"][-1]["name"] == "#0000000000003039"
    short = [(name, array[:1] if name == "output.weight" else array) for name, array in given["tensors"]]
    refuses(slm.parse, slm.build(given["header"], slm.btok(), short), "dims")
    tied = {**given["header"], "flags": 1}
    assert len(slm.parse(slm.build(tied, slm.btok(), given["tensors"]))["tensors"]) == 12
    refuses(slm.parse, slm.build(tied, slm.btok(), short), "dims")
    old, new = "layers.0.attention_norm.weight", "layers.0.attn_norm.weight"
    other = [(new if name == old else name, array) for name, array in given["tensors"]]
    result = slm.parse(slm.build(given["header"], slm.btok(), other))
    assert old in [e["name"] for e in result["tensors"]] and len(result["warnings"]) == 1
    both = given["tensors"] + [(new, np.ones(8, np.float32))]
    refuses(slm.parse, slm.build(given["header"], slm.btok(), both), "both")


TOKENS = [(5, b"a"), (6, b"b"), (300, b"ab"), (259, b"\xff\xfe")]
MERGES = [(5, 6, 300, 0), (6, 6, 259, 1)]


def test_slm_bpe1():
    section = slm.bpe1(320, (1, 2, 0, 0), TOKENS, MERGES)
    found = slm.parse_tokenizer(section, 320)
    assert found["tokens"] == TOKENS and found["merges"] == MERGES and found["special"]["eos"] == 2
    given = slm.fixture()
    header = {**given["header"], "vocab_size": 320}
    tensors = [(n, np.ones((320, 8), np.float32) if len(a) == 260 else a) for n, a in given["tensors"]]
    assert slm.parse(slm.build(header, section, tensors))["tokenizer"]["kind"] == "BPE1"
    warnings = []
    slm.parse_tokenizer(slm.bpe1(320, (1, 2, 0, 0), TOKENS, MERGES + MERGES[:1]), 320, warnings)
    assert len(warnings) == 1
    for special, tokens, merges, words in (
            ((1, 2, 0, 320), TOKENS, MERGES, "special id"), ((1, 2, 0, 0), TOKENS + [(5, b"c")], MERGES, "repeated"),
            ((1, 2, 0, 0), TOKENS + [(320, b"c")], MERGES, "outside"),
            ((1, 2, 0, 0), TOKENS + [(7, b"")], [], "no bytes"),
            ((1, 2, 0, 0), TOKENS, [(320, 5, 300, 0)], "outside"), ((1, 2, 0, 0), TOKENS, [(5, 6, 301, 0)], "table"),
            ((1, 2, 0, 0), TOKENS, [(6, 6, 97, 1)], "table"),
            ((1, 2, 0, 0), TOKENS, [(5, 6, 320, 0)], "outside")):
        refuses(lambda raw: slm.parse_tokenizer(raw, 320), slm.bpe1(320, special, tokens, merges), words)
    refuses(lambda raw: slm.parse_tokenizer(raw, 321), section, "not the header's")
    refuses(lambda raw: slm.parse_tokenizer(raw, 320), section + b"\0", "after its last")
    refuses(lambda raw: slm.parse_tokenizer(raw, 320), put(section, 4, "I", 2), "version")
    for size in range(len(section)):
        with pytest.raises(ValueError):
            slm.parse_tokenizer(section[:size], 320)


# ----------------------------------------------------------------------------------------------------- adapters

def packages(base):
    draw = np.random.Generator(np.random.PCG64(9)).standard_normal
    who = slm_adapter.identity_of(base)
    dense = [("norm.weight", (8,), draw(8), None), ("layers.0.w2.weight", (8, 16), draw((8, 16)), None)]
    sparse = [("layers.0.wq.weight", (8, 8), [0, 5, 63], draw(3))]
    low = [("layers.0.w2.weight", (8, 16), draw((8, 3)), draw((3, 16)))]
    return {kind: (kind, who, entries) for kind, entries in zip(slm_adapter.KINDS, (dense, sparse, low))}


@pytest.mark.parametrize("dtype", ["f32", "q8_0", "q4_0"])
def test_adapter_apply(tmp_path, dtype):
    slm.write(tmp_path / "m.slm", **slm.fixture(), dtype=dtype)
    base = slm.read(tmp_path / "m.slm")
    assert slm_adapter.identity(tmp_path / "m.slm") == slm_adapter.identity_of(base)
    made = packages(base)
    for kind, arguments in made.items():
        raw = slm_adapter.write(tmp_path / kind, *arguments)
        package = slm_adapter.read(tmp_path / kind)
        assert package["kind"] == kind and package["warnings"] == [] and len(raw) % 64 == 0
    old = {e["name"]: slm.values(e) for e in base["tensors"]}
    new = slm_adapter.apply(tmp_path / "m.slm", *(tmp_path / kind for kind in ("ADP1", "ASP1", "ALR1")))
    fused = {e["name"]: slm.values(e) for e in new}
    dense, sparse, low = (made[kind][2] for kind in slm_adapter.KINDS)
    want = dict(old)
    want["norm.weight"] = old["norm.weight"] + np.float32(dense[0][2])
    product = (np.float32(low[0][2]).astype(float) @ np.float32(low[0][3]).astype(float)).astype(np.float32)
    want["layers.0.w2.weight"] = old["layers.0.w2.weight"] + np.float32(dense[1][2]) + product
    want["layers.0.wq.weight"] = old["layers.0.wq.weight"].copy()
    for place, delta in zip(*sparse[0][2:]):
        want["layers.0.wq.weight"][place // 8, place % 8] += np.float32(delta)
    for name in old:
        assert np.allclose(fused[name], want[name], rtol=1e-6, atol=1e-7), name
    kinds = {e["name"]: e["dtype"] for e in new}
    assert kinds["layers.0.w2.weight"] == kinds["layers.0.wq.weight"] == "f32" and kinds["layers.0.w1.weight"] == dtype
    slm.parse(slm.build(base["header"], base["tokenizer_bytes"], new))


def test_adapter_rules():
    base = slm.parse(slm.build(**slm.fixture()))
    for kind, arguments in packages(base).items():
        raw = slm_adapter.build(*arguments)
        for place in range(0, len(raw), 7 if len(raw) < 800 else 11):
            changed = bytearray(raw)
            changed[place] ^= 0x41
            with pytest.raises(ValueError):
                slm_adapter.parse(bytes(changed))
        refuses(slm_adapter.parse, raw[:-64], "file_size")
        start = struct.unpack_from("<Q", raw, 64)[0]
        for field, form, value, words in (
                ("magic", "4s", b"ADP2", "magic"), ("version", "I", 2, "version"),
                ("header_length", "I", 64, "header_length"),
                ("entry_count", "I", 0, "no entries"), ("directory_offset", "Q", 192, "directory_offset"),
                ("data_offset", "Q", 64, "data_offset"), ("file_size", "Q", 64, "file_size"),
                ("payload_checksum", "Q", 0, "payload checksum"), ("head_checksum", "Q", 0, "head checksum")):
            changed = put(raw, slm_adapter.FIELD_AT[field], form, value)
            if field == "payload_checksum":
                changed = put(changed, 88, "Q", slm_adapter.head_checksum(changed[:start]))
            refuses(slm_adapter.parse, changed, words)
        for offset, form, value, words in (
                (8, "I", 0, "rank"), (8, "I", 5, "rank"), (16, "I", 0, "dimension of 0"), (28, "I", 1, "past its rank"),
                (32, "Q", 0, "counts|inner rank"), (32, "Q", 1 << 40, "counts|inner rank"), (40, "Q", 65, "multiples"),
                (40, "Q", 64, "before"), (40, "Q", 1 << 40, "passes"), (48, "Q", 4, "wrong length"),
                (64, "Q", 4, "wrong length|second payload")):
            with pytest.raises(ValueError, match=words):
                slm_adapter.parse(slm_adapter.reseal(put(raw, 128 + offset, form, value)))
        assert slm_adapter.parse(slm_adapter.reseal(put(raw, 96, "I", 1)))["warnings"] != []
        assert slm_adapter.parse(slm_adapter.reseal(put(raw, 128 + 12, "I", 1)))["warnings"] != []
        assert slm_adapter.parse(slm_adapter.reseal(put(raw, start - 1, "B", 1)))["warnings"] != []
        for key in slm_adapter.IDENTITY:
            other = {**arguments[1], key: arguments[1][key] + 1}
            wrong = slm_adapter.parse(slm_adapter.build(kind, other, arguments[2]))
            with pytest.raises(ValueError, match=key):
                slm_adapter.apply_to(base, [wrong])


def test_adapter_content_rules():
    base = slm.parse(slm.build(**slm.fixture()))
    who = slm_adapter.identity_of(base)

    def refused(kind, entry, words, apply=False):
        raw = slm_adapter.build(kind, who, [entry])
        with pytest.raises(ValueError, match=words):
            package = slm_adapter.parse(raw)
            assert apply, "expected an earlier refusal"
            slm_adapter.apply_to(base, [package])

    name, dims = "layers.0.wq.weight", (8, 8)
    refused("ADP1", (name, dims, np.full(64, np.nan), None), "not finite")
    refused("ADP1", (name, (4, 16), np.zeros(64), None), "other dims", True)
    refused("ADP1", ("layers.1.wq.weight", dims, np.zeros(64), None), "no tensor", True)
    refused("ASP1", (name, dims, [3, 3], [1, 1]), "ascend")
    refused("ASP1", (name, dims, [3, 64], [1, 1]), "past its elements")
    refused("ASP1", (name, dims, [3, 4], [1, np.inf]), "not finite")
    refused("ALR1", (name, dims, np.zeros((8, 9)), np.zeros((9, 8))), "inner rank")
    refused("ALR1", (name, dims, np.full((8, 1), 3e38), np.full((1, 8), 3e38)), "gets a value", True)
    twice = slm_adapter.build("ADP1", who, [("norm.weight", (8,), np.ones(8), None)] * 2)
    refuses(slm_adapter.parse, twice, "Two entries")
    big = [slm_adapter.parse(slm_adapter.build("ADP1", who, [(name, dims, np.full(64, v), None)]))
           for v in (3e38, 3e38, -3e38)]
    slm_adapter.apply_to(base, [big[0], big[2], big[1]])
    with pytest.raises(ValueError):
        slm_adapter.apply_to(base, big)
