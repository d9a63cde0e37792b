# SPDX-License-Identifier: Apache-2.0
"""Scalars and arrays of NumPy in pickles, which NumPy pickles here: every type, byte order and protocol; as Python 2 pickled them; and as
joblib writes them (data/joblib, made by its make.py)."""
import json
import pickle
import struct
import subprocess

import pytest

from interop_tools import COMMAND, HERE, NUMPY_OF, extracted, inspected, ml_dtypes, np, weighbridge

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
JOBLIB = HERE / "data/joblib"


def attributes(path):
    return json.loads(weighbridge("inspect", "--json", path))["files"][0]["attributes"]


def native(array):
    return array.astype(array.dtype.newbyteorder("="))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_scalars_are_numbers_and_texts(tmp_path, protocol):
    """Once, a float of NumPy was a list of one number, and one of 16 bits was two bytes."""
    values = {name: np.array([1], kind)[0] for name, kind in NUMPY_OF.items()}
    values.update({"f64": np.float64(93.75), "f32": np.float32(1.1), "f16": np.float16(-0.5), "i8": np.int8(-3), "u64": np.uint64(2**64 - 1)})
    big = {f"big {name}": np.array([value], np.dtype(kind).newbyteorder(">"))[0] for name, value, kind in (("f8", 1.5, "f8"), ("i4", -7, "i4"))}
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({**values, **big, "text": np.str_("\u00f6l"), "bytes": np.bytes_(b"csr"), "best": [np.float32(0.5)]}, protocol))
    there = attributes(tmp_path / "a.pkl")
    for name, value in {**values, **big}.items():
        if name.startswith("complex"):
            assert there[name] == [value.real, value.imag], name
        elif value.dtype.kind == "V" or name in ("bf16",) or name.startswith("f8"):
            assert there[name] == float(value), name
        elif name == "f32":
            assert np.float32(there[name]) == value
        else:
            assert there[name] == value.item(), name
    assert (there["text"], there["bytes"]) == ("\u00f6l", "csr") and there["best"] == [0.5]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_are_tensors(tmp_path, protocol):
    arrays = {}
    for name, kind in NUMPY_OF.items():
        array = np.arange(6).astype(kind).reshape(2, 3)
        arrays[name] = array
        arrays[name + " fortran"] = np.asfortranarray(array)
        if kind.itemsize > 1 and name != "bf16":
            arrays[name + " big"] = array.astype(kind.newbyteorder(">"))
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(arrays, protocol))
    there = inspected(tmp_path / "a.pkl")
    for name, array in arrays.items():
        assert NUMPY_OF[there[name]["dtype"]] == array.dtype.newbyteorder("=") and tuple(there[name]["shape"]) == array.shape
        assert extracted(tmp_path / "a.pkl", name, "--raw") == np.ascontiguousarray(native(array)).tobytes(), name


def of_python_2(array, protocol):
    """As Python 2 pickles an array: the bytes are a str. pickle.load(encoding="latin1") of Python 3 shows that it is one."""
    data = native(array).tobytes()
    code, shape = array.dtype.str.lstrip("<|>"), b"".join(b"I%d\n" % size for size in array.shape)
    text = (lambda value: b"S" + repr(value)[1:].encode("ascii") + b"\n") if protocol == 0 else \
        (lambda value: b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + struct.pack("<i", len(value)) + value)
    order = b"|" if array.dtype.itemsize == 1 else b"<"
    out = b"" if protocol < 2 else b"\x80\x02"
    out += b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\nt" + text(b"b") + b"tR(I1\n(" + shape + b"tcnumpy\ndtype\n(" + text(code.encode())
    out += b"I0\nI1\ntR(I3\n" + text(order) + b"NNNI-1\nI-1\nI0\ntbI00\n" + text(data) + b"tb."
    assert np.array_equal(pickle.loads(out, encoding="latin1"), array)
    return out


@pytest.mark.parametrize("protocol", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "u2", "u1", "b1", "c8"])
def test_arrays_of_python_2(tmp_path, protocol, dtype):
    array = np.array([[1.5, -2], [0, 3]]).astype("i8" if dtype in "u1u2b1" else "f8").astype(dtype) if dtype != "u1" else np.arange(256, dtype="u1").reshape(2, 128)
    (tmp_path / "a.pkl").write_bytes(of_python_2(array, protocol))
    assert inspected(tmp_path / "a.pkl")["value"]["shape"] == list(array.shape)
    assert extracted(tmp_path / "a.pkl", "value", "--raw") == array.tobytes()
    weighbridge("verify", tmp_path / "a.pkl")


@pytest.mark.parametrize("file", sorted(path.name for path in JOBLIB.glob("*.joblib")))
def test_arrays_of_joblib(tmp_path, file):
    expected = json.loads((JOBLIB / "expected.json").read_text())[file]
    there = inspected(JOBLIB / file)
    for name, array in expected["arrays"].items():
        assert there[name]["dtype"] == array["dtype"] and there[name]["shape"] == array["shape"], name
        assert extracted(JOBLIB / file, name, "--raw").hex() == array["hex"], name
    assert attributes(JOBLIB / file) == expected["values"]
    done = subprocess.run([COMMAND, "verify", JOBLIB / file], capture_output=True, text=True, timeout=60)
    assert done.returncode == expected["status"], done.stdout
    weighbridge("convert", JOBLIB / file, tmp_path / "a.npz", "--allow", "attribute,alias")
    with np.load(tmp_path / "a.npz") as written:
        assert sorted(written.files) == sorted(expected["arrays"])
