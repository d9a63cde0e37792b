# SPDX-License-Identifier: Apache-2.0
"""What changed between two models, with NumPy as the witness of the numbers."""
import array
import math

import pytest

import weighbridge as wb


def floats(*values):
    return array.array("f", values)


def test_equal_models_have_nothing_to_tell(tmp_path):
    wb.save(tmp_path / "a.zt", {"w": floats(1, 2, 3)})
    wb.save(tmp_path / "b.safetensors", {"w": floats(1, 2, 3)})
    found = wb.diff(tmp_path / "a.zt", tmp_path / "b.safetensors")
    assert found.equal and found.tensors == [] and (found.compared, found.same, found.different) == (1, 1, 0)


def test_what_changed_and_by_how_much():
    found = wb.diff({"w": floats(1, 2, 0, -4), "gone": floats(1)}, {"w": floats(1, 2.5, 0.25, -4), "new": floats(1, 2)})
    assert not found.equal and found.different == 3
    assert [(tensor.name, tensor.verdict) for tensor in found.tensors] == [("w", "different"), ("gone", "only-a"), ("new", "only-b")]
    tensor = found.tensors[0]
    assert tensor.changes == ["changed"] and tensor.by == "name" and tensor.a == wb.TensorInfo("w", "f32", [4])
    values = tensor.values
    assert (values.changed, values.max_abs, values.max_relative, values.first, values.largest) == (2, 0.5, 0.25, 1, 1)
    assert values.rms == pytest.approx(math.sqrt(0.3125 / 4), rel=1e-14)


def test_options():
    a, b = {"m.w": floats(1, 2)}, {"w": floats(1, 2.5)}
    assert wb.diff(a, b).tensors[0].by == "guess"
    assert wb.diff(a, b, match="names").compared == 0
    assert wb.diff(a, b, rename={"m.w": "w"}).tensors[0].changes == ["changed"]
    assert wb.diff(a, b, rename="s/^m\\.//", atol=0.5).equal
    # Names of a mapping are names, whatever is in them.
    assert wb.diff({"a=b": a["m.w"]}, {"c": a["m.w"]}, rename={"a=b": "c"}, match="names").equal
    assert wb.diff({"s/a/b": a["m.w"]}, {"c/": a["m.w"]}, rename={"s/a/b": "c/"}, match="names").equal
    assert not wb.diff(a, b, rename="s/^m\\.//", rtol=0.1).equal
    assert wb.diff({"w": floats(0)}, {"w": floats(-0.0)}).equal and not wb.diff({"w": floats(0)}, {"w": floats(-0.0)}, exact=True).equal
    assert wb.diff({"w": floats(1), "x": floats(1)}, {"w": floats(1), "x": floats(2)}, without="x").equal
    same = wb.diff({"w": floats(1, 2)}, {"v": floats(1, 2)}).tensors[0]
    assert same.by == "content" and same.changes == ["renamed"] and same.values.snr == math.inf
    for wrong in (dict(match="luck"), dict(atol=-1.0), dict(atol=1.0, exact=True), dict(only="nothing"), dict(naming="french")):
        with pytest.raises((wb.UsageError, ValueError)):
            wb.diff(a, b, **wrong)


def test_metadata_is_compared(tmp_path):
    for name, value in (("a", "x"), ("b", "y")):
        wb.save(tmp_path / f"{name}.safetensors", {"w": floats(1)}, {"k": value})
    found = wb.diff(tmp_path / "a.safetensors", tmp_path / "b.safetensors")
    assert found.metadata == [wb.MetadataDiff("k", "x", "y")] and not found.equal
    assert wb.diff(tmp_path / "a.safetensors", tmp_path / "b.safetensors", metadata=False).equal


@pytest.mark.parametrize("dtype, other", [("f4", "f4"), ("f8", "f8"), ("f4", "f8"), ("f2", "f4"), ("i4", "i4"), ("i8", "f8"), ("u1", "i2"), ("c8", "c8")])
def test_numbers_are_those_of_numpy(dtype, other):
    np = pytest.importorskip("numpy")
    draw = np.random.default_rng(len(dtype + other))
    a = (100 * draw.standard_normal((37, 91))).clip(0, 250).astype(dtype)
    b = (a.astype("f8") + draw.integers(0, 2, a.shape) * draw.integers(1, 4, a.shape)).astype(other) if dtype != "c8" else a + (1 + 2j) * draw.integers(0, 2, a.shape).astype("c8")
    values = wb.diff({"w": a}, {"w": b}).tensors[0].values
    if dtype == "c8":
        a, b = a.view("f4"), b.view("f4")
    x, y = a.astype("f8").ravel(), b.astype("f8").ravel()
    d = y - x
    assert values.elements == x.size and values.changed == np.count_nonzero(d)
    assert values.max_abs == np.abs(d).max() and values.largest == np.abs(d).argmax() // (2 if dtype == "c8" else 1)
    assert values.first == np.flatnonzero(d)[0] // (2 if dtype == "c8" else 1)
    assert values.rms == pytest.approx(np.sqrt(np.mean(d * d)), rel=1e-12)
    assert values.relative_rms == pytest.approx(np.linalg.norm(d) / np.linalg.norm(x), rel=1e-12)
    assert values.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-12)
    assert values.snr == pytest.approx(10 * np.log10(x @ x / (d @ d)), rel=1e-12)
    there = x != 0
    assert values.max_relative == pytest.approx((np.abs(d[there]) / np.abs(x[there])).max(), rel=1e-12)


@pytest.mark.parametrize("atol, rtol", [(0, 1e-2), (1e-2, 0), (1e-3, 1e-3), (0.5, 0.5)])
def test_a_tolerance_is_that_of_numpy_allclose(atol, rtol):
    np = pytest.importorskip("numpy")
    draw = np.random.default_rng(1)
    a = draw.standard_normal(5000)
    b = a + 1e-2 * draw.standard_normal(5000)
    a[7] = b[7] = np.nan
    a[8] = b[8] = np.inf
    found = wb.diff({"w": a}, {"w": b}, atol=atol, rtol=rtol)
    assert found.equal == np.allclose(a, b, atol=atol, rtol=rtol, equal_nan=True)
    assert found.tensors[0].values.beyond == np.count_nonzero(~np.isclose(a, b, atol=atol, rtol=rtol, equal_nan=True))
