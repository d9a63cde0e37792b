# SPDX-License-Identifier: Apache-2.0
"""ONNX against the package onnx: all files in its wheel, every data type in every field that can hold it, external data, sparse
initializers, subgraphs and functions that it writes, and copies with other tensors that it loads, checks and runs."""
import hashlib
import json
import os
import pathlib
import subprocess

import pytest

from interop_tools import COMMAND, np, weighbridge

onnx = pytest.importorskip("onnx", reason="onnx is missing: tools/python-environments.sh makes the environment")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment")

DATA = pathlib.Path(onnx.__file__).parent / "backend/test/data"
OURS = {
    TensorProto.FLOAT: "f32", TensorProto.UINT8: "u8", TensorProto.INT8: "i8", TensorProto.UINT16: "u16", TensorProto.INT16: "i16",
    TensorProto.INT32: "i32", TensorProto.INT64: "i64", TensorProto.BOOL: "bool", TensorProto.FLOAT16: "f16", TensorProto.DOUBLE: "f64",
    TensorProto.UINT32: "u32", TensorProto.UINT64: "u64", TensorProto.COMPLEX64: "complex64", TensorProto.COMPLEX128: "complex128",
    TensorProto.BFLOAT16: "bf16", TensorProto.FLOAT8E4M3FN: "f8_e4m3", TensorProto.FLOAT8E4M3FNUZ: "f8_e4m3fnuz",
    TensorProto.FLOAT8E5M2: "f8_e5m2", TensorProto.FLOAT8E5M2FNUZ: "f8_e5m2fnuz", TensorProto.FLOAT8E8M0: "f8_e8m0",
    TensorProto.UINT4: "u4", TensorProto.INT4: "i4", TensorProto.UINT2: "u2", TensorProto.INT2: "i2", TensorProto.FLOAT4E2M1: "f4",
    TensorProto.FLOAT6E2M3: "f6_e2m3", TensorProto.FLOAT6E3M2: "f6_e3m2"}
BITS = {"u4": 4, "i4": 4, "f4": 4, "u2": 2, "i2": 2, "f6_e2m3": 6, "f6_e3m2": 6}


def bits_of(array, ours):
    """The bytes of an array, with elements below a byte packed from the lowest bits."""
    if ours not in BITS:
        return np.ascontiguousarray(array).tobytes()
    width = BITS[ours]
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << width) - 1)
    flat = ((codes[:, None] >> np.arange(width)) & 1).astype(np.uint8).reshape(-1)
    return np.packbits(flat, bitorder="little").tobytes()


def tensors_of(graph, prefix=""):
    """name -> TensorProto, as reading O5 names them."""
    for tensor in graph.initializer:
        yield prefix + tensor.name, tensor
    for node in graph.node:
        base = prefix + (next((output for output in node.output if output), None) or node.name or node.op_type)
        for attribute in node.attribute:
            if attribute.HasField("t"):
                constant = node.op_type == "Constant" and attribute.name == "value"
                yield base if constant else f"{base}.{attribute.name}", attribute.t
            if attribute.HasField("g"):
                yield from tensors_of(attribute.g, f"{base}.{attribute.name}/")


def dumped(*paths):
    """path -> what `inspect --json` says, of many files in one run."""
    done = subprocess.run([COMMAND, "inspect", "--json", *map(str, paths)], capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode in (0, 3), done.stderr.decode()[-2000:]
    return dict(zip(paths, json.loads(done.stdout)["files"]))


def bytes_of(path, name):
    return weighbridge("extract", "-o", "-", "--", path, name)


def expect(path, expected, tmp_path):
    """The file has these tensors, by `inspect` and by `extract`."""
    said = json.loads(weighbridge("inspect", "--json", path))["files"][0]["tensors"]
    assert {t["name"] for t in said} == set(expected)
    for tensor in said:
        proto = expected[tensor["name"]]
        array = numpy_helper.to_array(proto)
        assert tensor["dtype"] == OURS[proto.data_type] and tuple(tensor["shape"]) == array.shape, tensor["name"]
        if array.size:
            assert bytes_of(path, tensor["name"]) == bits_of(array, tensor["dtype"]), tensor["name"]


def model_of(initializers=(), nodes=(), sparse=(), functions=()):
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    nodes = list(nodes) or [helper.make_node("Identity", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], list(initializers), sparse_initializer=list(sparse))
    return helper.make_model(graph, functions=list(functions))


def test_all_files_of_the_wheel():
    """Names, types and shapes of every file, in two runs of the command."""
    files = sorted(DATA.rglob("*.onnx")) + sorted(DATA.rglob("*.pb"))
    assert len(files) == 476
    done = subprocess.run([COMMAND, "verify", *map(str, files)], capture_output=True, text=True, timeout=120)
    strings = {path for path in files if path.suffix == ".pb" and TensorProto.FromString(path.read_bytes()).data_type == TensorProto.STRING}
    assert len(strings) == 12 and done.returncode == 3, done.stdout[-2000:] + done.stderr[-2000:]
    said = dumped(*files)
    for path in files:
        if path.suffix == ".onnx":
            expected = dict(tensors_of(onnx.load(path).graph))
        else:
            tensor = TensorProto.FromString(path.read_bytes())
            expected = {tensor.name or "tensor": tensor}
        assert {t["name"] for t in said[path]["tensors"]} == set(expected), path
        for tensor in said[path]["tensors"]:
            proto = expected[tensor["name"]]
            assert tuple(tensor["shape"]) == tuple(proto.dims), (path, tensor["name"])
            if path not in strings:
                assert tensor["dtype"] == OURS[proto.data_type], (path, tensor["name"])


def test_bytes_of_the_wheel(tmp_path):
    """The bytes of all tensors, through one safetensors for each of the larger files."""
    files = [*sorted(DATA.glob("light/*.onnx")), *sorted(DATA.glob("simple/**/*.onnx")), *sorted(DATA.glob("pytorch-operator/*/model.onnx"))[:40]]
    for path in files:
        expected = dict(tensors_of(onnx.load(path).graph))
        out = tmp_path / "out.safetensors"
        weighbridge("convert", path, out, "--force", "--allow", "attribute")
        got = safetensors_numpy.load_file(out)
        assert set(got) == set(expected), path
        for name, proto in expected.items():
            array = numpy_helper.to_array(proto)
            assert got[name].dtype == array.dtype and got[name].shape == array.shape and got[name].tobytes() == array.tobytes(), (path, name)


def sample_of(data_type, shape=(3, 5)):
    dtype = helper.tensor_dtype_to_np_dtype(data_type)
    numbers = np.random.default_rng(data_type).integers(0, 2, shape)
    return numbers.astype(dtype)


def test_every_type_in_raw_data(tmp_path):
    expected = {}
    for data_type, name in OURS.items():
        tensor = numpy_helper.from_array(sample_of(data_type), name)
        assert tensor.HasField("raw_data")
        expected[name] = tensor
    path = tmp_path / "raw.onnx"
    onnx.save(model_of(expected.values()), path)
    weighbridge("verify", path)
    expect(path, expected, tmp_path)


def test_every_type_in_its_typed_field(tmp_path):
    expected = {}
    for data_type, name in OURS.items():
        array = sample_of(data_type)
        try:
            expected[name] = helper.make_tensor(name, data_type, array.shape, array.reshape(-1))
        except (TypeError, ValueError):
            continue    # make_tensor takes no such values
    assert len(expected) >= 15
    path = tmp_path / "typed.onnx"
    onnx.save(model_of(expected.values()), path)
    weighbridge("verify", path)
    expect(path, expected, tmp_path)


def test_external_data(tmp_path):
    arrays = {f"w{i}": np.random.default_rng(i).standard_normal((64, i + 1)).astype("f4") for i in range(5)}
    arrays["b"] = np.arange(7, dtype="i8")
    for one_file in (True, False):
        model = model_of(numpy_helper.from_array(a, n) for n, a in arrays.items())    # save() changes it
        folder = tmp_path / str(one_file)
        folder.mkdir()
        path = folder / "model.onnx"
        onnx.save(model, path, save_as_external_data=True, all_tensors_to_one_file=one_file, location="w.data" if one_file else None, size_threshold=0)
        weighbridge("verify", path)
        expect(path, {n: numpy_helper.from_array(a, n) for n, a in arrays.items()}, tmp_path)


def test_external_data_beyond_4_gib(tmp_path):
    size, offset = 3 << 30, 4096
    tensor = TensorProto(name="w", data_type=TensorProto.UINT8, dims=[size])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "w.data", "offset": offset, "length": size}.items():
        tensor.external_data.add(key=key, value=str(value))
    (tmp_path / "model.onnx").write_bytes(model_of([tensor]).SerializeToString())
    with open(tmp_path / "w.data", "wb") as data:
        data.truncate(offset + size)    # a hole
    said = json.loads(weighbridge("inspect", "--json", tmp_path / "model.onnx"))["files"][0]
    assert said["tensors"][0]["shape"] == [size]


def test_a_checksum_is_verified(tmp_path):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2])
    tensor.data_location = TensorProto.EXTERNAL
    data = np.array([1, 2], "f4").tobytes()
    tensor.external_data.add(key="location", value="w.data")
    tensor.external_data.add(key="checksum", value=hashlib.sha1(data).hexdigest())
    (tmp_path / "model.onnx").write_bytes(model_of([tensor]).SerializeToString())
    (tmp_path / "w.data").write_bytes(data)
    weighbridge("verify", tmp_path / "model.onnx")
    (tmp_path / "w.data").write_bytes(data[::-1])
    assert b"onnx/external-checksum" in weighbridge("verify", tmp_path / "model.onnx", status=1)


def test_links_and_paths_out_of_the_folder_are_refused(tmp_path):
    outside, folder = tmp_path / "outside.bin", tmp_path / "model"
    folder.mkdir()
    outside.write_bytes(bytes(8))
    os.symlink("../outside.bin", folder / "link.bin")
    for location, rule in (("../outside.bin", b"external-path"), (str(outside), b"external-path"), ("link.bin", b"external-link")):
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value=location)
        (folder / "m.onnx").write_bytes(model_of([tensor]).SerializeToString())
        assert rule in weighbridge("verify", folder / "m.onnx", status=1)


@pytest.mark.parametrize("linear", [True, False])
def test_sparse_initializers(tmp_path, linear):
    dense = np.zeros((4, 6), "f4")
    dense[[0, 1, 3], [5, 0, 2]] = [1.5, -2, 7]
    at = np.argwhere(dense)
    indices = np.ravel_multi_index(at.T, dense.shape) if linear else at
    sparse = helper.make_sparse_tensor(numpy_helper.from_array(dense[tuple(at.T)], "s"), numpy_helper.from_array(indices.astype("i8"), "i"), dense.shape)
    path = tmp_path / "sparse.onnx"
    onnx.save(model_of(sparse=[sparse]), path)
    weighbridge("verify", path)
    assert weighbridge("extract", "--dense", "-o", "-", "--", path, "s") == dense.tobytes()
    weighbridge("convert", path, tmp_path / "s.zt")
    assert weighbridge("extract", "--dense", "-o", "-", "--", tmp_path / "s.zt", "s") == dense.tobytes()


def test_subgraphs_and_functions(tmp_path):
    one, two = numpy_helper.from_array(np.array([1, 2], "f4"), "w"), numpy_helper.from_array(np.array([3], "f4"), "w")
    branch = helper.make_graph([helper.make_node("Constant", [], ["c"], value=two)], "b", [], [helper.make_tensor_value_info("c", 1, [1])], [one])
    nodes = [helper.make_node("If", ["x"], ["y"], name="same", then_branch=branch, else_branch=branch)]
    function = helper.make_function("local", "F", [], ["c"], [helper.make_node("Constant", [], ["c"], value_floats=[4.0, 5.0])], [helper.make_opsetid("", 18)])
    path = tmp_path / "nested.onnx"
    path.write_bytes(model_of([one], nodes, functions=[function]).SerializeToString())
    said = {t["name"]: t for t in json.loads(weighbridge("inspect", "--json", path))["files"][0]["tensors"]}
    assert set(said) == {"w", "y.then_branch/w", "y.then_branch/c", "y.else_branch/w", "y.else_branch/c", "local.F/c"}
    assert bytes_of(path, "local.F/c") == np.array([4, 5], "f4").tobytes() and bytes_of(path, "y.then_branch/c") == np.array([3], "f4").tobytes()


def linear_model(typed):
    weight, bias, shape = np.arange(6, dtype="f4").reshape(2, 3), np.array([1, 2, 3], "f4"), np.array([3, 1], "i8")
    if typed:
        tensors = [helper.make_tensor("w", 1, [2, 3], weight.reshape(-1)), helper.make_tensor("b", 1, [3], bias), helper.make_tensor("s", 7, [2], shape)]
    else:
        tensors = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b"), numpy_helper.from_array(shape, "s")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["a"]), helper.make_node("Reshape", ["a", "s"], ["y"])]
    x, y = helper.make_tensor_value_info("x", 1, [1, 2]), helper.make_tensor_value_info("y", 1, [3, 1])
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y], tensors), opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    helper.set_model_props(model, {"author": "a person"})
    return model


@pytest.mark.parametrize("typed", [False, True, "external"])
def test_a_copy_with_other_tensors_runs(tmp_path, typed):
    model, weights, out = tmp_path / "m.onnx", tmp_path / "w.safetensors", tmp_path / "new.onnx"
    if typed == "external":
        onnx.save(linear_model(False), model, save_as_external_data=True, location="m.onnx_data", size_threshold=0)
        assert (tmp_path / "m.onnx_data").stat().st_size >= 52
    else:
        onnx.save(linear_model(typed), model)
    new = {"w": np.full((2, 3), 2, "f4"), "b": np.array([-1, 0, 1], "f4"), "s": np.array([3, 1], "i8")}
    safetensors_numpy.save_file(new, weights)
    weighbridge("convert", weights, out, "--into", model)
    weighbridge("verify", out)
    loaded = onnx.load(out)
    onnx.checker.check_model(loaded, full_check=True)
    for tensor in loaded.graph.initializer:
        assert np.array_equal(numpy_helper.to_array(tensor), new[tensor.name])
    got = ReferenceEvaluator(loaded).run(None, {"x": np.array([[1, 10]], "f4")})[0]
    expected = (np.array([[1, 10]], "f4") @ new["w"] + new["b"]).reshape(3, 1)
    assert np.array_equal(got, expected)
    # Nothing else changed: the original tensors put back give the original model.
    weighbridge("convert", model, tmp_path / "old.safetensors")
    weighbridge("convert", tmp_path / "old.safetensors", tmp_path / "back.onnx", "--into", out)
    assert onnx.load(tmp_path / "back.onnx").graph.node == onnx.load(model).graph.node
    if not typed:
        assert (tmp_path / "back.onnx").read_bytes() == model.read_bytes()


def test_a_partial_copy_keeps_the_rest(tmp_path):
    model, weights, out = tmp_path / "m.onnx", tmp_path / "w.safetensors", tmp_path / "new.onnx"
    onnx.save(linear_model(False), model)
    safetensors_numpy.save_file({"b": np.array([9, 9, 9], "f4")}, weights)
    said = weighbridge("convert", weights, out, "--into", model).decode()
    assert "2 that only the ONNX model has: w, s" in said
    loaded = {t.name: numpy_helper.to_array(t) for t in onnx.load(out).graph.initializer}
    assert np.array_equal(loaded["b"], [9, 9, 9]) and np.array_equal(loaded["w"], np.arange(6, dtype="f4").reshape(2, 3))


def test_a_copy_of_a_model_with_external_data_is_one_file(tmp_path):
    """Kept and replaced tensors come inside; elsewhere the copy opens alone, and is what the package makes of the same model."""
    folder, weights, out = tmp_path / "model", tmp_path / "w.safetensors", tmp_path / "new.onnx"
    folder.mkdir()
    whole = linear_model(False)
    onnx.save(whole, folder / "m.onnx", save_as_external_data=True, all_tensors_to_one_file=False, size_threshold=0)
    safetensors_numpy.save_file({"b": np.array([9, 9, 9], "f4")}, weights)
    said = weighbridge("convert", weights, out, "--into", folder / "m.onnx").decode()
    assert "3 that the ONNX model has in external files -> inside the copy" in said
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".safetensors"].count("new.onnx") == 1
    loaded, inside = onnx.load(out, load_external_data=False), linear_model(False)
    inside.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.array([9, 9, 9], "f4"), "b"))
    assert not any(tensor.external_data or tensor.data_location for tensor in loaded.graph.initializer)
    assert loaded == inside
    onnx.checker.check_model(loaded, full_check=True)


def test_the_model_to_copy_is_read_with_the_limits_of_the_conversion(tmp_path):
    model, weights, out = tmp_path / "m.onnx", tmp_path / "w.safetensors", tmp_path / "new.onnx"
    large = linear_model(False)
    onnx.helper.set_model_props(large, {"notes": "x" * 5000})
    onnx.save(large, model)
    safetensors_numpy.save_file({"w": np.zeros((2, 3), "f4")}, weights)
    failed = subprocess.run([COMMAND, "convert", weights, out, "--into", model, "--limit", "header=1000"], capture_output=True, text=True)
    assert failed.returncode != 0 and "m.onnx" in failed.stderr and "header" in failed.stderr and not out.exists()
    weighbridge("convert", weights, out, "--into", model, "--limit", "header=1MB")


def test_copies_that_do_not_fit_are_refused(tmp_path):
    model, weights, out = tmp_path / "m.onnx", tmp_path / "w.safetensors", tmp_path / "new.onnx"
    onnx.save(linear_model(False), model)
    for tensors, words in (({"w": np.zeros((3, 2), "f4")}, "the ONNX model has [2, 3]"), ({"w": np.zeros((2, 3), "f2")}, "the ONNX model has f32"),
                           ({"v": np.zeros((2, 3), "f4")}, "no tensor of this name")):
        safetensors_numpy.save_file(tensors, weights)
        failed = subprocess.run([COMMAND, "convert", weights, out, "--into", model], capture_output=True, text=True)
        assert failed.returncode == 1 and words in failed.stdout + failed.stderr and not out.exists()
    failed = subprocess.run([COMMAND, "convert", weights, out], capture_output=True, text=True)
    assert failed.returncode == 2 and "--into" in failed.stderr
    safetensors_numpy.save_file({"w": np.zeros((2, 3), "f2")}, weights)
    weighbridge("convert", weights, out, "--into", model, "--cast", "f32")


@pytest.mark.parametrize("kind, to", [(TensorProto.INT4, "i8"), (TensorProto.UINT4, "u8"), (TensorProto.INT2, "i16"), (TensorProto.INT8, "i64"),
                                      (TensorProto.UINT32, "i64"), (TensorProto.INT64, "i32")])
def test_integers_are_cast_to_wider_ones(tmp_path, kind, to):
    low = 0 if OURS[kind].startswith("u") else -2
    values = [low, 1, 0, low, 1]
    floats = numpy_helper.from_array(np.array([1.5], np.float32), "f")
    tensor = helper.make_tensor("w", kind, [5], values)
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [helper.make_tensor_value_info("y", kind, [5])], [tensor, floats])
    path, out = tmp_path / "m.onnx", tmp_path / "out.safetensors"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    weighbridge("convert", path, out, "--cast-int", to)
    found = safetensors_numpy.load_file(out)
    assert found["w"].dtype == np.dtype(to.replace("u", "uint").replace("i", "int") if to[0] == "i" else to.replace("u", "uint"))
    assert found["w"].tolist() == numpy_helper.to_array(tensor).astype(np.int64).tolist() == values
    assert found["f"].dtype == np.float32
