# SPDX-License-Identifier: Apache-2.0
"""Files of NumPy, .npy and .npz: opened as numpy.load opens them, and written so that it opens them."""
import io

import pytest

np = pytest.importorskip("numpy")

import weighbridge as wb  # noqa: E402


@pytest.fixture
def arrays():
    rng = np.random.default_rng(7)
    return {"layers/0/w": rng.standard_normal((3, 4)).astype(np.float32), "fortran": np.asfortranarray(rng.integers(0, 9, (5, 7))),
            "big": np.arange(5, dtype=">i2"), "scalar": np.float64(0.5), "empty": np.zeros((0, 3), np.float16),
            "flags": np.array([True, False]), "complex": np.array([1 + 2j], np.complex64), "\u732b": np.arange(3, dtype=np.uint8)}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_archive_opens_as_numpy_opens_it(arrays, tmp_path, save):
    save(tmp_path / "a.npz", **arrays)
    assert wb.verify(tmp_path / "a.npz").valid
    model = wb.open(tmp_path / "a.npz")
    assert model.format == "npz" and list(model) == list(arrays)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as theirs:
        for name, tensor in model.items():
            found = tensor.numpy()
            assert found.shape == theirs[name].shape and found.dtype == theirs[name].dtype.newbyteorder("=")
            assert np.array_equal(found, theirs[name]), name


def test_an_archive_that_is_saved_opens_in_numpy(arrays, tmp_path):
    wb.save(tmp_path / "a.npz", {name: np.asarray(array) for name, array in arrays.items()})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as theirs:
        assert theirs.files == list(arrays)
        for name, array in arrays.items():
            assert np.array_equal(theirs[name], array) and theirs[name].shape == np.shape(array), name


def test_one_array_is_the_bytes_of_numpy_save(tmp_path):
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    wb.save(tmp_path / "a.npy", {"array": array})
    expected = io.BytesIO()
    np.save(expected, array)
    assert (tmp_path / "a.npy").read_bytes() == expected.getvalue()
    tensor = wb.open(tmp_path / "a.npy")["array"]
    assert tensor.is_view and np.array_equal(tensor.numpy(), np.load(tmp_path / "a.npy"))


def test_objects_are_listed_and_never_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.ones(2, np.float32), o=np.array([{}, None], dtype=object))
    model = wb.open(tmp_path / "a.npz")
    assert np.array_equal(model["w"].numpy(), [1, 1]) and model["o"].shape == (2,)
    with pytest.raises(wb.Error, match="Python objects, stored as a pickle"):
        model["o"].numpy()


def test_texts_are_metadata_and_objects_do_not_stop_all_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.ones(2, np.float32), o=np.array([{}, None], dtype=object), label=np.array(["a", "b"]), long=np.full(99_999, "abc"))
    model = wb.open(tmp_path / "a.npz")
    assert model.metadata["label"] == ["a", "b"] and list(model) == ["w", "o", "long"]
    for copy in (None, True):
        with pytest.warns(UserWarning, match="texts or objects") as said:
            assert list(model.numpy(copy=copy)) == ["w"]
        assert len(said) == 2 and "'o'" in str(said[0].message)
    wb.convert(tmp_path / "a.npz", tmp_path / "a.safetensors")
    assert list(wb.open(tmp_path / "a.safetensors")) == ["w"]


def test_raw_bytes_are_read_as_what_the_caller_says(tmp_path):
    np.save(tmp_path / "a.npy", np.array([0x3F80, 0xC040], np.uint16).view("V2"))
    assert not wb.verify(tmp_path / "a.npy").findings == [] and not wb.verify(tmp_path / "a.npy", read_as="*=bf16").findings
    tensor = wb.open(tmp_path / "a.npy", read_as="array=bf16")["array"]
    assert tensor.dtype == "bf16" and tensor.numpy("f32").tolist() == [1, -3]
    with pytest.raises(wb.UsageError, match="32 bits"):
        wb.open(tmp_path / "a.npy", read_as=["array=f32"])
    assert not wb.doctor(tmp_path / "a.npy") and wb.doctor(tmp_path / "a.npy", read_as="array=bfloat16")
    np.savez(tmp_path / "a.npz", w=np.array([[0x3F80, 0x4000], [0x3F00, 0xC040]], np.uint16, order="F").view("V2"))
    wb.edit(tmp_path / "a.npz", read_as="w=torch.bfloat16", rename={"w": "v"}, output=tmp_path / "b.npz")
    assert wb.open(tmp_path / "b.npz")["v"].numpy("f32").tolist() == [[1, 2], [0.5, -3]]


def test_a_broken_archive_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", w=np.ones(2, np.float32))
    (tmp_path / "a.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-1])
    with pytest.raises(wb.Error, match="npz/end"):
        wb.open(tmp_path / "a.npz")
