# SPDX-License-Identifier: Apache-2.0
"""The interface of safetensors: the same bytes, the same sentences, and every other container."""
import json
import struct

import pytest

np = pytest.importorskip("numpy")

import weighbridge as wb  # noqa: E402
import weighbridge.safetensors as ours  # noqa: E402
import weighbridge.safetensors.numpy as ours_numpy  # noqa: E402


@pytest.fixture
def arrays():
    return {"b": np.arange(50, dtype=np.float64).reshape(10, 5), "a": np.arange(6, dtype=np.int8), "empty": np.zeros((0, 3), np.float16),
            "scalar": np.asarray(True)}


def test_a_file_has_the_bytes_of_the_original(arrays, tmp_path):
    original = pytest.importorskip("safetensors.numpy")
    for metadata in (None, {"format": "np"}, {"é": "ü"}):  # several keys are in random order there
        assert ours_numpy.save(arrays, metadata) == original.save(arrays, metadata)
        ours_numpy.save_file(arrays, tmp_path / "o.safetensors", metadata)
        if metadata is None:
            assert (tmp_path / "o.safetensors").read_bytes() == original.save(arrays, metadata)
        loaded = original.load_file(tmp_path / "o.safetensors")
        assert all(np.array_equal(loaded[name], array) for name, array in arrays.items())


def test_load_gives_writable_arrays_and_changes_no_file(arrays, tmp_path):
    path = tmp_path / "a.safetensors"
    ours_numpy.save_file(arrays, path)
    before = path.read_bytes()
    for loaded in (ours_numpy.load_file(path), ours_numpy.load(before), ours_numpy.load_file(path, backend="pread")):
        assert loaded.keys() == arrays.keys()
        for name, array in arrays.items():
            assert np.array_equal(loaded[name], array) and loaded[name].dtype == array.dtype
        loaded["b"][0, 0] = 77
    assert path.read_bytes() == before


def test_slices_do_not_clamp(arrays, tmp_path):
    path = tmp_path / "a.safetensors"
    ours_numpy.save_file(arrays, path)
    with ours.safe_open(path, framework="np") as f:
        s = f.get_slice("b")
        assert s.get_shape() == [10, 5] and s.get_dtype() == "F64"
        for key in (slice(None), slice(2, 4), (slice(None), 1), (3, slice(1, 3)), (-1,), (..., 0), ()):
            assert np.array_equal(s[key], arrays["b"][key])
        with pytest.raises(ours.SafetensorError, match=r"Error during slicing \[:20\] with shape \[10, 5\]: index 19 out of bounds"):
            s[:20]
        with pytest.raises(ours.SafetensorError, match="Invalid index -6 for dimension 1 of size 5"):
            s[2:, -6]
    with pytest.raises(ours.SafetensorError, match="File is closed"):
        f.keys()


def test_errors_have_the_sentences_of_the_original(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file or directory: nope"):
        ours.safe_open("nope", "np")
    path = tmp_path / "a.safetensors"
    ours_numpy.save_file({"a": np.zeros(3)}, path)
    with ours.safe_open(path, "np") as f, pytest.raises(ours.SafetensorError, match="File does not contain tensor b"):
        f.get_tensor("b")
    with pytest.raises(ours.SafetensorError, match="framework nonsense is invalid"):
        ours.safe_open(path, "nonsense")
    with pytest.raises(ours.SafetensorError, match="Error while deserializing header"):
        ours_numpy.load(struct.pack("<Q", 5) + b"12345")
    with pytest.raises(TypeError):
        ours.serialize({"a": {"dtype": "float32", "shape": [1], "data": b"1234"}})


def test_every_container_opens(arrays, tmp_path):
    wb.save(tmp_path / "a.zt", arrays, {"k": "v"}, encoding="zstd")
    with ours.safe_open(tmp_path / "a.zt", "np") as f:
        assert f.metadata() == {"k": "v"} and f.keys() == sorted(arrays)
        assert all(np.array_equal(f.get_tensor(name), array) for name, array in arrays.items())
        meta = f.get_tensor_meta("b")
        assert meta.dtype == "F64" and meta.shape == [10, 5]


def test_deserialize_gives_the_header(arrays):
    data = ours_numpy.save(arrays)
    header = json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])
    for name, one in ours.deserialize(data):
        assert one["dtype"] == header[name]["dtype"] and one["shape"] == header[name]["shape"] and bytes(one["data"]) == arrays[name].tobytes()
