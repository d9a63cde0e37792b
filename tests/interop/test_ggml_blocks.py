# SPDX-License-Identifier: Apache-2.0
"""Tests the decoders of GGML's block types against two others, bit for bit: the package gguf, and GGML's C library where llama-cpp-python
brings it (or $WEIGHBRIDGE_GGML is its path). 100,000 blocks of each type: every f16 as a scale, fields of equal bytes, random ones. A NaN
equals any other, because its sign and payload depend on the processor. Encoders are tested against the package."""
import ctypes
import importlib.util
import os
import pathlib
import subprocess

import pytest

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


def ggml():
    """GGML's C library, or nothing."""
    path = os.environ.get("WEIGHBRIDGE_GGML")
    spec = importlib.util.find_spec("llama_cpp")
    if not path and spec:
        path = pathlib.Path(spec.submodule_search_locations[0]) / "lib/libggml-base.so"
    return ctypes.CDLL(str(path)) if path and os.path.exists(path) else None


LIBRARY = ggml()


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


@pytest.mark.skipif(LIBRARY is None, reason="llama-cpp-python is not installed, and $WEIGHBRIDGE_GGML names no libggml-base.so")
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
             np.repeat(plain(1000)[:, :1], n, 1), abs(plain(1000)), -abs(plain(1000)), np.zeros((2, n)), np.full((1, n), -0.0),
             plain(2000) * np.where(rng.integers(0, n, (2000, n)) == 0, 1e4, 1),
             (bits[:2500] & 0x807FFFFF).view(np.float32), ((bits[2500:] & 0x80000003) + 0).view(np.float32)]
    near = np.ldexp(np.float32(1), rng.integers(-126, 127, (20000, 1))).astype(np.float32)
    near = (near.view(np.uint32) - rng.integers(0, 100, near.shape, np.uint32)).view(np.float32)
    kinds.append(near * rng.choice(np.float32([0, 0.25, 0.5, 1, -1]), (20000, n)))
    with np.errstate(all="ignore"):
        every = np.concatenate([one.astype(np.float32) for one in kinds])
    return every[np.isfinite(every).all(1)]


@pytest.mark.parametrize("name", ENCODED)
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


def test_the_types_that_are_encoded():
    assert ENCODED == ["mxfp4", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "tq1_0", "tq2_0"]
