# SPDX-License-Identifier: Apache-2.0
"""Tests that NumPy loads the .npy files of `extract` with equal values."""
import json

import pytest

from interop_tools import NAME_OF, ZT_NAMES, np, one_of_each, weighbridge, zt_bytes


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
