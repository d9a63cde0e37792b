# SPDX-License-Identifier: Apache-2.0
"""Patches that the command makes, applied by the witness patch.py, and patches of the witness, verified and applied by the command."""
import json
import pathlib
import struct
import sys

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("zstandard")
pytest.importorskip("cbor2")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "witness"))

import patch
from interop_tools import weighbridge

LABELS = {"BF16": "bf16", "F32": "f32", "F64": "f64", "I8": "i8", "I64": "i64", "BOOL": "bool", "F8_E4M3": "f8_e4m3"}


def written(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        label = next(label for label, short in LABELS.items() if short == dtype)
        header[name] = {"dtype": label, "shape": list(shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    at = lambda entry: data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]]
    return {name: (LABELS[entry["dtype"]], tuple(entry["shape"]), at(entry)) for name, entry in header.items() if name != "__metadata__"}


def pair(share):
    """Tensors of every width, with lengths around the ends of chunks, and the same with some elements changed."""
    random = np.random.default_rng(5)
    base, result = {}, {}
    for label, dtype in LABELS.items():
        for count in (0, 1, 65537, 1 << 20 | 3):
            unit = np.dtype("<" + patch.DTYPES[dtype])
            a = random.integers(0, 2, count).astype(unit)
            b = np.where(random.random(count) < share, a ^ unit.type(1) if dtype == "bool" else a + random.integers(-3, 4, count).astype(unit), a)
            base[f"{label} {count}"], result[f"{label} {count}"] = ((dtype, (count,), x.astype(unit).tobytes()) for x in (a, b))
    return base, result


@pytest.mark.parametrize("share", [0, 0.0001, 0.01, 0.3, 0.9])
def test_the_witness_applies_what_the_command_makes(tmp_path, share):
    base, result = pair(share)
    a, b = written(tmp_path / "a.safetensors", base), written(tmp_path / "b.safetensors", result)
    weighbridge("diff", a, b, "--patch", tmp_path / "p.zt")
    assert patch.applied(tmp_path / "p.zt", base) == result


def test_the_witness_applies_what_is_added_removed_renamed_recast_folded_and_reversed(tmp_path):
    base, result = pair(0.01)
    result["moved"] = result.pop("F32 65537")
    base["F32 65537"] = result["moved"]
    result["new"] = ("i64", (2, 1), bytes(16))
    del result["I8 1"]
    result["BF16 1"] = ("bf16", (1, 2), bytes(4))
    a, b = written(tmp_path / "a.safetensors", base), written(tmp_path / "b.safetensors", result)
    weighbridge("diff", a, b, "--patch", tmp_path / "p.zt")
    assert patch.applied(tmp_path / "p.zt", base) == result
    base, result = pair(0.01)
    _, third = pair(0.02)
    for name, tensors in (("a", base), ("b", result), ("c", third)):
        written(tmp_path / f"{name}.safetensors", tensors)
    weighbridge("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--patch", tmp_path / "1.zt")
    weighbridge("diff", tmp_path / "b.safetensors", tmp_path / "c.safetensors", "--patch", tmp_path / "2.zt")
    weighbridge("patch", "fold", tmp_path / "1.zt", tmp_path / "2.zt", "-o", tmp_path / "3.zt")
    assert patch.applied(tmp_path / "3.zt", base) == third
    weighbridge("patch", "reverse", tmp_path / "3.zt", "-o", tmp_path / "4.zt")
    assert patch.applied(tmp_path / "4.zt", third) == base


@pytest.mark.parametrize("code", ["sub", "xor", "set"])
def test_the_command_applies_what_the_witness_makes(tmp_path, code):
    base, result = pair(0.01)
    a = written(tmp_path / "a.safetensors", base)
    patch.made(tmp_path / "p.zt", base, result, code)
    weighbridge("verify", tmp_path / "p.zt")
    weighbridge("apply", a, tmp_path / "p.zt", "-o", tmp_path / "b.safetensors")
    assert read(tmp_path / "b.safetensors") == result


def test_the_example_of_the_specification(tmp_path):
    a = written(tmp_path / "a.safetensors", {"w": ("bf16", (6,), np.array([1, 2, 3, 4, 5, 6], "<u2").tobytes())})
    b = written(tmp_path / "b.safetensors", {"w": ("bf16", (6,), np.array([1, 3, 3, 2, 5, 6], "<u2").tobytes())})
    weighbridge("diff", a, b, "--patch", tmp_path / "p.zt")
    data = (tmp_path / "p.zt").read_bytes()
    entry = patch.manifest_of(data)["objects"]["w"]
    assert entry["attributes"] == {"delta.op": "sparse", "dtype": "bf16", "shape": "6"}
    assert patch.decoded(data, entry["components"]["data"]).hex(" ") == "01 01 00 00 02 03 00 00"
