# SPDX-License-Identifier: Apache-2.0
"""Every pair of containers that hold any tensors: a file that one's published package wrote is converted, has the same content digest,
and the other's published package reads the same arrays from it. EMBD and SLM hold one architecture each and have no package; their
conversions are in test_embd.py and test_slm.py."""
import collections
import json
import pickle
import sys
import zipfile

import pytest

from interop_tools import HERE, NAME_OF, content_digest, np, random_array, run_python, weighbridge

sys.path.insert(0, str(HERE.parent / "witness"))
import khlnary  # noqa: E402
import stb  # noqa: E402

h5py = pytest.importorskip("h5py", reason="h5py is missing: tools/python-environments.sh makes the environment")
onnx = pytest.importorskip("onnx", reason="onnx is missing: tools/python-environments.sh makes the environment")
gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment")

# What all of them can hold: names that are ids, for STB; up to three dimensions, none of 0; four dtypes.
SHAPES = [(5,), (3, 4), (2, 3, 4)]
GENERATOR = np.random.Generator(np.random.PCG64(11))
MODEL = {str(i): random_array(GENERATOR, ("f32", "f16", "i8", "i32")[i % 4], SHAPES[i // 4]) for i in range(12)}
CONTENT = {name: (array.shape, array.tobytes()) for name, array in MODEL.items()}


# ---- written by the published packages ----

def write_gguf(path):
    writer = gguf.GGUFWriter(path, "none")
    for name, array in MODEL.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_zt0(path):
    plan = path.with_suffix(".json")
    plan.write_text(json.dumps([{"name": name, "dtype": array.dtype.name, "shape": array.shape, "bytes": array.tobytes().hex()}
                                for name, array in MODEL.items()]))
    run_python("ztensor014", "ztensor0_write.py", path, plan)


def write_zt(path):
    plan = path.with_suffix(".json")
    plan.write_text(json.dumps({"append": False, "tensors": [
        {"name": name, "layout": "dense", "shape": array.shape, "parts": {"data": [array.dtype.name, array.tobytes().hex()]}, "type": None,
         "attributes": None, "compress": False, "checksum": "none"} for name, array in MODEL.items()]}))
    run_python("ztensor123", "ztensor_write.py", path, plan)


def write_zt2(path):
    run_python("ztensor212", "ztensor2_package.py", "write", path, json.dumps({name: {
        "shape": array.shape, "layout": "dense", "parts": {"data": {"dtype": NAME_OF[array.dtype], "hex": array.tobytes().hex()}}}
        for name, array in MODEL.items()}))


def write_onnx(path):
    tensors = [onnx.numpy_helper.from_array(array, name) for name, array in MODEL.items()]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([], "none", [], [], tensors)), path)


def write_hdf5(path):
    with h5py.File(path, "w") as file:
        for name, array in MODEL.items():
            file.create_dataset(name, data=array, chunks=array.shape, compression="gzip")


def write_pytorch(path):
    """By torch where it is; elsewhere by this program, whose files test_pytorch.py compares with torch's."""
    try:
        import torch
        torch.save({name: torch.from_numpy(array) for name, array in MODEL.items()}, path)
    except ImportError:
        safetensors_numpy.save_file(MODEL, path.with_suffix(".safetensors"))
        weighbridge("convert", path.with_suffix(".safetensors"), path)


SOURCES = {
    "safetensors": ("a.safetensors", lambda path: safetensors_numpy.save_file(MODEL, path)),
    "gguf": ("a.gguf", write_gguf),
    "npz": ("a.npz", lambda path: np.savez(path, **MODEL)),
    "zt": ("a.zt", write_zt),
    "zt0": ("a.zt", write_zt0),
    "zt2": ("a.zt", write_zt2),
    "pytorch": ("a.pt", write_pytorch),
    "onnx": ("a.onnx", write_onnx),
    "hdf5": ("a.h5", write_hdf5),
    "stb": ("a.stb", lambda path: stb.write(path, [stb.tensor(int(name), array) for name, array in MODEL.items()])),
}


# ---- read by them: name -> shape and bytes ----

def of_arrays(arrays):
    return {name: (array.shape, np.ascontiguousarray(array).tobytes()) for name, array in arrays}


def read_gguf(path):  # whose dimensions have the fastest first
    return {tensor.name: (tuple(int(n) for n in tensor.shape)[::-1], tensor.data.tobytes()) for tensor in gguf.GGUFReader(path).tensors}


def read_npz(path):
    with np.load(path, allow_pickle=False) as archive:
        return of_arrays(archive.items())


def read_zt(path):
    content, = json.loads(run_python("ztensor123", "ztensor_read.py", path))
    return {name: (tuple(each["shape"]), bytes.fromhex(each["parts"]["data"])) for name, each in content.items()}


def read_zt0(path):
    content, = json.loads(run_python("ztensor014", "ztensor0_read.py", path))
    return {each["name"]: (tuple(each["shape"]), bytes.fromhex(each["bytes"])) for each in content}


def read_zt2(path):
    content = json.loads(run_python("ztensor212", "ztensor2_package.py", "read", path))["objects"]
    return {name: (tuple(each["shape"]), bytes.fromhex(each["parts"]["data"]["hex"])) for name, each in content.items()}


class StateDict(pickle.Unpickler):
    """What torch.load makes of a state dict, for environments without torch: Python's own pickle, and the two things that are in one."""

    STORAGES = {"FloatStorage": "<f4", "HalfStorage": "<f2", "CharStorage": "i1", "IntStorage": "<i4"}

    def __init__(self, archive, root):
        super().__init__(archive.open(f"{root}/data.pkl"))
        self.archive, self.root = archive, root

    def find_class(self, module, name):
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda storage, offset, size, stride, *_: np.lib.stride_tricks.as_strided(
                storage[offset:], size, [step * storage.itemsize for step in stride])
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        assert module == "torch" and name in self.STORAGES, (module, name)
        return self.STORAGES[name]

    def persistent_load(self, saved):
        kind, dtype, key, _, count = saved
        assert kind == "storage"
        return np.frombuffer(self.archive.read(f"{self.root}/data/{key}"), dtype)[:count]


def read_pytorch(path):
    with zipfile.ZipFile(path) as archive:
        root = archive.namelist()[0].split("/")[0]
        assert archive.read(f"{root}/byteorder") == b"little"
        return of_arrays(StateDict(archive, root).load().items())


def read_stb(path):
    sidecar = path.with_suffix(".khm.json")  # there unless each name is the tensor's id
    entries = khlnary.open_file(khlnary.load_sidecar(sidecar), path.parent, 0) if sidecar.exists() else stb.read(path)
    return of_arrays((str(name), entry.array) for name, entry in entries.items())


TARGETS = {
    "safetensors": ("b.safetensors", lambda path: of_arrays(safetensors_numpy.load_file(path).items())),
    "gguf": ("b.gguf", read_gguf),
    "npz": ("b.npz", read_npz),
    "zt": ("b.zt", read_zt),
    "zt0": ("b.zt", read_zt0),
    "zt2": ("b.zt", read_zt2),
    "pytorch": ("b.pt", read_pytorch),
    "stb": ("b.stb", read_stb),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The path of a source, which is written once."""
    paths = {}

    def of(source):
        if source not in paths:
            name, write = SOURCES[source]
            paths[source] = tmp_path_factory.mktemp(source) / name
            write(paths[source])
        return paths[source]
    return of


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_pair(written, tmp_path, source, target):
    name, read = TARGETS[target]
    path, out = written(source), tmp_path / name
    weighbridge("convert", path, out, "--to", target, "--allow", "attribute,attribute-type,extra")
    assert content_digest(out) == content_digest(path)
    assert read(out) == CONTENT


def test_every_container_of_any_tensors_is_here():
    formats = json.loads(weighbridge("formats", "--json"))["formats"]
    # One array; one architecture; a folder; read only.
    others = {"npy", "embd", "slm", "hf"} | {each["name"] for each in formats if not each["writes"]}
    assert {each["name"] for each in formats} - others == set(TARGETS)
