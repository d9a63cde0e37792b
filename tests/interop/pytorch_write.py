# SPDX-License-Identifier: Apache-2.0
"""Writes the files of tests/interop/data/pytorch with torch.save, from data made here, and manifest.json, which says what is in them. Run it
with torch 2.15.0, NumPy and OmegaConf: pytorch_write.py FOLDER

The manifest has, for each file, its tensors by their path of keys and indices: dtype as torch spells it, shape, and the SHA-256 of the
row-major little-endian bytes that torch has in memory; and the plain values by their paths. A path that ends in a number is an index or a
number as a key."""
import argparse
import collections
import hashlib
import io
import json
import pathlib
import pickle
import struct
import sys
import types
import warnings
import zipfile
import zlib

import numpy as np
import torch

warnings.filterwarnings("ignore")

PLAIN = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128", "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16",
         "int32", "int64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"]
UNTYPED = ["uint16", "uint32", "uint64"]  # those whose storages have no class of their own; the float8s, too


def made(dtype, shape, seed=0):
    """A tensor whose bytes count up; bools are 0 and 1."""
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    count = int(np.prod(shape, dtype=np.int64))
    size = count * dtype.itemsize
    raw = bytes((seed + 37 * i) % (2 if dtype == torch.bool else 251) for i in range(size))
    if not size:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(dtype).reshape(shape)


def bytes_of(tensor):
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().flatten()
    # One element may have any stride, which view() does not take.
    return b"" if flat.numel() == 0 else flat.as_strided(flat.shape, (1,)).view(torch.uint8).numpy().tobytes()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def described(tensor):
    out = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
    if tensor.is_meta:
        return {**out, "meta": True}
    if tensor.layout != torch.strided:
        return {**out, "layout": str(tensor.layout).removeprefix("torch."), "dense": sha256(bytes_of(tensor.to_dense()))}
    if tensor.is_quantized:
        out |= {"quantized": str(tensor.qscheme()).removeprefix("torch."), "sha256": sha256(bytes_of(tensor.int_repr())),
                "dequantized": sha256(bytes_of(tensor.dequantize()))}
        return out
    return {**out, "sha256": sha256(bytes_of(tensor))}


def walk(value, path, tensors, values):
    """Lists tensors and plain values; what is neither has its own line in the manifest, by hand."""
    if isinstance(value, torch.Tensor):
        tensors.append({"path": path, **described(value)})
    elif isinstance(value, dict):
        for key, item in value.items():
            walk(item, path + [key if isinstance(key, (str, int)) else str(key)], tensors, values)
    elif isinstance(value, (list, tuple)) and type(value).__name__ in ("list", "tuple") and any(holds_tensor(item) for item in value):
        for i, item in enumerate(value):
            walk(item, path + [i], tensors, values)
    elif value is None or isinstance(value, (bool, int, float, str, list, tuple)):
        values.append({"path": path, "value": value})


def holds_tensor(value):
    if isinstance(value, dict):
        return any(holds_tensor(item) for item in value.values())
    return isinstance(value, torch.Tensor) or (isinstance(value, (list, tuple)) and any(holds_tensor(item) for item in value))


def class_of(module, name, base):
    """A class that pickles by a name of a package that need not be there."""
    parts = module.split(".")
    for i in range(len(parts)):
        sys.modules.setdefault(".".join(parts[:i + 1]), types.ModuleType(".".join(parts[:i + 1])))
    made_class = type(name, (base,), {"__module__": module})
    setattr(sys.modules[module], name, made_class)
    return made_class


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 2)
        self.norm = torch.nn.BatchNorm1d(2)
        self.last = torch.nn.Linear(2, 3)
        self.last.weight = torch.nn.Parameter(self.first.weight.detach().t())
        with torch.no_grad():
            for i, (name, parameter) in enumerate(self.named_parameters()):
                parameter.copy_(torch.arange(parameter.numel(), dtype=torch.float32).reshape(parameter.shape) / 8 + i)

    def forward(self, x):
        return self.last(self.norm(self.first(x)))


def stepped(optimizer, net):
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.arange(12, dtype=torch.float32).reshape(4, 3)).square().sum().backward()
        optimizer.step()
    return optimizer.state_dict()


def shapes():
    all_shapes = [(), (0,), (1,), (5,), (2, 3), (2, 0, 3), (2, 3, 4), (1, 2, 1, 3), (2, 1, 2, 1, 2), (0, 0, 0, 0, 0)]
    return {"x".join(map(str, shape)) or "scalar": made("float32", shape, len(shape)) for shape in all_shapes}


def strides():
    whole = made("float32", (4, 6))
    line = torch.arange(20, dtype=torch.int16)
    return {"transposed": whole.t(), "permuted": made("int32", (2, 3, 4)).permute(2, 0, 1), "expanded": torch.tensor([1.5, -2.0]).reshape(2, 1).expand(2, 3),
            "expanded_scalar": torch.tensor(7).expand(2, 2), "rows": whole[1:3], "columns": whole[:, 2:5], "every_second": whole[::2, 1::2],
            "overlapping": line.as_strided((4, 3), (2, 1), 3), "windows": line.unfold(0, 4, 3), "one": whole[3, 5], "none": whole[2:2],
            "channels_last": made("float32", (1, 2, 2, 2)).to(memory_format=torch.channels_last)}


def shared():
    base = made("float32", (3, 4))
    other = made("float16", (4,))
    return {"embed": base, "head": base, "first_row": base[0], "rest": base[1:], "view": base.view(4, 3), "half": other, "same_half": other[:],
            "copy": base.clone()}


def parameters():
    plain = torch.nn.Parameter(made("float32", (2, 2)))
    frozen = torch.nn.Parameter(made("float32", (2,)), requires_grad=False)
    with_state = torch.nn.Parameter(made("float32", (3,)))
    with_state.partition_dim = 1
    needs = made("float64", (2,)).nan_to_num().requires_grad_()
    return {"plain": plain, "frozen": frozen, "with_state": with_state, "tied": plain, "requires_grad": needs, "buffer": torch.nn.Buffer(made("int64", (2,)))}


def nested():
    counts = collections.Counter({"a": 3, "b": 1})
    defaults = collections.defaultdict(list, {"x": [made("int8", (2,))]})
    ordered = collections.OrderedDict([("w.0", made("uint8", (3,))), ("w.1", made("uint8", (2,)))])
    return {"model": {"layer.weight": made("float32", (2, 2)), "deep": {"er": {"bias": made("float32", (1,))}}}, "list": [made("int32", (1,)), [made("int32", (2,))]],
            "tuple": (made("int64", (1,)), 5), "ordered": ordered, "defaults": defaults, "counts": counts, "epoch": 12, "loss": 0.125, "done": True, "nothing": None,
            "name": "été \N{CJK UNIFIED IDEOGRAPH-732B}", "numbers": [1, 2, 3], "mixed": (1, "two", 3.5, None), 7: {"key": "is a number"}, "large": 2**62, "larger": 2**100,
            "negative": -(2**40), "empty": {}, "empty_list": []}


def sparse():
    dense = torch.tensor([[0, 1.5, 0], [2, 0, -3]])
    blocks = torch.zeros(4, 4)
    blocks[:2, 2:] = torch.tensor([[1.0, 2], [3, 4]])
    return {"coo": dense.to_sparse(), "coo_uncoalesced": torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 3)), "coo_empty": torch.zeros(2, 3).to_sparse(),
            "coo_hybrid": torch.sparse_coo_tensor([[0, 2]], torch.tensor([[1.0, 2], [3, 4]]), (3, 2)), "csr": dense.to_sparse_csr(), "csc": dense.to_sparse_csc(),
            "bsr": blocks.to_sparse_bsr((2, 2)), "bsc": blocks.to_sparse_bsc((2, 2)), "coo_i32": dense.to(torch.int32).to_sparse(),
            "csr_i32": torch.sparse_csr_tensor(torch.tensor([0, 1, 3], dtype=torch.int32), torch.tensor([1, 0, 2], dtype=torch.int32), torch.tensor([1.0, 2, 3]), (2, 3))}


def quantized():
    x = torch.tensor([[-1.0, 0.5, 2.0], [0.25, 3.0, -2.5]])
    scales, zeros = torch.tensor([0.1, 0.05], dtype=torch.float64), torch.tensor([3, -2])
    return {f"tensor_{kind}": torch.quantize_per_tensor(x, 0.1, 0 if kind == "qint32" else 5, getattr(torch, kind)) for kind in ("qint8", "quint8", "qint32")} | {
        "channel_qint8": torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8),
        "channel_quint8_axis_1": torch.quantize_per_channel(x, torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64), torch.tensor([10, 20, 30]), 1, torch.quint8)}


def views():
    z = torch.tensor([1 + 2j, -3 + 0.5j])
    # Views of one storage have one dtype, or torch.save refuses them.
    return {"plain": z, "conjugate": z.conj(), "negative": torch._neg_view(torch.tensor([1.0, -2.0])), "imaginary_of_conjugate": z.clone().conj().imag,
            "real": z.clone().real}


def subclasses():
    mine = class_of("mine.tensors", "Marked", torch.Tensor)
    marked = made("float32", (2, 2)).as_subclass(mine)
    marked.note = "kept"

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (2, 3), dtype=torch.float32)

        @classmethod
        def __torch_dispatch__(cls, function, kinds, arguments=(), keywords=None):
            raise NotImplementedError

    Wrapper.__module__, Wrapper.__qualname__ = "mine.tensors", "Wrapper"
    sys.modules["mine.tensors"].Wrapper = Wrapper
    return marked, Wrapper()


def lightning(net):
    attributes = class_of("lightning.fabric.utilities.data", "AttributeDict", dict)
    return {"epoch": 3, "global_step": 120, "pytorch-lightning_version": "2.6.0", "state_dict": net.state_dict(),
            "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 4, "completed": 3}}}},
            "callbacks": {"ModelCheckpoint{'monitor': 'loss'}": {"best_model_score": torch.tensor(0.25), "best_model_path": "a/b.ckpt", "best_k_models": {}}},
            "optimizer_states": [stepped(torch.optim.AdamW(net.parameters(), 0.01), net)], "lr_schedulers": [{"step_size": 2, "_last_lr": [0.01]}],
            "hparams_name": "hparams", "hyper_parameters": attributes({"lr": 0.01, "layers": 2, "name": "small"})}


def rewritten(path, keep=lambda name: True, change=lambda name, data: data, method=zipfile.ZIP_STORED):
    """The archive again by Python's zipfile: without alignment, sizes in the local headers."""
    out = io.BytesIO()
    with zipfile.ZipFile(path) as there, zipfile.ZipFile(out, "w", method) as here:
        for info in there.infolist():
            name = info.filename.split("/", 1)[1]
            if keep(name):
                here.writestr(zipfile.ZipInfo(info.filename), change(name, there.read(info)), method)
    return out.getvalue()


def tar_form(tensors):
    """What PyTorch wrote before version 0.1.10: a tar archive of three streams of pickles."""
    import tarfile
    storages, indices, out = io.BytesIO(), io.BytesIO(), io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, item):
            return item.key if isinstance(item, Key) else None

    class Key:
        def __init__(self, key):
            self.key = key

    pickle.dump(len(tensors), storages, 2)
    for key, tensor in enumerate(tensors.values()):
        pickle.dump((key, "cpu", torch.FloatStorage), storages, 2)
        storages.write(struct.pack("<q", tensor.numel()) + bytes_of(tensor))
    pickle.dump([], storages, 2)
    pickle.dump(len(tensors), indices, 2)
    for key, tensor in enumerate(tensors.values()):
        pickle.dump((len(tensors) + key, key, torch.FloatTensor), indices, 2)
        indices.write(struct.pack("<i", tensor.dim()) + b"\0" * 4 + struct.pack(f"<{2 * tensor.dim()}q", *tensor.shape, *tensor.stride()) + struct.pack("<q", 0))
    whole = io.BytesIO()
    Pickler(whole, 2).dump({name: Key(len(tensors) + i) for i, name in enumerate(tensors)})
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in (("storages", storages), ("tensors", indices), ("pickle", whole)):
            info = tarfile.TarInfo(name)
            info.size = len(data.getvalue())
            archive.addfile(info, io.BytesIO(data.getvalue()))
    return out.getvalue()


class Writer:
    def __init__(self, folder):
        self.folder, self.files = folder, {}

    def note(self, name, value, **more):
        tensors, values = [], []
        walk(value, [], tensors, values)
        self.files[name] = {"tensors": tensors, "values": values, **more}

    def save(self, name, value, describe=None, more=None, **options):
        torch.save(value, self.folder / name, **options)
        self.note(name, value if describe is None else describe, **(more or {}))

    def raw(self, name, data, value, **more):
        (self.folder / name).write_bytes(data)
        self.note(name, value, **more)


def write_all(folder):
    torch.manual_seed(0)
    w = Writer(folder)
    plain = {"weight": made("float32", (2, 3)), "bias": made("float16", (3,)), "count": torch.tensor(7)}
    w.save("dtypes.pt", {kind: made(kind, (2, 3), 5) for kind in PLAIN})
    w.save("shapes.pt", shapes())
    w.save("strides.pt", strides())
    w.save("shared.pt", shared())
    w.save("parameters.pt", parameters())
    w.save("nested.pt", nested())
    w.save("state_dict.pth", Net().state_dict())
    for kind, optimizer in (("sgd", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)), ("adamw", lambda p: torch.optim.AdamW(p, 0.01))):
        net = Net()
        state = stepped(optimizer(net.parameters()), net)
        w.save(f"optimizer_{kind}.pt", {"epoch": 2, "model": net.state_dict(), "optimizer": state})
    w.save("lightning.ckpt", lightning(Net()))
    arguments = argparse.Namespace(lr=0.1, name="run", layers=[1, 2], nested=argparse.Namespace(seed=3))
    w.save("namespace.pt", {"args": arguments, "model": plain}, {"args": {**vars(arguments), "nested": {"seed": 3}}, "model": plain})
    w.save("path.pt", {"best": pathlib.PurePosixPath("a/b"), "model": plain}, {"model": plain}, {"others": [["best"]]})
    arrays = {"array": np.arange(6, dtype=np.float32).reshape(2, 3), "fortran": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)), "big": np.arange(3, dtype=">i4")}
    w.save("numpy.pt", {**arrays, "scalar": np.float64(2.5), "integer": np.int64(-3), "flag": np.bool_(True), "model": plain}, {"scalar": 2.5, "integer": -3, "flag": True, "model": plain},
           {"arrays": [{"path": [name], "dtype": str(a.dtype.newbyteorder("=")), "shape": list(a.shape), "sha256": sha256(np.ascontiguousarray(a.astype(a.dtype.newbyteorder("<"))).tobytes())}
                       for name, a in arrays.items()]})
    from omegaconf import OmegaConf
    w.save("omegaconf.pt", {"config": OmegaConf.create({"lr": 0.1, "model": {"layers": 2}}), "model": plain}, {"model": plain}, {"others": [["config"]]})
    w.save("sparse.pt", sparse())
    w.save("quantized.pt", quantized())
    w.save("meta.pt", {"meta": torch.empty((2, 3), dtype=torch.bfloat16, device="meta"), "beside": plain["weight"]})
    w.save("views.pt", views())
    marked, wrapper = subclasses()
    w.save("subclass.pt", {"marked": marked, "beside": plain["weight"]}, {"marked": marked.as_subclass(torch.Tensor), "beside": plain["weight"]})
    w.save("wrapper.pt", {"wrapper": wrapper, "beside": plain["weight"]}, {"beside": plain["weight"]}, {"others": [["wrapper"]]})
    w.save("module.pt", torch.nn.Linear(2, 2).requires_grad_(False), {}, {"module": "torch.nn.modules.linear.Linear"})
    w.save("bare.pt", plain["weight"])
    w.save("list.pt", list(plain.values()))
    w.save("tuple.pt", tuple(plain.values()))
    w.save("no_tensors.pt", {"epoch": 1})
    w.save("empty.pt", {})
    w.save("storage.pt", {"storage": torch.tensor([1, 2, 3], dtype=torch.int16).untyped_storage(), "model": plain}, {"model": plain}, {"others": [["storage"]]})
    w.save("bytes.pt", {"bytes": b"\x00\xff", "array": bytearray(b"ab"), "complex": 1 + 2j, "device": torch.device("cpu"), "size": torch.Size([2, 3]), "dtype": torch.float32, "model": plain},
           {"model": plain}, {"others": [["bytes"], ["array"], ["complex"], ["device"], ["size"], ["dtype"]]})
    for protocol in (2, 3, 4, 5):
        w.save(f"protocol_{protocol}.pt", {"a": plain, "values": {"text": "x" * 300, "number": 2**40}}, pickle_protocol=protocol)
    for name, value in (("legacy", nested()), ("legacy_strides", strides()), ("legacy_shared", shared()), ("legacy_dtypes", {kind: made(kind, (2, 3), 5) for kind in PLAIN[:15] if kind not in UNTYPED}),
                        ("legacy_untyped", {kind: made(kind, (2, 3), 5) for kind in UNTYPED}),  # which torch 2.15 cannot read back
                        ("legacy_sparse", sparse()), ("legacy_quantized", quantized()), ("legacy_parameters", parameters())):
        w.save(f"{name}.pt", value, _use_new_zipfile_serialization=False)
    w.raw("legacy_tar.pt", tar_form({"weight": made("float32", (2, 3)), "bias": made("float32", (3,))}), {"weight": made("float32", (2, 3)), "bias": made("float32", (3,))})
    old = {"byteorder", ".format_version", ".storage_alignment", ".data/serialization_id"}
    w.raw("old_zip.pt", rewritten(folder / "dtypes.pt", lambda name: name not in old), {kind: made(kind, (2, 3), 5) for kind in PLAIN})
    w.raw("deflated.pt", rewritten(folder / "shared.pt", method=zipfile.ZIP_DEFLATED), shared())
    swapped = {kind: made(kind, (2, 3), 5) for kind in PLAIN}

    def reversed_bytes(name, data):
        if name == "byteorder":
            return b"big"
        if not name.startswith("data/"):
            return data
        unit = {"complex64": 4, "complex128": 8}.get(PLAIN[int(name[5:])]) or getattr(torch, PLAIN[int(name[5:])]).itemsize
        return b"".join(data[i:i + unit][::-1] for i in range(0, len(data), unit))

    w.raw("big_endian.pt", rewritten(folder / "dtypes.pt", change=reversed_bytes), swapped)
    return w


def write_script(w):
    net = Net().eval()
    net.requires_grad_(False)
    scripted = torch.jit.script(net)
    torch.jit.save(scripted, str(w.folder / "script.pt"))
    w.note("script.pt", dict(net.state_dict()), script=True)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    w = write_all(folder)
    write_script(w)
    lines = []
    for name, file in sorted(w.files.items()):
        items = [f"  {json.dumps(key)}: [" + ",".join(f"\n   {json.dumps(one)}" for one in value) + "]" if isinstance(value, list) else f"  {json.dumps(key)}: {json.dumps(value)}"
                 for key, value in file.items()]
        lines.append(f" {json.dumps(name)}: {{\n" + ",\n".join(items) + "}")
    (folder / "manifest.json").write_text(f'{{"written_by": "torch {torch.__version__.split("+")[0]}", "files": {{\n' + ",\n".join(lines) + "}}\n")


if __name__ == "__main__":
    main()
