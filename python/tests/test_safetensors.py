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
    with pytest.raises(ours.SafetensorError, match="Error while deserializing: invalid JSON in header"):
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


HEADER = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}  '


@pytest.mark.parametrize("text,data", [
    ("header too small", b""), ("header too small", b"\x10\0"), ("header too large", b"\xff" * 16), ("invalid JSON in header", b"\x02\0\0\0\0\0\0\0[]"),
    ("incomplete metadata, file not fully covered", len(HEADER).to_bytes(8, "little") + HEADER + bytes(4)),
    ("incomplete metadata, file not fully covered", len(HEADER).to_bytes(8, "little") + HEADER + bytes(9)),
    ("invalid offset for tensor", len(HEADER).to_bytes(8, "little") + HEADER.replace(b"0,8", b"8,0") + bytes(8)),
    ("invalid shape, data type, or offset for tensor", len(HEADER).to_bytes(8, "little") + HEADER.replace(b"[2]", b"[3]") + bytes(8)),
    ("invalid UTF-8 in header", len(HEADER).to_bytes(8, "little") + HEADER.replace(b'"a"', b'"\xff"') + bytes(8)),
    ("invalid JSON in header", len(HEADER).to_bytes(8, "little") + HEADER.replace(b"F32", b"F99") + bytes(8)),
])
def test_errors_begin_as_those_of_the_original(text, data, tmp_path):
    (tmp_path / "a.safetensors").write_bytes(data)
    for job in (lambda: ours_numpy.load(data), lambda: ours_numpy.load_file(tmp_path / "a.safetensors"), lambda: ours.deserialize(data)):
        with pytest.raises(ours.SafetensorError, match=text):
            job()
    original = pytest.importorskip("safetensors.numpy", reason="needs safetensors")
    with pytest.raises(Exception, match=text):
        original.load(data)


def test_what_takes_bytes_opens_no_file(tmp_path, arrays):
    ours_numpy.save_file(arrays, tmp_path / "a.safetensors")
    for wrong in (str(tmp_path / "a.safetensors"), tmp_path / "a.safetensors", 5, None):
        with pytest.raises(TypeError, match="is not an instance of 'bytes'"):
            ours_numpy.load(wrong)
        with pytest.raises(TypeError, match="is not an instance of 'bytes'"):
            ours.deserialize(wrong)


@pytest.mark.parametrize("metadata,error", [({"k": 1}, TypeError), ({1: "k"}, TypeError), ([("k", "v")], TypeError), ({"\ud800": "k"}, UnicodeEncodeError)])
def test_metadata_are_texts(tmp_path, arrays, metadata, error):
    for job in (lambda: ours_numpy.save(arrays, metadata), lambda: ours_numpy.save_file(arrays, tmp_path / "a.safetensors", metadata)):
        with pytest.raises(error):
            job()
    with pytest.raises(TypeError):
        ours_numpy.save({1: np.zeros(1)})
    with pytest.raises(ours.SafetensorError, match='Unknown dtype "complex128"'):
        ours_numpy.save({"a": np.zeros(1, np.complex128)})


def test_the_version_is_of_the_interface():
    """huggingface_hub compares it: with weighbridge's own 0.1.0 it took another way to a device."""
    assert tuple(map(int, ours.__version__.split("."))) >= (0, 8, 0)


def test_slices_have_steps(arrays, tmp_path):
    path = tmp_path / "a.safetensors"
    ours_numpy.save_file(arrays, path)
    for backend in ("mmap", "pread"):
        with ours.safe_open(path, "np", backend=backend) as f:
            s = f.get_slice("b")
            for key in (slice(0, 10, 2), (slice(1, 8, 3), slice(0, 5, 2)), (0, ...), slice(4, 2), np.int64(2)):
                assert np.array_equal(s[key], arrays["b"][key])
            for key, text in (((..., ...), "Only one ellipsis"), (slice(0, 9, -1), "Slice step must be a positive integer, got -1"),
                              ((0, 0, 0), r"slicing \[0, 0, 0\] with shape \[10, 5\]: more slicing indexes than dimensions in tensor"),
                              (None, "Unsupported slice index at position 0: expected slice, int, or ellipsis"),
                              ((slice(None), 1.5), "Unsupported slice index at position 1"), ([1], "Non empty lists are not implemented"),
                              ((slice(0, 2), slice(0, 9, 2)), r"slicing \[0:2, 0:9:2\] .* index 8 out of bounds for tensor dimension #1 of size 5")):
                with pytest.raises(ours.SafetensorError, match=text):
                    s[key]


def test_arguments_are_refused_as_by_the_original(arrays, tmp_path):
    path = tmp_path / "a.safetensors"
    ours_numpy.save_file(arrays, path)
    for device in ("cuda", "cuda:1", "mps:0", 3, "cpu", None):
        ours.safe_open(path, "pt", device=device)
    for device in ("gpu", "cuda:x", "cuda:", "mps:1", -1, 1.5, "cpu:0"):
        with pytest.raises(ours.SafetensorError, match=f"device {device} is invalid"):
            ours.safe_open(path, "pt", device=device)
    with pytest.raises(ours.SafetensorError, match="Device cuda:0 is not supported for framework numpy"):
        ours.safe_open(path, "np", device="cuda")
    with pytest.raises(ours.SafetensorError, match='backend "nope" is invalid'):
        ours.safe_open(path, "np", backend="nope")
    with pytest.raises(TypeError, match="argument 'framework'"):
        ours.safe_open(path, 3)


def test_a_plan_of_prefetch_is_checked_before_a_device_is_used(arrays, tmp_path):
    path = tmp_path / "a.safetensors"
    ours_numpy.save_file(arrays, path)
    with ours.safe_open(path, "pt") as f:
        with pytest.raises(ours.SafetensorError, match="prefetch loads to cuda devices, not cpu"):
            f.prefetch()
        for plan, text in (({"nope": None}, "does not contain tensor nope"), ({3: None}, "keys must be tensor names"), ({}, "selects no tensors"),
                           ({"b": 3}, "values must be None or a slice"), ({"scalar": slice(0, 1)}, "cannot slice rows of the 0-d tensor"),
                           ({"b": slice(0, 4, 2)}, "must have step 1, got 2"), ({"b": slice(0, 4, 0)}, "invalid prefetch plan slice for b"),
                           ({"b": slice(0, 11)}, "stop 11 for b is out of range for 10 rows"), ({"b": slice("x")}, "must be integers or None")):
            with pytest.raises(ours.SafetensorError, match=text):
                f.prefetch(plan, device=0)
    with ours.safe_open(path, "np") as f, pytest.raises(ours.SafetensorError, match='only compatible with framework="pt"'):
        f.prefetch()
