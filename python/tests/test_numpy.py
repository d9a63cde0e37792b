# SPDX-License-Identifier: Apache-2.0
"""Elements as NumPy arrays: every dtype, views and copies, slices, casts, DLPack."""
import gc
import os
import pathlib
import weakref

import pytest

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

import weighbridge as wb  # noqa: E402

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64", "complex64",
          "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]


def numbers(dtype, shape):
    count = int(np.prod(shape))
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    raw = np.random.default_rng(5).integers(0, 2 if dtype == bool else 100, count * dtype.itemsize, np.uint8)
    return raw.view(dtype).reshape(shape) if dtype != bool else raw.astype(bool).reshape(shape)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4), (5, 0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_through_a_file(tmp_path, dtype, shape):
    array = numbers(dtype, shape)
    path = tmp_path / ("a.safetensors" if dtype == "float8_e8m0fnu" else "a.zt")  # which zTensor lacks
    wb.save(path, {"w": array})
    tensor = wb.open(path)["w"]
    found = tensor.numpy()
    assert found.dtype == array.dtype and found.shape == array.shape == tensor.shape and found.tobytes() == array.tobytes()
    assert tensor.numpy(copy=True).tobytes() == array.tobytes()


def test_views_are_read_only_and_keep_the_file(tmp_path):
    wb.save(tmp_path / "a.safetensors", {"w": np.arange(1000, dtype=np.float32)})
    m = wb.open(tmp_path / "a.safetensors")
    view = m["w"].numpy()
    assert m["w"].is_view and not view.flags.writeable and not view.flags.owndata
    with pytest.raises(ValueError):
        view[0] = 1
    copy = m["w"].numpy(copy=True)
    copy[0] = 7
    m.close()
    (tmp_path / "a.safetensors").unlink()
    gc.collect()
    assert view[0] == 0 and view[999] == 999


def test_copy_false_says_why_there_is_no_view(tmp_path):
    wb.save(tmp_path / "a.zt", {"w": np.arange(1000, dtype=np.float32)}, encoding="zstd")
    tensor = wb.open(tmp_path / "a.zt")["w"]
    assert tensor.numpy()[999] == 999 and not tensor.is_view
    with pytest.raises(ValueError, match="without a copy"):
        tensor.numpy(copy=False)
    with pytest.raises(ValueError, match="cast"):
        tensor.numpy("f16", copy=False)


KEYS = [0, -1, slice(None), slice(2, 5), slice(None, None, 2), slice(None, None, -1), slice(5, 1, -2), slice(3, 3), slice(-4, None),
        (slice(1, 3), 2), (0, slice(None, None, 3)), (Ellipsis, 1), ..., (slice(None), [0, 2]), [1, 3], (-2, -1), slice(100, 200), (), None]


@pytest.mark.parametrize("encoding", ["raw", "zstd"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_slices_are_numpys(tmp_path, encoding, key):
    array = np.arange(60, dtype=np.int32).reshape(6, 10)
    wb.save(tmp_path / "a.zt", {"w": array}, encoding=encoding)
    found = wb.open(tmp_path / "a.zt")["w"][key]
    assert np.array_equal(found, array[key]) and np.shape(found) == np.shape(array[key])


@pytest.mark.parametrize("key", [6, -7, (0, 10), (0, 0, 0), "x", 1.5])
def test_wrong_slices_are_refused_as_numpy_refuses_them(tmp_path, key):
    wb.save(tmp_path / "a.zt", {"w": np.zeros((6, 10), np.int32)}, encoding="zstd")
    with pytest.raises(IndexError):
        wb.open(tmp_path / "a.zt")["w"][key]


def test_the_dtype_of_numpy_is_known_before_reading(tmp_path):
    wb.save(tmp_path / "a.safetensors", {"f": np.zeros(3, np.float16), "i": np.zeros(2, np.int64)})
    with wb.open(tmp_path / "a.safetensors") as model:
        assert {name: tensor.numpy_dtype for name, tensor in model.items()} == {"f": np.float16, "i": np.int64}
        assert model["f"].numpy_dtype == model["f"].numpy().dtype == model["f"][:1].dtype


def test_casts_round_to_nearest(tmp_path):
    array = np.random.default_rng(1).normal(size=(7, 9)).astype(np.float32)
    wb.save(tmp_path / "a.zt", {"w": array})
    tensor = wb.open(tmp_path / "a.zt")["w"]
    for dtype in ("float16", "float64", ml_dtypes.bfloat16, np.float16, "f16"):
        found = tensor.numpy(dtype)
        want = array.astype(np.float16 if dtype == "f16" else dtype)
        assert found.dtype == want.dtype and found.tobytes() == want.tobytes()
    assert np.asarray(tensor).dtype == np.float32 and np.array_equal(np.asarray(tensor, np.float64), array.astype(np.float64))
    with pytest.raises(wb.UsageError):
        tensor.numpy("no such dtype")


def test_dlpack_gives_the_same_memory(tmp_path):
    wb.save(tmp_path / "a.zt", {"w": np.arange(12, dtype=np.float32).reshape(3, 4)})
    tensor = wb.open(tmp_path / "a.zt")["w"]
    assert tensor.__dlpack_device__() == (1, 0)
    assert np.array_equal(np.from_dlpack(tensor), tensor.numpy())


@pytest.mark.parametrize("array", [np.arange(24).reshape(2, 3, 4)[:, ::2], np.arange(6, dtype=">i4"), np.asfortranarray(np.eye(3)), np.float32(3)])
def test_strided_and_foreign_arrays_are_saved_as_their_values(tmp_path, array):
    wb.save(tmp_path / "a.zt", {"w": array})
    assert np.array_equal(wb.open(tmp_path / "a.zt")["w"].numpy(), array)


def test_what_cannot_be_saved_is_named(tmp_path):
    for bad in (np.array(["a", "b"]), np.array([object()]), np.zeros(3, "M8[s]"), np.zeros(2, [("a", "i4")])):
        with pytest.raises(wb.UsageError, match="'w'"):
            wb.save(tmp_path / "a.zt", {"w": bad})


def test_all_arrays_at_once(tmp_path):
    arrays = {f"w{i}": numbers(dtype, (3, i)) for i, dtype in enumerate(DTYPES)}
    wb.save(tmp_path / "a.safetensors", arrays)
    found = wb.open(tmp_path / "a.safetensors").numpy()
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype and found[name].tobytes() == array.tobytes()


def test_arrays_die_with_their_last_user(tmp_path):
    wb.save(tmp_path / "a.zt", {"w": np.arange(12, dtype=np.float32)})
    view = wb.open(tmp_path / "a.zt")["w"].numpy()
    gone = weakref.ref(view)
    del view
    gc.collect()
    assert gone() is None


def test_copies_of_a_whole_model_are_read_by_all_threads(tmp_path):
    arrays = {"large": np.arange(3_000_000, dtype=np.float32).reshape(3, -1), "empty": np.zeros((0, 4), np.int16), "scalar": np.array(7, np.uint8),
              "yes": np.array([True, False]), **{f"small{i}": np.full(i, i, np.float64) for i in range(50)}}
    for encoding in (None, "zstd"):
        path = tmp_path / f"{encoding}.zt"
        wb.save(path, arrays, encoding=encoding)
        told = []
        with wb.open(path) as m:
            copies = m.numpy(copy=True, progress=lambda done, total: told.append((done, total)))
            views = m.numpy()
        assert told[-1][0] == told[-1][1] == sum(array.nbytes for array in arrays.values())
        for name, array in arrays.items():
            assert copies[name].dtype == array.dtype and copies[name].flags.writeable and np.array_equal(copies[name], array)
            assert not np.shares_memory(copies[name], views[name]) or not array.size
            copies[name][...] = 0
        assert np.array_equal(wb.open(path)["large"].numpy(), arrays["large"])
    with pytest.raises(ZeroDivisionError):
        wb.open(path).numpy(copy=True, progress=lambda done, total: 1 // 0)


def test_a_dtype_that_nobody_knows_is_unsupported_and_nothing_else(tmp_path):
    header = b'{"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}}'
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(9))
    with wb.open(path) as m:
        assert m["b"].numpy() == 0 and m["a"].unsupported.rule == "safetensors/unknown-dtype" and "F99" in repr(m["a"])
        for job in (lambda: m["a"].numpy(), lambda: m["a"][0], lambda: m["a"].tobytes(), lambda: m["a"].numpy("f32"), lambda: m["a"].numpy(copy=True),
                    lambda: m.numpy(), lambda: m.numpy(copy=True)):
            with pytest.raises(wb.UnsupportedError, match="'a'.*dtype") as caught:
                job()
            assert isinstance(caught.value, NotImplementedError)


def test_arrays_and_masks_index_compressed_tensors_too(tmp_path):
    array = np.arange(12).reshape(4, 3)
    for encoding in (None, "zstd"):
        wb.save(tmp_path / f"{encoding}.zt", {"w": array}, encoding=encoding)
        t = wb.open(tmp_path / f"{encoding}.zt")["w"]
        for index in (np.array([0, 2]), array[:, 0] > 3, [1, 1], np.int64(2), np.array(3)):
            assert np.array_equal(t[index], array[index])


def test_what_has_no_dtype_of_numpy_is_refused_in_every_way(tmp_path):
    header = b'{"w":{"dtype":"F4","shape":[4,4],"data_offsets":[0,8]}}'
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(range(8)))
    with wb.open(path) as m:
        for job in (lambda: m["w"].numpy(), lambda: m["w"][0], lambda: m.numpy(), lambda: m.numpy(copy=True), lambda: np.from_dlpack(m["w"])):
            with pytest.raises(wb.UsageError, match=r"f4.*numpy\('f32'\)"):
                job()
        assert m["w"].numpy("f32").shape == (4, 4)


def test_masked_arrays_are_refused(tmp_path):
    with pytest.raises(wb.UsageError, match="filled"):
        wb.save(tmp_path / "a.zt", {"w": np.ma.array([1.0, 2.0], mask=[True, False])})


def test_dtypes_by_any_name(tmp_path):
    wb.save(tmp_path / "a.zt", {"w": np.arange(3, dtype=np.float64)})
    t = wb.open(tmp_path / "a.zt")["w"]
    for name in ("f32", "F32", "float32", "<f4", "f4", "single", np.float32, np.dtype("f4"), "torch.float32"):
        if name != "f4":  # ours: four bits
            assert t.numpy(name).dtype == np.float32, name
    assert t.numpy("half").dtype == np.float16 and t.numpy(float).dtype == np.float64 and t.numpy("bfloat16").dtype.name == "bfloat16"


def test_files_of_keras_are_arrays():
    root = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2]))
    folder = root / "tests/interop/data/keras"
    with wb.open(folder / "small.keras") as m, wb.open(folder / "legacy.h5") as older:
        assert m.format == "keras" and older.format == "hdf5"
        kernel = m["layers/dense/vars/0"].numpy()
        assert np.array_equal(kernel, np.arange(12, dtype=np.float32).reshape(4, 3)) and m["layers/dense/vars/0"].is_view
        assert np.array_equal(older["model_weights/first/small/first/kernel"].numpy(), kernel)
        assert m.metadata["layers/dense/vars@name"] == "first"


def test_copies_of_small_tensors_share_at_most_32_mib(tmp_path):
    wb.save(tmp_path / "many.safetensors", {f"t{i}": np.full(1 << 18, i, np.float32) for i in range(40)})
    copies = wb.open(tmp_path / "many.safetensors").numpy(copy=True)
    runs, end = [], 0  # bytes of arrays one after the other
    for begin, size in sorted((array.ctypes.data, array.nbytes) for array in copies.values()):
        runs = [*runs[:-1], runs[-1] + size] if begin == end else [*runs, size]
        end = begin + size
    assert 1 < len(runs) < 40 and max(runs) <= 32 << 20
