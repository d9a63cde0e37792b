#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What published packages read in files, for test_differential.py: `readers.py NAME`, in a process of its own.

Reads paths from standard input and prints a line of JSON for each, with what a reader got:
  tensors   name -> [dtype, shape, SHA-256 of the elements]; dtype is null if this project has no type for them
  values    name -> plain value; numbers with a point are [float.hex()]
  globals   the [module, name] that it asked for, of pickles
  refuses   why it stopped, if it did; the globals until then count

Nothing that a pickle names is run: find_class records each name and returns a thing of REAL, which is a class or function that only
makes values, or a Stub if the name is harmless otherwise, and refuses every other."""
import base64
import collections
import hashlib
import importlib.metadata
import io
import json
import os
import pathlib
import pickle
import sys

import numpy as np

from confine import confine

MEMORY = 4 << 30
MOST_VALUES = 4000

try:
    import ml_dtypes
    SMALL = {"bfloat16": "bf16", "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2", "float8_e8m0fnu": "f8_e8m0", "float8_e4m3fnuz": "f8_e4m3fnuz",
             "float8_e5m2fnuz": "f8_e5m2fnuz"}
    SMALL = {np.dtype(getattr(ml_dtypes, name)): ours for name, ours in SMALL.items()}
except ImportError:
    SMALL = {}
PLAIN = {"b1": "bool", "u1": "u8", "i1": "i8", "u2": "u16", "i2": "i16", "u4": "u32", "i4": "i32", "u8": "u64", "i8": "i64", "f2": "f16", "f4": "f32",
         "f8": "f64", "c8": "complex64", "c16": "complex128"}


class Refused(Exception):
    """By this program, not by the package."""


def dtype_of(dtype):
    return SMALL.get(dtype) or (None if dtype.kind == "V" or dtype.fields else PLAIN.get(dtype.str[1:]))


def digest(content):
    return hashlib.sha256(content).hexdigest()


def array(value, dtype=None):
    """An array of NumPy as [dtype, shape, digest]."""
    ours = dtype or dtype_of(value.dtype)
    if ours is None:
        return [None, list(value.shape), None]
    value = np.asarray(value)
    if ours == "bool":
        value = np.ascontiguousarray(value).view(np.uint8).reshape(value.shape) != 0
    return [ours, list(value.shape), digest(value.astype(value.dtype.newbyteorder("<")).tobytes())]


def plain(value):
    """A value as JSON has it exactly."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return [float(value).hex()]
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": bytes(value).hex()}
    return NotImplemented


def shown(text):
    """Text without the lone surrogates that a pickle can have, as weighbridge prints it."""
    return str(text).encode("utf-8", "surrogatepass").decode("utf-8", "replace")


class Got:
    def __init__(self):
        self.tensors, self.values, self.globals, self.doubles, self.odd = {}, {}, [], [], False

    def tensor(self, name, about):
        if name in self.tensors:
            self.doubles.append(name)
        else:
            self.tensors[name] = about

    def value(self, name, value):
        value = plain(value)
        if value is not NotImplemented and len(self.values) < MOST_VALUES:
            self.values.setdefault(name, value)

    def walk(self, path, value, tensor, seen):
        """Containers as reading P5 names what is in them; `tensor(value)` describes an array or a tensor, or returns None."""
        if len(path) > 60 or len(self.tensors) + len(self.values) > MOST_VALUES:
            return
        about = tensor(value)
        name = ".".join(path)
        if about is not None:
            self.tensor(name if path else "tensor", about)
        elif isinstance(value, (dict, list, tuple)):
            if id(value) in seen:
                return
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in items:
                if isinstance(key, bytes):
                    key = base64.b64encode(key).decode()
                if isinstance(key, (str, int, bool, type(None))):
                    self.walk((*path, shown(key)), item, tensor, seen | {id(value)})
                else:
                    self.odd = True  # a name that this does not know how to spell
        else:
            self.value(name if path else "value", value)


# ----------------------------------------------------------------------------------------------------------------- pickles


class Stub:
    """In place of what a harmless name means."""
    def __new__(cls, *_, **__):
        return object.__new__(cls)

    def __init__(self, *_, **__):
        pass

    def __call__(self, *_, **__):
        return Stub()

    def __setstate__(self, state):
        pass

    def __setitem__(self, key, value):
        pass

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def add(self, item):
        pass

    def __hash__(self):
        return 1


def _real():
    import _codecs
    out = {("collections", "OrderedDict"): collections.OrderedDict, ("_codecs", "encode"): _codecs.encode, ("builtins", "set"): set,
           ("builtins", "frozenset"): frozenset, ("builtins", "complex"): complex, ("builtins", "bytearray"): bytearray, ("builtins", "bytes"): bytes,
           ("builtins", "dict"): dict, ("builtins", "list"): list}
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        out[module, "_reconstruct"] = np._core.multiarray._reconstruct
        out[module, "scalar"] = np._core.multiarray.scalar
    for module in ("numpy._core.numeric", "numpy.core.numeric"):
        out[module, "_frombuffer"] = np._core.numeric._frombuffer
    out["numpy", "ndarray"], out["numpy", "dtype"] = np.ndarray, np.dtype
    return out


REAL = _real()
HARMLESS = {("argparse", "Namespace"), ("collections", "defaultdict"), ("collections", "deque"), ("datetime", "datetime"), ("datetime", "date"),
            ("decimal", "Decimal"), ("fractions", "Fraction"), ("pathlib", "PosixPath"), ("torch", "Tensor"), ("uuid", "UUID"), ("copyreg", "_reconstructor")}


def recording(got, unpickler, real=REAL):
    """A class of unpicklers that records names and derives from `unpickler`."""
    class Recording(unpickler):
        def find_class(self, module, name):
            got.globals.append([shown(module), shown(name)])
            # What old pickles of protocol 2 and lower call it.
            renamed = (module.replace("__builtin__", "builtins"), name)
            if renamed in real:
                return real[renamed]
            if renamed in HARMLESS:
                return Stub
            raise Refused(f"{module}.{name}")
    return Recording


def numpy_in_pickle(value):
    return array(value) if isinstance(value, np.ndarray) else None


def read_pickle(unpickler):
    def read(path, got):
        with open(path, "rb") as file:
            got.walk((), recording(got, unpickler)(file).load(), numpy_in_pickle, frozenset())
    return read


def pickle_c():
    return read_pickle(pickle.Unpickler)


def pickle_python():
    return read_pickle(pickle._Unpickler)


# ------------------------------------------------------------------------------------------------------------------- torch


def torch_tensor():
    import torch
    ours = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "complex64", "complex128": "complex128", "bool": "bool",
            "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2", "float8_e4m3fnuz": "f8_e4m3fnuz", "float8_e5m2fnuz": "f8_e5m2fnuz",
            "float8_e8m0fnu": "f8_e8m0", **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}}

    def tensor(value):
        if isinstance(value, np.ndarray):
            return array(value)
        if isinstance(value, torch.jit.ScriptModule):
            raise Refused("TorchScript")
        if isinstance(value, torch.storage.TypedStorage):
            value = torch.empty(0, dtype=value.dtype).set_(value._untyped_storage)
        if isinstance(value, torch.UntypedStorage):
            return ["u8", [value.nbytes()], digest(bytes(value.tolist()))]
        if not isinstance(value, torch.Tensor):
            return None
        if value.dtype == torch.float4_e2m1fn_x2 and value.device.type == "cpu" and value.dim():
            content = value.contiguous().view(torch.uint8)
            return ["f4", [*value.shape[:-1], 2 * value.shape[-1]], digest(content.numpy().tobytes())]
        dtype = ours.get(str(value.dtype).removeprefix("torch."))
        if dtype is None or value.is_quantized or value.device.type != "cpu" or type(value) not in (torch.Tensor, torch.nn.Parameter):
            return [None, list(value.shape), None]
        if value.layout in (torch.sparse_coo, torch.sparse_csr):
            value = value.to_dense()
        elif value.layout != torch.strided:
            return [None, list(value.shape), None]
        if value.numel() > 1 << 24:
            raise Refused("large")
        value = value.detach().resolve_conj().resolve_neg().contiguous()
        content = value.view(torch.uint8) if value.dim() else value.reshape(1).view(torch.uint8)
        content = content.numpy().tobytes()
        if dtype == "bool":
            content = bytes(byte != 0 for byte in content)
        return [dtype, list(value.shape), digest(content)]
    return tensor


def torch_full():
    import types

    import torch
    tensor = torch_tensor()
    real = dict(REAL)
    for name in dir(torch._utils):
        if name.startswith("_rebuild_") and name not in ("_rebuild_wrapper_subclass", "_rebuild_device_tensor_from_numpy", "_rebuild_device_tensor_from_cpu_tensor",
                                                         "_rebuild_xla_tensor"):
            real["torch._utils", name] = getattr(torch._utils, name)
    real["torch.nn.parameter", "Parameter"], real["torch", "Tensor"] = torch.nn.Parameter, torch.Tensor
    real["torch._tensor", "_rebuild_from_type_v2"] = torch._tensor._rebuild_from_type_v2  # calls what this table gave
    real["torch.serialization", "_get_layout"] = torch.serialization._get_layout
    for name in dir(torch):
        value = getattr(torch, name)
        if isinstance(value, (torch.dtype, torch.layout, torch.qscheme)) or name.endswith("Storage") or name in ("Size", "device"):
            real["torch", name] = value
    for name in ("UntypedStorage", "TypedStorage"):
        real["torch.storage", name] = getattr(torch.storage, name)

    def read(path, got):
        own = types.ModuleType("recording")
        own.__dict__.update(pickle.__dict__)
        own.Unpickler = recording(got, pickle.Unpickler, real)
        own.load = lambda file, **kinds: own.Unpickler(file, **kinds).load()
        own.loads = lambda content, **kinds: own.load(io.BytesIO(content), **kinds)
        got.walk((), torch.load(path, map_location="cpu", weights_only=False, pickle_module=own), tensor, frozenset())
    return read


def torch_weights_only():
    import torch
    tensor = torch_tensor()

    def read(path, got):
        got.walk((), torch.load(path, map_location="cpu", weights_only=True), tensor, frozenset())
    return read


# ------------------------------------------------------------------------------------------------------------------- numpy


def read_numpy(pickles):
    import types

    import numpy.lib._format_impl as formats
    import numpy.lib._npyio_impl as npyio

    def read(path, got):
        own = types.ModuleType("recording")
        own.__dict__.update(pickle.__dict__)
        own.load = lambda file, **kinds: recording(got, pickle.Unpickler)(file, **kinds).load()
        formats.pickle = npyio.pickle = own
        loaded = np.load(path, allow_pickle=pickles)
        if isinstance(loaded, np.ndarray):
            got.tensor("array", array(loaded))
        elif isinstance(loaded, np.lib.npyio.NpzFile):
            with loaded:
                for name in loaded.files:
                    value = loaded[name]
                    if isinstance(value, np.ndarray):
                        got.tensor(name, array(value))
        else:
            got.walk((), loaded, numpy_in_pickle, frozenset())
    return read


def numpy_plain():
    return read_numpy(False)


def numpy_pickles():
    return read_numpy(True)


# ------------------------------------------------------------------------------------------------------- the other packages


def safetensors():
    from safetensors import deserialize, safe_open
    ours = {"BOOL": "bool", "C64": "complex64", **{name.upper(): name for name in (
        "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2", "f8_e8m0", "f8_e4m3fnuz", "f8_e5m2fnuz", "f6_e2m3",
        "f6_e3m2", "f4")}}

    def read(path, got):
        with safe_open(path, framework="numpy") as file:
            for name, value in (file.metadata() or {}).items():
                got.value(name, value)
            names = list(file.keys())
        for name, tensor in deserialize(pathlib.Path(path).read_bytes()):
            dtype, content = ours.get(tensor["dtype"]), bytes(tensor["data"])
            if dtype == "bool":
                content = bytes(byte != 0 for byte in content)
            got.tensor(name, [dtype, list(tensor["shape"]), dtype and digest(content)])
        if sorted(names) != sorted([*got.tensors, *got.doubles]):
            raise Refused("its two readers differ")
    return read


def gguf():
    from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType
    scalars = {name: name.lower() for name in ("F32", "F16", "F64", "BF16", "I8", "I16", "I32", "I64")}

    def read(path, got):
        reader = GGUFReader(path)
        for name, field in reader.fields.items():
            if name.startswith("GGUF."):
                continue
            value = field.contents()
            if field.types[0] != GGUFValueType.ARRAY:
                got.value(name, value)
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    got.value(f"{name}[{i}]", item)
        for tensor in reader.tensors:
            kind = GGMLQuantizationType(tensor.tensor_type).name
            content = tensor.data
            if kind == "BF16" and reader.byte_order == "S":  # which the package has as bytes
                content = content.reshape(-1, 2)[:, ::-1]
            elif kind in scalars:
                content = content.astype(content.dtype.newbyteorder("<"))
            got.tensor(tensor.name, [scalars.get(kind, kind.lower()), [int(d) for d in reversed(tensor.shape)], digest(content.tobytes())])
    return read


def onnx():
    import onnx as package
    from onnx import numpy_helper

    constants = {"value", "sparse_value", "value_float", "value_floats", "value_int", "value_ints", "value_string", "value_strings"}
    packed = {name: (dtype, int(dtype[1])) for name, dtype in (("int4", "i4"), ("uint4", "u4"), ("int2", "i2"), ("uint2", "u2"), ("float4_e2m1fn", "f4"),
                                                              ("float6_e2m3fn", "f6_e2m3"), ("float6_e3m2fn", "f6_e3m2"))}

    def about(tensor):
        value = numpy_helper.to_array(tensor)
        if value.dtype.name not in packed:
            return array(value)
        dtype, bits = packed[value.dtype.name]
        codes = [code & (1 << bits) - 1 for code in np.ascontiguousarray(value).reshape(-1).view(np.uint8).tolist()]
        number = sum(code << bits * i for i, code in enumerate(codes))
        return [dtype, list(value.shape), digest(number.to_bytes((len(codes) * bits + 7) // 8, "little"))]

    def sparse(message):
        """Its dense form: indices are those of the elements in order, or one for each dimension."""
        values, indices = numpy_helper.to_array(message.values), numpy_helper.to_array(message.indices)
        shape = tuple(message.dims)
        if np.prod([float(d) for d in shape]) > 1 << 20:
            raise Refused("large")
        dense = np.zeros(shape, values.dtype)
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
        return array(dense)

    def graph_of(prefix, graph, got):
        for tensor in getattr(graph, "initializer", ()):  # a function has none
            got.tensor(prefix + tensor.name, about(tensor))
        for item in getattr(graph, "sparse_initializer", ()):
            got.tensor(prefix + item.values.name, sparse(item))
        for node in graph.node:
            where = next((name for name in node.output if name), node.name or node.op_type)
            for attribute in node.attribute:
                constant = node.op_type == "Constant" and node.domain in ("", "ai.onnx") and attribute.name in constants
                name = prefix + (where if constant else f"{where}.{attribute.name}")
                if attribute.HasField("sparse_tensor"):
                    got.tensor(name, sparse(attribute.sparse_tensor))
                if attribute.HasField("t"):
                    got.tensor(name, about(attribute.t))
                elif attribute.name == "value_float" and constant and attribute.HasField("f"):
                    got.tensor(name, array(np.float32(attribute.f)))
                elif attribute.name == "value_int" and constant and attribute.HasField("i"):
                    got.tensor(name, array(np.int64(attribute.i)))
                elif attribute.name == "value_floats" and constant:
                    got.tensor(name, array(np.array(attribute.floats, np.float32)))
                elif attribute.name == "value_ints" and constant:
                    got.tensor(name, array(np.array(attribute.ints, np.int64)))
                for i, tensor in enumerate(attribute.tensors):
                    got.tensor(f"{name}.{i}", about(tensor))
                if attribute.HasField("g"):
                    graph_of(f"{prefix}{where}.{attribute.name}/", attribute.g, got)

    def read(path, got):
        model = package.load(path)
        graph_of("", model.graph, got)
        for function in model.functions:
            graph_of((f"{function.domain}." if function.domain else "") + function.name + (f":{function.overload}" if function.overload else "") + "/", function, got)
        for i, training in enumerate(model.training_info):
            for field in ("initialization", "algorithm"):
                graph_of(f"training_info.{i}.{field}/", getattr(training, field), got)
        for item in model.metadata_props:
            got.value(item.key, item.value)
        for item in model.opset_import:
            got.value(f"onnx.opset_import.{item.domain or 'ai.onnx'}", str(item.version))
        for name in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
            if model.HasField(name):
                value = getattr(model, name)
                got.value(f"onnx.{name}", str(value) if isinstance(value, int) else value)
    return read


def h5py():
    import h5py as package

    def look(group, prefix, above, got):
        for name in group:
            link = group.get(name, getlink=True)
            if link is None:
                raise KeyError(f"{name!r} is listed, and not found")
            if not isinstance(link, package.HardLink):
                continue
            item, path = group[name], f"{prefix}{name}"
            values(item, path, got)
            if isinstance(item, package.Dataset):
                got.tensor(path, read_dataset(item))
            elif isinstance(item, package.Group) and item.id.__hash__() not in above and len(above) < 50:
                look(item, path + "/", above | {item.id.__hash__()}, got)

    def read_dataset(item):
        if item.shape is None:
            return [None, None, None]
        if item.size > 1 << 24:
            raise Refused("large")
        if item.dtype.kind not in "biufc" or (item.id.get_type().get_class() == package.h5t.ENUM and item.dtype.kind != "b"):
            return [None, list(item.shape), None]
        value = item[()]
        if value.dtype == np.float32 and item.id.get_type().get_size() == 2:  # bf16, which h5py has no type for
            return ["bf16", list(value.shape), digest(np.ascontiguousarray(value).view("<u4").astype("<u4").__rshift__(16).astype("<u2").tobytes())]
        return array(value)

    def values(item, path, got):
        for key in item.attrs:
            value = item.attrs[key]
            if isinstance(value, (str, np.integer, np.floating)) and not isinstance(value, package.Empty):
                got.value(f"{path}@{key}", value)

    def read(path, got):
        with package.File(path, "r", locking=False) as file:
            values(file, "", got)
            look(file, "", frozenset([file.id.__hash__()]), got)
    return read


READERS = {"pickle-c": ("pip", pickle_c), "pickle-python": ("pip", pickle_python), "torch-weights-only": ("torch", torch_weights_only),
           "torch-full": ("torch", torch_full), "numpy": ("numpy", numpy_plain), "numpy-pickles": ("numpy", numpy_pickles),
           "safetensors": ("safetensors", safetensors), "gguf": ("gguf", gguf), "onnx": ("onnx", onnx), "h5py": ("h5py", h5py)}


def main(name):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if not os.environ.get("DIFFERENTIAL_SHOW"):
        os.dup2(1, 2)

    def answer(what):
        print(json.dumps(what), file=answers, flush=True)

    package, start = READERS[name]
    try:
        read, version = start(), importlib.metadata.version(package) if package != "pip" else sys.version.split()[0]
    except ImportError as error:
        return answer({"missing": str(error)})
    answer({"version": version, "confined": confine(MEMORY)})
    for line in sys.stdin:
        got, refuses = Got(), None
        try:
            read(line.rstrip("\n"), got)
        except Refused as error:
            refuses = f"differential: {error}"
        except KeyboardInterrupt:
            return None
        except BaseException as error:  # a panic of Rust is not an Exception
            refuses = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        answer({"tensors": got.tensors, "values": got.values, "globals": got.globals, "doubles": got.doubles, "odd": got.odd, "refuses": refuses})


if __name__ == "__main__":
    main(sys.argv[1])
