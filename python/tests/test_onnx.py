# SPDX-License-Identifier: Apache-2.0
"""ONNX in Python: tensors as views, integers below a byte, and copies of a model with other tensors."""
import pytest

np = pytest.importorskip("numpy", reason="numpy is missing")

import weighbridge as wb  # noqa: E402


def field(number, content):
    return bytes([number << 3 | 2, len(content)]) + content


def model(*tensors):
    graph = b"".join(field(5, tensor) for tensor in tensors)
    return b"\x08\x0a" + field(7, graph) + field(8, b"\x10\x15")


WEIGHT = b"\x08\x02\x10\x01" + field(8, b"w") + field(9, np.array([1.5, -2], "<f4").tobytes())
NIBBLES = b"\x08\x03\x10\x16" + field(8, b"q") + field(9, b"\x8f\x07")


def test_a_tensor_is_a_view_of_the_file(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(model(WEIGHT))
    with wb.open(path) as opened:
        assert opened.format == "onnx" and opened.metadata["onnx.ir_version"] == "10"
        assert opened["w"].numpy().tolist() == [1.5, -2] and not opened["w"].numpy().flags.writeable


def test_integers_below_a_byte_are_cast(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(model(NIBBLES))
    with wb.open(path) as opened:
        assert opened["q"].dtype == "i4" and opened["q"].numpy(dtype="i8").tolist() == [-1, -8, 7]
        with pytest.raises(wb.UsageError, match=r"integers of 4 bits: Tensor.numpy\('i8'\) casts"):
            opened["q"].numpy()


def test_a_copy_with_other_tensors(tmp_path):
    path, out = tmp_path / "m.onnx", tmp_path / "new.onnx"
    path.write_bytes(model(WEIGHT))
    wb.save(out, {"w": np.array([7, 8], "f4")}, into=path)
    with wb.open(out) as opened:
        assert opened["w"].numpy().tolist() == [7, 8]
    assert out.read_bytes()[:-12] == path.read_bytes()[:-12]
