# SPDX-License-Identifier: Apache-2.0
"""Runs inside an environment of PyPI's ztensor: ztensor_read.py FILE... prints what the package reads from each file, as JSON:
[{name: {"dtype", "type", "shape", "layout", "attributes", "array", "parts": {role: hexadecimal bytes}}}], or {"error"} in a file's
place. "array" is false if the package makes no array of a dense tensor; "data" is then what it reads from the part."""
import json
import sys

import ztensor

ROLES = {"sparse_csr": ["values", "indices", "indptr"], "sparse_coo": ["values", "coords"],
         "quantized_group": ["packed_weight", "scales", "zeros"]}


def stored_111(reader, name, role):
    array, owner = reader._read_component(name, role, lambda: "u1")
    content = array.tobytes()  # while the owner of its memory lives
    del owner
    return content


def dense_111(reader, tensor):
    checked, = reader.read_tensors([tensor.name], verify_checksum=True)
    single = reader.read_tensor(tensor.name)  # mapped when raw
    assert single.tobytes() == checked.tobytes() and single.shape == checked.shape == tensor.shape
    return single.tobytes()


def read_111(path):
    out = {}
    with ztensor.Reader(path) as reader:
        for tensor in reader:
            array = True
            if tensor.layout == "dense":
                try:
                    parts = {"data": dense_111(reader, tensor)}
                except (ValueError, ztensor.ZTensorError):
                    array, parts = False, {"data": stored_111(reader, tensor.name, "data")}
            else:
                parts = {role: stored_111(reader, tensor.name, role) for role in ROLES[tensor.layout]}
            out[tensor.name] = {"dtype": tensor.dtype_str, "type": None, "shape": tensor.shape, "layout": tensor.layout,
                                "attributes": None, "array": array, "parts": parts}
    return out


def read_123(path):
    out, reader = {}, ztensor.Reader(path)
    for name in reader.keys():
        about, array = reader.metadata(name), True
        try:
            parts = {role: part.tobytes() for role, part in reader.read(name).components.items()}
        except ValueError:
            array, parts = False, {"data": reader._inner._read_component_raw(name, "data")[0].tobytes()}
        out[name] = {"dtype": about.dtype, "type": about.type, "shape": about.shape, "layout": about.format,
                     "attributes": about.attributes, "array": array, "parts": parts}
    return out


def read(path):
    try:
        return (read_123 if hasattr(ztensor, "Tensor") else read_111)(path)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


print(json.dumps([read(path) for path in sys.argv[1:]], default=bytes.hex))
