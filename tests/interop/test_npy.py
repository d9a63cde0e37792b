# SPDX-License-Identifier: Apache-2.0
"""Tests that NumPy loads the .npy files of `extract` with equal values."""
import io
import json
import pathlib
import struct
import zipfile

import pytest

from interop_tools import NAME_OF, NUMPY_OF, ZT_NAMES, np, one_of_each, weighbridge, zt_bytes


@pytest.mark.parametrize("encoding", ["raw", "zstd"])
def test_every_dtype_and_shape_loads_in_numpy(tmp_path, encoding):
    model = one_of_each(ZT_NAMES)
    source, path = tmp_path / "in.zt", tmp_path / "m.zt"
    source.write_bytes(zt_bytes({name: (array.shape, "dense", {"data": array}, None) for name, array in model.items()}))
    weighbridge("convert", source, path, "--encoding", encoding)
    done = json.loads(weighbridge("extract", path, "--glob", "*", "--json", "-o", tmp_path / "all"))
    assert len(done["tensors"]) == len(model)
    for tensor in done["tensors"]:
        array = model[tensor["name"]]
        loaded = np.load(tensor["output"], allow_pickle=False)
        assert loaded.shape == array.shape and loaded.tobytes() == array.tobytes(), tensor["name"]
        if array.dtype.kind == "V" or loaded.dtype != array.dtype:  # bf16, float8: raw items, as np.save writes ml_dtypes
            assert NAME_OF[array.dtype] in ("bf16", "f8_e4m3", "f8_e5m2")
            assert loaded.dtype.itemsize == array.dtype.itemsize and loaded.view(array.dtype).tobytes() == array.tobytes()


def test_the_file_is_what_numpy_writes(tmp_path):
    """Header and padding too, for the dtypes of NumPy itself."""
    for name, array in one_of_each(["f32", "u8", "bool", "i64", "complex64", "f16"]).items():
        path, ours, theirs = tmp_path / "in.zt", tmp_path / "ours.npy", tmp_path / "theirs.npy"
        path.write_bytes(zt_bytes({name: (array.shape, "dense", {"data": array}, None)}))
        weighbridge("extract", "--force", path, name, "-o", ours)
        np.save(theirs, array)
        assert ours.read_bytes() == theirs.read_bytes(), name


# Their headers end at each distance from a multiple of 64: a dimension of 1 is three characters, and the last one has up to three digits.
SHAPES_OF_ALL_LENGTHS = [(), (0, 3), (2**40, 0)] + [(2,) + (1,) * ones + (last,) for ones in range(22) for last in (1, 10, 100)]


def saved(array):
    """What numpy.save() writes. ml_dtypes saves float8_e5m2 as "<f1", which numpy.load() refuses: here it is one byte of anything."""
    out = io.BytesIO()
    np.save(out, array.view("V1") if NAME_OF[array.dtype] == "f8_e5m2" else array)
    return out.getvalue()


def safetensors_bytes(arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {"dtype": "C64" if array.dtype == np.complex64 else NAME_OF[array.dtype].upper(), "shape": array.shape, "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize("dtype", NUMPY_OF)
def test_every_header_is_the_one_that_numpy_saves(tmp_path, dtype):
    """Two writers differed: one left out the room for the first dimension, and no padding where NumPy pads 64 bytes."""
    arrays = {f"t{i}": np.zeros(shape, NUMPY_OF[dtype]) for i, shape in enumerate(SHAPES_OF_ALL_LENGTHS)}
    source, archive = tmp_path / "in.safetensors", tmp_path / "out.npz"
    if dtype == "complex128":  # safetensors has none
        source = tmp_path / "in.npz"
        np.savez(source, **arrays)
    else:
        source.write_bytes(safetensors_bytes(arrays))
    done = json.loads(weighbridge("extract", source, "--glob", "*", "--json", "-o", tmp_path / "all"))
    assert len(done["tensors"]) == len(arrays)
    for tensor in done["tensors"]:
        assert pathlib.Path(tensor["output"]).read_bytes() == saved(arrays[tensor["name"]]), tensor["shape"]
    weighbridge("convert", source, archive, "--allow", "dtype")
    with zipfile.ZipFile(archive) as members:
        for name, array in arrays.items():
            assert members.read(name + ".npy") == saved(array), array.shape
