# SPDX-License-Identifier: Apache-2.0
"""weighbridge.gguf.GGUFReader gives what the package gguf gives: fields, parts, tensors, both byte orders."""
import tracemalloc

import pytest

np = pytest.importorskip("numpy")
gguf = pytest.importorskip("gguf", reason="the package gguf is missing: tools/python-environments.sh makes the environment")

import weighbridge as wb  # noqa: E402
from weighbridge.gguf import GGMLQuantizationType, GGUFReader, GGUFValueType  # noqa: E402


def write(path, endian="little", tokens=20):
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG if endian == "big" else gguf.GGUFEndian.LITTLE)
    for kind, value in (("uint8", 7), ("int8", -7), ("uint16", 700), ("int16", -700), ("uint32", 70000), ("int32", -70000), ("uint64", 2**63),
                        ("int64", -2**62), ("float32", 0.5), ("float64", 0.1), ("bool", True), ("string", "é")):
        getattr(writer, f"add_{kind}")(f"n.{kind}", value)
    writer.add_array("texts", [f"token {i}" for i in range(tokens)])
    writer.add_array("ints", [1, -2, 3])
    writer.add_array("bools", [True, False])
    writer.add_array("floats", [0.5, -1.5])
    rng = np.random.default_rng(3)
    for name, kind in (("a", np.float32), ("b", np.float16), ("c", np.int8), ("d", np.int64), ("e", np.float64)):
        writer.add_tensor(name, rng.integers(-9, 9, (2, 3, 4)).astype(kind))
    if endian == "little":
        for kind in ("Q8_0", "Q4_0", "BF16", "TQ1_0"):
            data = gguf.quants.quantize(rng.standard_normal((3, 512)).astype(np.float32), gguf.GGMLQuantizationType[kind])
            writer.add_tensor(kind, data, raw_dtype=gguf.GGMLQuantizationType[kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.mark.parametrize("endian", ["little", "big"])
def test_fields_and_tensors_are_those_of_the_package(tmp_path, endian):
    path = tmp_path / "a.gguf"
    write(path, endian)
    theirs, ours = gguf.GGUFReader(path), GGUFReader(path)
    assert ours.byte_order == theirs.byte_order and ours.endianess == theirs.endianess
    assert (ours.alignment, ours.data_offset) == (theirs.alignment, theirs.data_offset)
    assert list(ours.fields) == list(theirs.fields)
    for name, expected in theirs.fields.items():
        field = ours.get_field(name)
        assert field.offset == (expected.offset if not name.startswith("GGUF.") else field.offset)
        assert field.types == expected.types and list(field.data) == list(expected.data) and len(field.parts) == len(expected.parts)
        for part, other in zip(field.parts, expected.parts):
            assert part.dtype == other.dtype and part.tolist() == other.tolist(), name
        assert field.contents() == expected.contents()
        if GGUFValueType.ARRAY in field.types:
            assert field.contents(0) == expected.contents(0) and field.contents(slice(1, 3)) == expected.contents(slice(1, 3))
    assert len(ours.tensors) == len(theirs.tensors)
    for tensor, expected in zip(ours.tensors, theirs.tensors):
        assert tensor.name == expected.name and tensor.tensor_type == expected.tensor_type
        assert tensor.tensor_type.name == expected.tensor_type.name
        assert (tensor.n_elements, tensor.n_bytes, tensor.data_offset) == (expected.n_elements, expected.n_bytes, expected.data_offset)
        assert tensor.shape.tolist() == expected.shape.tolist()
        assert tensor.data.dtype == expected.data.dtype and tensor.data.shape == expected.data.shape
        assert tensor.data.tobytes() == expected.data.tobytes()
        assert [part.tolist() for part in tensor.field.parts] == [part.tolist() for part in expected.field.parts]


def test_the_package_decodes_what_is_read_here(tmp_path):
    write(tmp_path / "a.gguf")
    model = wb.open(tmp_path / "a.gguf")
    for tensor in GGUFReader(tmp_path / "a.gguf").tensors:
        if tensor.tensor_type in (GGMLQuantizationType.Q8_0, GGMLQuantizationType.TQ1_0):
            assert np.array_equal(gguf.quants.dequantize(tensor.data, tensor.tensor_type), model[tensor.name].numpy())


def test_a_value_is_changed_in_place(tmp_path):
    path = tmp_path / "a.gguf"
    write(path)
    field = GGUFReader(path, "r+").fields["n.uint32"]
    field.parts[field.data[0]][0] = 5
    assert wb.open(path).metadata["n.uint32"] == 5
    field = GGUFReader(path, "c").fields["n.uint32"]
    field.parts[field.data[0]][0] = 6
    assert wb.open(path).metadata["n.uint32"] == 5


def test_a_broken_file_is_refused(tmp_path):
    path = tmp_path / "a.gguf"
    write(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(wb.Error, match="gguf/truncated"):
        GGUFReader(path)
    path.write_bytes(b"not a model")
    with pytest.raises(wb.Error):
        GGUFReader(path)


def test_a_large_vocabulary_takes_a_number_a_token(tmp_path):
    """The package makes three objects for each token: a vocabulary of 256,000 took it 20 seconds."""
    path = tmp_path / "a.gguf"
    write(path, tokens=256_000)
    tracemalloc.start()
    reader = GGUFReader(path)
    assert reader.fields["texts"].contents(255_999) == "token 255999"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000
