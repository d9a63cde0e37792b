# SPDX-License-Identifier: Apache-2.0
"""Round trips of arrays of any dtype, shape and stride through each container, by hypothesis."""
import io

import pytest

import weighbridge as wb

np = pytest.importorskip("numpy", reason="needs numpy")
hypothesis = pytest.importorskip("hypothesis", reason="needs hypothesis")
from hypothesis import HealthCheck, given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402

import weighbridge.safetensors.numpy as drop_in  # noqa: E402

PLAIN = ["?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", ">i4", ">f4", ">f8", ">u2"]
try:
    import ml_dtypes
    SPECIAL = [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2]
except ImportError:
    SPECIAL = []
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def arrays(draw):
    """An array of any dtype, of 0 to 4 dimensions, and often not contiguous: transposed, reversed, strided, broadcast."""
    dtype = np.dtype(draw(st.sampled_from(PLAIN + SPECIAL)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    size = int(np.prod(shape))
    bits = draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
    array = np.frombuffer(bytes(b & 1 for b in bits) if dtype.kind == "b" else bits, dtype).reshape(shape)
    if draw(st.booleans()):
        array = array.transpose(draw(st.permutations(range(array.ndim))))
    if draw(st.booleans()):
        array = array[tuple(slice(None, None, draw(st.sampled_from([1, 2, -1, -2]))) for _ in array.shape)]
    if draw(st.integers(0, 4)) == 0:
        array = np.broadcast_to(array, (2, *array.shape))
    return array


def same(found, array):
    array = array.astype(array.dtype.newbyteorder("="))
    assert found.dtype == array.dtype and found.shape == array.shape
    assert found.tobytes() == array.tobytes()  # of NaNs too


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).filter(lambda name: name != "__metadata__")


@pytest.mark.parametrize("extension", ["zt", "safetensors"])
@given(tensors=st.dictionaries(names, arrays(), max_size=4))
@QUIET
def test_what_is_saved_is_what_is_opened(tmp_path, extension, tensors):
    path = tmp_path / f"a.{extension}"
    wb.save(path, tensors, overwrite=True)
    assert wb.verify(path).valid
    with wb.open(path) as m:
        assert set(m) == set(tensors)
        for name, array in tensors.items():
            same(m[name].numpy(), array)
            same(m[name].numpy(copy=True), array)
    with wb.open(io.BytesIO(path.read_bytes())) as m:
        for name, array in tensors.items():
            same(m[name].numpy(), array)
    if extension == "safetensors":
        for name, array in drop_in.load_file(path).items():
            same(array, tensors[name])


@given(array=arrays(), data=st.data())
@QUIET
def test_an_index_gives_what_numpy_gives(tmp_path, array, data):
    hypothesis.assume(array.ndim)
    index = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True))
    for encoding in (None, "zstd"):
        path = tmp_path / f"{encoding}.zt"
        wb.save(path, {"w": array}, encoding=encoding, overwrite=True)
        expected = array.astype(array.dtype.newbyteorder("="))[index]
        found = wb.open(path)["w"][index]
        assert np.shape(found) == np.shape(expected) and np.asarray(found).tobytes() == np.asarray(expected).tobytes()


values = st.none() | st.booleans() | st.integers(-2**63, 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=8) | st.binary(max_size=8)


@given(metadata=st.dictionaries(st.text(min_size=1, max_size=8), values, max_size=4))
@QUIET
def test_metadata_comes_back(tmp_path, metadata):
    path = tmp_path / "a.zt"
    wb.save(path, {"w": np.zeros(1, "f4")}, metadata, overwrite=True)
    assert wb.open(path).metadata == metadata
