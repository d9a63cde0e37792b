# SPDX-License-Identifier: Apache-2.0
import os
import struct

import pytest

from conftest import floats, safetensors, validated, weighbridge

ml_dtypes = pytest.importorskip("ml_dtypes")
numpy = pytest.importorskip("numpy")


def test_raw_bytes(sample, tmp_path):
    out = tmp_path / "w.bin"
    weighbridge("extract", sample, "layer.weight", "-o", out)
    assert out.read_bytes() == floats(1, -2.5, 0, 4, 5, 6)
    assert weighbridge("extract", sample, "layer.bias", "-o", "-", text=False).stdout == floats(0, 0, 0.5)


def test_npy(sample, tmp_path):
    out = tmp_path / "w.npy"
    weighbridge("extract", sample, "layer.weight", "-o", out)
    array = numpy.load(out)
    assert array.dtype == numpy.float32 and array.tolist() == [[1, -2.5, 0], [4, 5, 6]]
    weighbridge("extract", sample, "steps", "-o", out, "--force")
    assert numpy.load(out).shape == () and numpy.load(out) == -7
    weighbridge("extract", sample, "steps", "-o", out, "--force", "--raw")
    assert out.read_bytes() == struct.pack("<q", -7)


@pytest.mark.parametrize("dtype,kind", [("U8", "u1"), ("I8", "i1"), ("F16", "f2"), ("F64", "f8"), ("BOOL", "?"), ("U64", "u8")])
def test_npy_types(tmp_path, dtype, kind):
    array = numpy.array([0, 1, 1], dtype=kind)
    path, out = tmp_path / "t.safetensors", tmp_path / "t.npy"
    path.write_bytes(safetensors({"t": (dtype, [3], array.tobytes())}))
    weighbridge("extract", path, "t", "-o", out)
    assert numpy.load(out).dtype == array.dtype and numpy.array_equal(numpy.load(out), array)


def test_npy_of_types_that_numpy_lacks(sample, tmp_path):
    out = tmp_path / "e.npy"
    said = weighbridge("extract", sample, "embedding", "-o", out).stdout
    assert "view(ml_dtypes.bfloat16)" in said
    array = numpy.load(out).view(ml_dtypes.bfloat16)
    assert array.tolist() == [[1, 2], [-1.5, 0]]
    mine = out.read_bytes()
    numpy.save(out, array)
    assert mine == out.read_bytes()


def test_dense_and_cast(sample, tmp_path):
    out = tmp_path / "e.npy"
    weighbridge("extract", sample, "embedding", "--dense", "f32", "-o", out)
    assert numpy.load(out).tolist() == [[1, 2], [-1.5, 0]]
    value = validated(weighbridge("extract", sample, "embedding", "-o", out, "--dense", "--force", "--json").stdout, "extract")
    assert value["tensors"][0]["part"] is None and value["tensors"][0]["dtype"] == "bf16"
    assert "after TENSOR" in weighbridge("extract", sample, "--dense", "embedding", "-o", out, status=2).stderr


def test_parts(sample, tmp_path):
    weighbridge("extract", sample, "steps", "--part", "data", "-o", tmp_path / "d")
    assert "'data'" in weighbridge("extract", sample, "steps", "--part", "scales", "-o", tmp_path / "s", status=2).stderr


def test_a_sparse_tensor_gives_its_values_unless_asked_for_more(sparse, tmp_path):
    assert weighbridge("extract", sparse, "s", "-o", "-", text=False).stdout == floats(5, 7)
    assert weighbridge("extract", sparse, "s", "--part", "coords", "-o", "-", text=False).stdout == struct.pack("<4Q", 0, 1, 1, 2)
    weighbridge("extract", sparse, "s", "--dense", "-o", tmp_path / "s.npy")
    assert numpy.load(tmp_path / "s.npy").tolist() == [[0, 5, 0], [0, 0, 7]]


def test_an_unknown_tensor_names_the_nearest(sample, tmp_path):
    done = weighbridge("extract", sample, "layer.wieght", "-o", tmp_path / "w", status=2)
    assert "layer.weight" in done.stderr
    value = validated(weighbridge("extract", sample, "x", "-o", tmp_path / "w", "--json", status=2).stdout, "extract")
    assert value["findings"][0]["kind"] == "misuse"


def test_an_existing_output_needs_force(sample, tmp_path):
    out = tmp_path / "w.bin"
    out.write_bytes(b"old")
    weighbridge("extract", sample, "steps", "-o", out, status=2)
    assert out.read_bytes() == b"old"
    weighbridge("extract", sample, "steps", "-o", sample, "--force", status=2)


def test_glob_makes_harmless_names(tmp_path):
    path, folder = tmp_path / "t.safetensors", tmp_path / "out"
    names = ["../../evil", "a/b", "a_b", "..", "nul", "A_B", "x\n\u202ey", "-rf"]
    path.write_bytes(safetensors({name: ("F32", [1], floats(i)) for i, name in enumerate(names)}))
    value = validated(weighbridge("extract", path, "--glob", "*", "-o", folder, "--json").stdout, "extract")
    assert len(os.listdir(folder)) == len(names) and sorted(os.listdir(tmp_path)) == ["out", "t.safetensors"]
    for entry in value["tensors"]:
        file = entry["output"]
        assert os.path.dirname(file) == str(folder) and os.path.basename(file)[0] not in ".-"
        assert numpy.load(file)[0] == names.index(entry["name"])
    assert len({name.lower() for name in os.listdir(folder)}) == len(names)


def test_glob_wants_a_folder(sample, tmp_path):
    weighbridge("extract", sample, "--glob", "*", "-o", "-", status=2)
    weighbridge("extract", sample, "--glob", "nothing*", "-o", tmp_path / "out", status=2)
    assert not (tmp_path / "out").exists()
    weighbridge("extract", sample, "--glob", "layer.*", "-o", tmp_path / "out", "--raw")
    assert sorted(os.listdir(tmp_path / "out")) == ["layer.bias.bin", "layer.weight.bin"]
    weighbridge("extract", sample, "--glob", "layer.*", "-o", tmp_path / "out", "--raw", status=2)


def test_an_output_is_demanded(sample):
    assert "-o" in weighbridge("extract", sample, "steps", status=2).stderr
    assert "TENSOR" in weighbridge("extract", sample, "-o", "-", status=2).stderr
