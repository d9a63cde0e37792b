# SPDX-License-Identifier: Apache-2.0
"""How small patches are: one bf16 tensor of 4 M elements whose values move one step up or down, at several densities, beside the smaller of two
plain encodings by NumPy and zstd: gaps and differences of those that changed, and differences of all, in planes of bytes."""
import json
import struct

import pytest

np = pytest.importorskip("numpy")
zstandard = pytest.importorskip("zstandard")

from interop_tools import weighbridge

COUNT = 1 << 22
OVERHEAD = 4096  # names, nodes, attributes


def planes(array):
    return [np.ascontiguousarray(array.view("u1").reshape(-1, array.itemsize)[:, i]) for i in range(array.itemsize)]


def best(old, new):
    encode = lambda array: sum(len(zstandard.ZstdCompressor(level=1).compress(plane.tobytes())) for plane in planes(array))
    change = (new - old).view("<i2")
    words = ((change << 1) ^ (change >> 15)).view("<u2")
    at = np.flatnonzero(words)
    gaps = np.diff(at, prepend=-1) - 1
    return min(encode(words), encode(words[at]) + encode(gaps.astype("<u2" if len(gaps) == 0 or gaps.max() < 1 << 16 else "<u4")))


def write(path, numbers):
    text = json.dumps({"w": {"dtype": "BF16", "shape": [COUNT], "data_offsets": [0, 2 * COUNT]}}).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + numbers.tobytes())
    return path


@pytest.mark.parametrize("density", [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.5, 1.0])
def test_a_patch_is_at_most_a_twentieth_larger_than_the_best_plain_encoding(density, tmp_path):
    draw = np.random.default_rng(7)
    weights = (draw.standard_normal(COUNT).astype("<f4") * np.float32(0.02)).view("<u4")
    old = ((weights + 0x7FFF + ((weights >> 16) & 1)) >> 16).astype("<u2")
    new = old.copy()
    moved = draw.random(COUNT) < density
    new[moved] += np.where(draw.random(moved.sum()) < 0.5, 1, 65535).astype("<u2")
    patch = tmp_path / "p.zt"
    weighbridge("diff", write(tmp_path / "a.safetensors", old), write(tmp_path / "b.safetensors", new), "--patch", patch)
    assert patch.stat().st_size <= 1.05 * best(old, new) + OVERHEAD
