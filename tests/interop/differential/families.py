# SPDX-License-Identifier: Apache-2.0
"""The files that test_differential.py changes, by family, and how: what the published packages write here, and the valid files of corpus/."""
import collections
import decimal
import fractions
import io
import json
import pathlib
import pickle
import random

import mutate

ROOT = pathlib.Path(__file__).resolve().parents[3]
Family = collections.namedtuple("Family", "extension readers make neighbors")


def corpus(folder, extension, most=20_000):
    """The valid files of a folder of corpus/."""
    lines = (line.split("\t") for line in (ROOT / "corpus/index.tsv").read_text().splitlines()[1:])
    files = [ROOT / "corpus" / line[0] for line in lines if line[1] in ("valid", "warning") and line[0].startswith(folder + "/") and line[0].endswith(extension)]
    return [file.read_bytes() for file in files if file.stat().st_size < most]


def arrays():
    import numpy as np
    return {"w": np.arange(6, dtype="<f4").reshape(2, 3), "b": np.array([True, False]), "layer.0.weight": np.arange(4, dtype=">i8"), "s": np.float64(2.5),
            "half": np.arange(3, dtype="<f2"), "W2": np.asfortranarray(np.arange(6, dtype="<i2").reshape(3, 2))}


def npz_bases():
    import numpy as np
    out = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, **arrays())
        out.append(file.getvalue())
    return out


def pickle_values():
    import numpy as np
    w = np.arange(6, dtype="<f4").reshape(2, 3)
    shared = [1, 2.5]
    yield {"w": w, "layer": {"0": {"weight": w + 1}}, "epoch": 3, "name": "text", "ok": True, "none": None, "rate": 1e-3, "ids": [1, 2, 3], "big": 2**70, "minus": -5,
           "raw": b"\0\xff", "t": (1, "a"), "shared": shared, "again": shared}
    yield collections.OrderedDict([("a", np.arange(3)), ("b", np.float32(1.5)), ("c", {1, 2}), ("d", 1 + 2j), ("long", "x" * 300)])
    yield [w, {"k": [w, "v"]}, 7]
    yield {"d": decimal.Decimal("1.5"), "f": fractions.Fraction(1, 3), "q": collections.deque([1]), "dd": collections.defaultdict(dict, {"x": 1}), "w": w, "set": frozenset([1])}
    yield {f"k{i}": i for i in range(40)} | {"nested": {"a": {"b": {"c": 1.5}}}, "é": "ü", "empty": {}, "list": []}


def pickle_bases():
    return [pickle.dumps(value, protocol) for value in pickle_values() for protocol in range(6)]


def torch_files(extension):
    folder = ROOT / "tests/interop/data/pytorch"
    out = [file.read_bytes() for file in sorted(folder.glob("*.pt")) if file.stat().st_size < 60_000]
    zips = [data for data in out + corpus("pytorch", ".pt", 60_000) if data[:4] == b"PK\3\4"]
    return zips if extension == "zip" else [data for data in out + corpus("pytorch", ".pt") if data[:4] != b"PK\3\4" and data[:1] == b"\x80"]


def gguf_bases():
    return corpus("gguf", ".gguf")


def onnx_bases():
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    w = numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")
    c = helper.make_tensor("c", TensorProto.INT32, [3], [1, 2, 3])
    nodes = [helper.make_node("Constant", [], ["k"], value=helper.make_tensor("v", TensorProto.FLOAT, [2], [1.0, 2.0])),
             helper.make_node("MatMul", ["x", "w"], ["y"], name="n"),
             helper.make_node("ConstantOfShape", ["c"], ["z"], value=helper.make_tensor("v", TensorProto.INT64, [1], [5]))]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])], [w, c])
    model = helper.make_model(graph, producer_name="differential", opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.x", 1)])
    helper.set_model_props(model, {"k": "v", "é": "ü"})
    return [model.SerializeToString(), *corpus("onnx", ".onnx")]


def hdf5_bases():
    import h5py
    import numpy as np
    out = []
    for version in ("earliest", "v110", "latest"):
        for kind in range(3):
            file = io.BytesIO()
            with h5py.File(file, "w", libver=version, track_order=kind == 1) as h5:
                h5["w"] = np.arange(6, dtype="<f4").reshape(2, 3)
                h5["g/b"] = np.array([1, 2, 3], ">i2")
                h5.attrs["name"] = "text"
                h5["w"].attrs["rate"] = 1.5
                if kind == 1:
                    h5.create_dataset("g/chunks", data=np.arange(40, dtype="<i4").reshape(8, 5), chunks=(4, 2), compression="gzip", shuffle=True)
                    h5.create_dataset("g/sum", data=np.arange(12, dtype="<u2"), chunks=(5,), fletcher32=True)
                    h5.create_dataset("g/grows", data=np.arange(12, dtype="<f8"), chunks=(5,), maxshape=(None,), fillvalue=7)
                if kind == 2:
                    h5["flag"] = np.array([True, False])
                    h5["z"] = np.array([1 + 2j], "<c8")
                    h5["scalar"] = np.float64(3)
                    h5["same"] = h5["w"]
                    for i in range(12):
                        h5[f"many/{i}"] = np.array([i], "<u1")
            out.append(file.getvalue())
    return out + corpus("hdf5", ".h5")


def _bases_once(make):
    kept = []

    def bases():
        if not kept:
            kept.extend(make())
        return kept
    return bases


PICKLES, TORCH_ZIPS, TORCH_OLD, NPZ = (_bases_once(make) for make in (pickle_bases, lambda: torch_files("zip"), lambda: torch_files("old"), npz_bases))
ONNX, HDF5 = _bases_once(onnx_bases), _bases_once(hdf5_bases)
SEEDS = {name: _bases_once(lambda name=name, extension=extension: corpus(name, extension)) for name, extension in
         (("safetensors", ".safetensors"), ("gguf", ".gguf"), ("npy", ".npy"), ("npz", ".npz"))}


def make_safetensors(draw):
    if draw.random() < 0.2:
        return mutate.change_bytes(draw, draw.choice(SEEDS["safetensors"]()))
    return mutate.safetensors(draw)


def make_gguf(draw):
    if draw.random() < 0.2:
        return mutate.change_bytes(draw, draw.choice(SEEDS["gguf"]()))
    return mutate.gguf(draw)


def object_pickle(draw):
    import numpy as np
    out = draw.choice([pickle.dumps(np.array([{"a": 1}, "text"], dtype=object), protocol) for protocol in (2, 3, 4)])
    return mutate.change_pickle(draw, out) if draw.random() < 0.8 else out


def make_npy(draw):
    what = draw.random()
    if what < 0.25:
        return mutate.npy_of_objects(draw, object_pickle(draw))
    if what < 0.4:
        return mutate.change_bytes(draw, draw.choice(SEEDS["npy"]()))
    return mutate.change_npy(draw, mutate.npy("<f4", False, (6,), bytes(range(24))))


def make_npz(draw):
    base = draw.choice(NPZ() if draw.random() < 0.7 else SEEDS["npz"]())
    if draw.random() < 0.1:
        return mutate.change_bytes(draw, base)
    try:
        members = mutate.read_zip(base)
    except Exception:
        return mutate.change_bytes(draw, base)
    if draw.random() < 0.2:
        members.append(mutate.Member(b"o.npy", mutate.npy_of_objects(draw, object_pickle(draw))))
    how = mutate.change_zip(draw, members, lambda draw, member: make_npy(draw)) if members else {}
    return mutate.write_zip(members, **how)


def make_pickle(draw):
    return mutate.change_pickle(draw, draw.choice(PICKLES()))


def make_torch(draw):
    members = mutate.read_zip(draw.choice(TORCH_ZIPS()))
    if draw.random() < 0.5:
        for member in members:
            if member.name.endswith(b"/data.pkl"):
                member.data = mutate.change_pickle(draw, member.data)
        return mutate.write_zip(members, aligned=True)
    return mutate.write_zip(members, aligned=draw.random() < 0.7, **mutate.change_zip(
        draw, members, lambda draw, member: mutate.change_pickle(draw, member.data) if member.name.endswith(b".pkl") else mutate.other_content(draw, member.data)))


def make_torch_old(draw):
    data = draw.choice(TORCH_OLD())
    ops, pieces = mutate.opcodes(data), []
    while ops is not None and data:  # one pickle after the other
        size = sum(map(len, ops))
        pieces.append(data[:size])
        data = data[size:]
        ops = mutate.opcodes(data) if data[:1] == b"\x80" else None
    at = draw.randrange(len(pieces) + 1)
    if at < len(pieces):
        pieces[at] = mutate.change_pickle(draw, pieces[at])
    else:
        data = mutate.change_bytes(draw, data)
    return b"".join(pieces) + data


def make_onnx(draw):
    from onnx.onnx_ml_pb2 import ModelProto
    base = draw.choice(ONNX())
    if draw.random() < 0.1:
        return mutate.change_bytes(draw, base)
    try:
        tree = mutate.read_message(base, ModelProto.DESCRIPTOR)
    except (IndexError, TypeError):
        return mutate.change_bytes(draw, base)
    for _ in range(draw.choice([1, 1, 2, 3])):
        mutate.change_message(draw, tree, draw.choice([b"weights.bin"] * 4 + [b"./weights.bin", b"weights.bin/", b"WEIGHTS.BIN", b"a/../weights.bin", b"weights.bin\0", b"sub/weights.bin", b"sub//weights.bin", b"", b"sub"]))
    return mutate.write_message(tree)


_BLOCKS = {}


def make_hdf5(draw):
    which = draw.randrange(len(HDF5()))
    data = HDF5()[which]
    if which not in _BLOCKS:
        payload = [(at, at + 24) for at in [data.find(bytes.fromhex("000000000000803f"))] if at >= 0]
        _BLOCKS[which] = mutate.checked_blocks(data), payload
    return mutate.change_hdf5(draw, data, *_BLOCKS[which])


def pickle_anywhere(draw):
    """A pickle for a place that another format does not look at."""
    if draw.random() < 0.3:
        return make_pickle(draw)
    body = mutate.global_ops(draw, *draw.choice(mutate.NAMES)) + draw.choice([b"(S'true'\ntR.", b".", b")R.", b"0N.", b"\xff"])
    return draw.choice([b"", b"", b"\x80\2", b"N0", b"}0", b"\x80\4\x95\1\0\0\0\0\0\0\0N0"]) + body


def make_polyglot(draw):
    """A file of some format that leaves room for a pickle, from its first byte on."""
    code, kind = pickle_anywhere(draw), draw.randrange(5)
    if kind == 0:  # a length of `V` begins a text, whose line ends in the white space of the header
        header = f'{{"w":{{"dtype":"U8","shape":[{len(code)}],"data_offsets":[0,{len(code)}]}}'.encode()
        first = draw.choice(b"VVVVcipgILFSPKM(N}")
        size = first + 256 * draw.choice([0, 0, 1])
        text = header.ljust(size - 2) + b"\n}" if size > len(header) + 2 else header + b"}"
        return len(text).to_bytes(8, "little") + text + code
    if kind == 1:  # before an archive
        members = mutate.read_zip(draw.choice(NPZ()))
        if draw.random() < 0.5:
            for member in members:
                member.central["from_prefix"] = True
        return mutate.write_zip(members, prefix=code)
    if kind == 2:  # in the user block of HDF5
        return code.ljust(512, b"\0")[:512] + draw.choice(HDF5())
    if kind == 3:  # in a text of ONNX: model_version is `V`, or another opcode
        return b"\x28" + draw.choice([b"V", b"0", b"N", b"c"]) + mutate.write_message([[2, 2, b"\n" + code]]) + draw.choice(ONNX())
    return code + draw.choice([b"", *SEEDS["npy"](), *SEEDS["gguf"]()])


WEIGHTS = bytes(range(256)) * 20  # where tensors of ONNX may lie
FAMILIES = {
    "safetensors": Family("safetensors", ["safetensors"], make_safetensors, {}),
    "gguf": Family("gguf", ["gguf"], make_gguf, {}),
    "npy": Family("npy", ["numpy", "numpy-pickles"], make_npy, {}),
    "npz": Family("npz", ["numpy", "numpy-pickles"], make_npz, {}),
    "onnx": Family("onnx", ["onnx"], make_onnx, {"weights.bin": WEIGHTS, "other.bin": WEIGHTS[::-1], "sub/weights.bin": WEIGHTS[7:]}),
    "hdf5": Family("h5", ["h5py"], make_hdf5, {}),
    "pickle": Family("pkl", ["pickle-c", "pickle-python"], make_pickle, {}),
    "polyglot": Family("npz", ["pickle-c", "pickle-python", "numpy-pickles"], make_polyglot, {}),
    "torch": Family("pt", ["torch-weights-only", "torch-full"], make_torch, {}),
    "torch-old": Family("pt", ["torch-weights-only", "torch-full"], make_torch_old, {}),
}


def file_of(family, seed, index):
    """The bytes of one file: the same for the same names."""
    return FAMILIES[family].make(random.Random(json.dumps([family, seed, index])))
