# SPDX-License-Identifier: Apache-2.0
"""Tests the decoders of GGML's block types against two others, bit for bit: the package gguf, and GGML's C library where llama-cpp-python
brings it (or $WEIGHBRIDGE_GGML is its path). 100,000 blocks of each type: every f16 as a scale, fields of equal bytes, random ones. A NaN
equals any other, because its sign and payload depend on the processor. Encoders are tested against the package, GGML's library, and
GGML's source compiled for processors with FMA, where GCC contracts products and sums ($WEIGHBRIDGE_GGML_SOURCE, or what
tools/fetch-vocabularies.sh fetches)."""
import ctypes
import hashlib
import json
import os
import pathlib
import subprocess

import pytest

from ggml_library import LIBRARY, NUMBERS, contracted, quantizer   # noqa: F401: a fixture
from interop_tools import COMMAND, np

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")

CODE_BLOCKS = os.environ.get("WEIGHBRIDGE_CODE_BLOCKS") or str(pathlib.Path(COMMAND).parent / "tests/programs/code_blocks")
if not os.path.exists(CODE_BLOCKS):
    pytest.skip(f"{CODE_BLOCKS} is missing: builds with tests make it", allow_module_level=True)

BLOCKS, PIECE = 100_000, 10_000
LISTED = [line.split() for line in subprocess.run([CODE_BLOCKS], capture_output=True, text=True, check=True).stdout.splitlines()]
TYPES = {name.removeprefix("ggml."): (int(elements), int(size)) for name, elements, size, _ in LISTED if name.startswith("ggml.")}
ENCODED = sorted(name.removeprefix("ggml.") for name, _, _, does in LISTED if name.startswith("ggml.") and does == "both")
# Offsets of a block's f16; the first takes every value in turn, the second another order of them.
HALVES = {"q4_1": (0, 2), "q5_1": (0, 2), "q8_1": (0, 2), "q4_k": (0, 2), "q5_k": (0, 2), "q2_k": (80, 82), "q3_k": (108,), "q6_k": (208,),
          "tq1_0": (52,), "tq2_0": (64,), "q8_k": (2,), "iq1_m": (), "mxfp4": (), "nvfp4": ()}
# gguf 0.19 knows these by name and size, but has no decoder.
NOT_IN_GGUF = {"q8_1", "q8_k", "q1_0", "q2_0"}
NOT_IN_C = {"q8_1"}


beside_ggml = pytest.mark.skipif(LIBRARY is None, reason="llama-cpp-python is not installed, and $WEIGHBRIDGE_GGML names no libggml-base.so")


def blocks_of(name):
    """All blocks of one type, a row each."""
    size = TYPES[name][1]
    rng = np.random.default_rng(sorted(TYPES).index(name))
    out = rng.integers(0, 256, (BLOCKS, size), np.uint8)
    every = np.arange(65536, dtype=np.uint32)
    for n, at in enumerate(HALVES.get(name, (0,))):
        out[:65536, at:at + 2] = (every * (1 if n == 0 else 40503)).astype("<u2").view(np.uint8).reshape(-1, 2)
    if name == "iq1_m":     # its f16 is in four pieces
        for n in range(4):
            out[:65536, 49 + 2 * n] = out[:65536, 49 + 2 * n] & 15 | (every >> 4 * n & 15).astype(np.uint8) << 4
    for n, value in enumerate((0x00, 0xFF, 0x7F, 0x80, 0x7C, 0x01)):    # whole blocks, or all but one byte
        some = out[70000 + 1000 * n:71000 + 1000 * n]
        some[:] = value
        some[np.arange(1, 1000), rng.integers(0, size, 999)] = rng.integers(0, 256, 999, np.uint8)
    return out


def ours(name, blocks):
    done = subprocess.run([CODE_BLOCKS, "decode", "ggml." + name], input=blocks.tobytes(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return np.frombuffer(done.stdout, np.uint32).reshape(len(blocks), -1)


def same(got, expected, name, what):
    got, expected = got.view(np.uint32).ravel(), expected.view(np.uint32).ravel()
    assert got.size == expected.size
    wrong = got != expected
    wrong &= ~(np.isnan(got.view(np.float32)) & np.isnan(expected.view(np.float32)))
    at = int(wrong.argmax())
    assert not wrong.any(), (f"{name}: {wrong.sum()} elements differ from {what}; block {at // TYPES[name][0]}, "
                             f"element {at % TYPES[name][0]}: {got.view(np.float32)[at]!r} instead of {expected.view(np.float32)[at]!r}")


def pieces(name):
    blocks = blocks_of(name)
    for at in range(0, BLOCKS, PIECE):
        yield blocks[at:at + PIECE], ours(name, blocks[at:at + PIECE])


def test_the_types_are_all_that_ggml_has():
    scalar = {"f32", "f16", "f64", "bf16", "i8", "i16", "i32", "i64"}
    theirs = {kind.name.lower(): gguf.GGML_QUANT_SIZES[kind] for kind in gguf.GGMLQuantizationType}
    assert {"q1_0", "q2_0"} | (theirs.keys() - scalar) == TYPES.keys()   # the package knows neither of the two yet
    theirs["q8_1"] = (32, 36)                                           # two f32 to the package, two f16 to GGML's C
    assert {name: size for name, size in theirs.items() if name not in scalar} == \
        {name: size for name, size in TYPES.items() if name in theirs}


@pytest.mark.parametrize("name", sorted(TYPES.keys() - NOT_IN_GGUF))
def test_decodes_as_the_package_gguf_does(name):
    kind = gguf.GGMLQuantizationType[name.upper()]
    with np.errstate(all="ignore"):
        for blocks, got in pieces(name):
            same(got, gguf.quants.dequantize(blocks, kind), name, "gguf")


@beside_ggml
@pytest.mark.parametrize("name", sorted(TYPES.keys() - NOT_IN_C))
def test_decodes_as_ggml_does(name):
    head, _, tail = name.partition("_")
    decode = getattr(LIBRARY, f"dequantize_row_{head}_{tail.upper() if tail == 'k' else tail}".removesuffix("_"))
    decode.argtypes, decode.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None
    for blocks, got in pieces(name):
        blocks = np.ascontiguousarray(blocks)
        expected = np.empty(len(blocks) * TYPES[name][0], np.float32)
        decode(blocks.ctypes.data, expected.ctypes.data, expected.size)
        same(got, expected, name, "GGML's C")


def test_q8_1_which_nobody_decodes_is_scale_times_code():
    with np.errstate(all="ignore"):
        for blocks, got in pieces("q8_1"):
            scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
            same(got, scale * blocks[:, 4:].view(np.int8).astype(np.float32), "q8_1", "the formula")


def values_for(name):
    """Rows of one block each: normal numbers of every magnitude, integers and halves (ties), multiples of a scale, blocks of zeros or of
    equal numbers, one outlier, subnormals, numbers next to powers of two."""
    n, rng = TYPES[name][0], np.random.default_rng(sorted(TYPES).index(name))
    plain = lambda rows: rng.standard_normal((rows, n)).astype(np.float32)
    bits = rng.integers(0, 1 << 32, (5000, n), np.uint32)
    kinds = [plain(10000), np.ldexp(plain(5000), rng.integers(-140, 120, (5000, 1))), rng.integers(-9, 10, (5000, n)) / 2,
             rng.integers(-8, 8, (5000, n)) * plain(5000)[:, :1], rng.integers(-127, 128, (5000, n)) * plain(5000)[:, :1],
             np.repeat(plain(1000)[:, :1], n, 1), abs(plain(1000)), -abs(plain(1000)), np.zeros((2, n)),
             plain(2000) * np.where(rng.integers(0, n, (2000, n)) == 0, 1e4, 1),
             (bits[:2500] & 0x807FFFFF).view(np.float32), ((bits[2500:] & 0x80000003) + 0).view(np.float32)]
    near = np.ldexp(np.float32(1), rng.integers(-126, 127, (20000, 1))).astype(np.float32)
    near = (near.view(np.uint32) - rng.integers(0, 100, near.shape, np.uint32)).view(np.float32)
    kinds.append(near * rng.choice(np.float32([0, 0.25, 0.5, 1, -1]), (20000, n)))
    with np.errstate(all="ignore"):
        every = np.concatenate([one.astype(np.float32) for one in kinds])
    every = every[np.isfinite(every).all(1)]
    return every[(every != 0).any(1) | ~np.signbit(every).any(1)]   # the package gives -0 another scale than GGML's C does


PACKAGE_ENCODES = ["mxfp4", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "tq1_0", "tq2_0"]


@pytest.mark.parametrize("name", PACKAGE_ENCODES)
def test_encodes_as_the_package_gguf_does(name):
    values = values_for(name)
    done = subprocess.run([CODE_BLOCKS, "encode", "ggml." + name], input=values.tobytes(), capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    got = np.frombuffer(done.stdout, np.uint8).reshape(len(values), -1)
    with np.errstate(all="ignore"):
        expected = gguf.quants.quantize(values, gguf.GGMLQuantizationType[name.upper()])
    wrong = (got != expected).any(1)
    at = int(wrong.argmax())
    assert not wrong.any(), f"{name}: {wrong.sum()} blocks differ; {values[at]!r} gives {got[at]} instead of {expected[at]}"


# Rows of a type without a matrix, and with matrices of all kinds together; check-long asks for 200,000.
ROWS = int(os.environ.get("WEIGHBRIDGE_QUANTIZED_ROWS", "3000"))
COLUMNS = 512


def rows_to_encode(rng, count):
    """Rows of COLUMNS numbers: six scales of normal ones, heavy tails, one sign, ternary, integers, bf16, zeros, constants, spikes, empty
    groups, ramps, mixed magnitudes, subnormals."""
    normal = lambda: rng.standard_normal((count // 16 + 1, COLUMNS)).astype(np.float32)
    group = np.arange(COLUMNS) // 16
    kinds = [normal() * np.float32(10.0) ** rng.integers(-6, 3, (count // 16 + 1, 1)).astype(np.float32), normal() * 0.02,
             rng.standard_t(2, (count // 16 + 1, COLUMNS)), abs(normal()), -abs(normal()), rng.integers(-1, 2, (count // 16 + 1, COLUMNS)) * 0.037,
             rng.integers(-9, 10, (count // 16 + 1, COLUMNS)) / 2, (normal().view(np.uint32) & 0xFFFF0000).view(np.float32),
             normal() * (rng.integers(0, 3, (count // 16 + 1, 1)) - 1) * 0.0, np.repeat(normal()[:, :1], COLUMNS, 1),
             normal() * np.where(rng.integers(0, 200, (count // 16 + 1, COLUMNS)) == 0, 1e3, 1e-2),
             normal() * (rng.integers(0, 3, (count // 16 + 1, COLUMNS // 16))[:, group] > 0), np.linspace(-1, 1, COLUMNS) * normal()[:, :1],
             np.ldexp(normal(), rng.integers(-12, 4, (count // 16 + 1, COLUMNS // 16))[:, group]), normal() * 1e-12, normal() * 1e-39]
    with np.errstate(all="ignore"):
        return np.concatenate([one.astype(np.float32) for one in kinds])[:count]


def importance_of(rng, kind):
    if kind == "none":
        return None
    return {"squares": lambda: rng.standard_normal(COLUMNS) ** 2, "holes": lambda: rng.random(COLUMNS) * (rng.random(COLUMNS) > 0.3),
            "ones": lambda: np.ones(COLUMNS), "zeros": lambda: np.zeros(COLUMNS)}[kind]().astype(np.float32)


IGNORE_IMPORTANCE, NEED_IMPORTANCE = {"mxfp4", "q8_0", "tq1_0", "tq2_0"}, {"iq2_xxs", "iq2_xs"}


@beside_ggml
@pytest.mark.parametrize("kind", ["none", "squares", "holes", "ones", "zeros"])
@pytest.mark.parametrize("name", ENCODED)
def test_encodes_as_ggml_does(name, kind, tmp_path):
    quantize = LIBRARY.ggml_quantize_chunk
    quantize.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    encode_beside("encode", name, kind, ROWS // (1 if kind == "none" else 4), tmp_path, lambda values, to, rows, importance:
                  quantize(NUMBERS[name], values, to, 0, rows, COLUMNS, importance))


@beside_ggml
@pytest.mark.parametrize("kind", ["none", "squares", "holes"])
@pytest.mark.parametrize("name", ENCODED)
def test_encodes_as_ggml_does_where_it_is_contracted(name, kind, tmp_path, contracted):
    quantize = quantizer(contracted, name)
    encode_beside("contract", name, kind, ROWS // (1 if kind == "none" else 2), tmp_path, lambda values, to, rows, importance:
                  quantize(values, to, rows, COLUMNS, importance))


def encode_beside(verb, name, kind, count, tmp_path, quantize):
    if kind == "none" and name in NEED_IMPORTANCE or kind != "none" and name in IGNORE_IMPORTANCE:
        return
    rng = np.random.default_rng(sorted(TYPES).index(name))
    row = COLUMNS // TYPES[name][0] * TYPES[name][1]
    for first in range(0, count, 20_000):
        arguments = [CODE_BLOCKS, verb, "ggml." + name]
        if (importance := importance_of(rng, kind)) is not None:
            importance.tofile(tmp_path / "importance")
            arguments += [str(COLUMNS), tmp_path / "importance"]
        values = np.ascontiguousarray(rows_to_encode(rng, min(count - first, 20_000)))
        done = subprocess.run(arguments, input=values.tobytes(), capture_output=True, timeout=600)
        assert done.returncode == 0, done.stderr
        got = np.frombuffer(done.stdout, np.uint8).reshape(len(values), row)
        expected = np.empty_like(got)
        quantize(values.ctypes.data, expected.ctypes.data, len(values), None if importance is None else importance.ctypes.data)
        wrong = (got != expected).any(1)
        assert not wrong.any(), f"{name}: {wrong.sum()} rows differ, the first is {int(wrong.argmax())}"


GOLDEN = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA") or pathlib.Path(__file__).parents[3] / "shared/data") / "gguf/kquants_golden.json"


def golden_numbers(golden, start):
    """u() of the golden file's recipe: numbers from 0 to 1 of splitmix64."""
    state, mask = golden["seed"] * 1000003 + start, (1 << 64) - 1
    def next64():
        nonlocal state
        state = z = state + 0x9E3779B97F4A7C15 & mask
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
        return z ^ z >> 31
    return next64, lambda: np.float32(next64() >> 40) / np.float32(1 << 24)


def golden_row(golden, number):
    f, n = np.float32, golden["length"]
    next64, u = golden_numbers(golden, number)
    v = lambda: f(f(u() + u()) + f(u() + u())) - f(2)
    def one(kind, i):
        match kind:
            case "weights": return v() * f(0.02)
            case "wide":
                large = u() < f(1 / 64)
                return v() * (f(8) if large else f(0.05))
            case "bf16": return (np.array([v() * f(0.02)]).view(np.uint32) & 0xFFFF0000).view(np.float32)[0]
            case "positive": return u() * f(0.5) + f(0.25)
            case "negative": return -(u() * f(0.5))
            case "ternary": return (f({3: 1}.get(k := next64() >> 62, k)) - f(1)) * f(0.037)
            case "zeros": return f(0)
            case "constant": return f(0.1)
            case "spike":
                small = v() * f(0.001)
                return f(50) if i == n // 3 else small
            case "halfzero": return f(0) if i < n // 2 else v()
            case "groupzero": return f(0) if i // 32 % 4 == 1 else v() * f(0.1)
            case "tiny": return v() * f(1e-7)
            case "denormal": return v() * f(1e-39)
    return np.array([one(golden["rows"][number], i) for i in range(n)], np.float32)


@pytest.mark.skipif(not GOLDEN.exists(), reason="the golden blocks of GGML are in the test data: WEIGHBRIDGE_TEST_DATA names no gguf/kquants_golden.json")
def test_encodes_the_golden_rows_of_a_release_of_ggml(tmp_path):
    golden = json.loads(GOLDEN.read_text())
    with np.errstate(all="ignore"):
        rows = [golden_row(golden, number) for number in range(len(golden["rows"]))]
    assert [hashlib.sha256(row).hexdigest() for row in rows] == golden["row_sha256"]
    matrices = {"none": None}
    for name, digest in golden["matrix_sha256"].items():
        _, u = golden_numbers(golden, 777)
        def element(i):
            if name == "squares":
                return (k := u()) * k + np.float32(0.01)
            return np.float32(0) if i // 8 % 5 == 0 else u()
        matrices[name] = np.array([element(i) for i in range(golden["length"])], np.float32)
        assert hashlib.sha256(matrices[name]).hexdigest() == digest
    checked = 0
    for kind, modes in golden["types"].items():
        for mode, expected in modes.items():
            arguments = [CODE_BLOCKS, "encode", "ggml." + kind.lower()]
            if matrices[mode] is not None:
                matrices[mode].tofile(tmp_path / mode)
                arguments += [str(golden["length"]), tmp_path / mode]
            for number, digest in zip(expected["rows"], expected["sha256"]):
                done = subprocess.run(arguments, input=rows[number].tobytes(), capture_output=True, check=True, timeout=60)
                assert hashlib.sha256(done.stdout).hexdigest().startswith(digest), (kind, mode, golden["rows"][number])
                checked += 1
    assert checked > 600


def test_the_types_that_are_encoded():
    assert ENCODED == sorted(PACKAGE_ENCODES + ["iq2_s", "iq2_xs", "iq2_xxs", "iq3_s", "iq3_xxs", "iq4_nl", "iq4_xs", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k"])
