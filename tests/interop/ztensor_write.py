# SPDX-License-Identifier: Apache-2.0
"""Runs inside an environment of PyPI's ztensor: ztensor_write.py FILE PLAN writes what PLAN says. PLAN is JSON: {"append": bool,
"tensors": [{"name", "layout", "shape", "parts": {role: [numpy dtype, hexadecimal bytes]}, "type", "attributes", "compress",
"checksum"}]}."""
import json
import sys

import ml_dtypes  # noqa: F401  numpy knows bfloat16 by its name then
import numpy as np
import ztensor


def array(part):
    return np.frombuffer(bytes.fromhex(part[1]), np.dtype(part[0])).copy()


def write_111(path, plan):
    with ztensor.Writer(path) as writer:
        for t in plan["tensors"]:
            parts = {role: array(part) for role, part in t["parts"].items()}
            if t["layout"] == "sparse_csr":
                writer.add_sparse_csr(t["name"], parts["values"], parts["indices"], parts["indptr"], t["shape"])
            elif t["layout"] == "sparse_coo":
                writer.add_sparse_coo(t["name"], parts["values"], parts["coords"], t["shape"])
            else:
                # np.ascontiguousarray would make a scalar one-dimensional: the package does so by itself
                writer.add_tensor(t["name"], parts["data"].reshape(t["shape"]), compress=t["compress"])


def write_123(path, plan):
    with (ztensor.Writer.append if plan["append"] else ztensor.Writer)(path) as writer:
        for t in plan["tensors"]:
            parts = {role: array(part) for role, part in t["parts"].items()}
            if t["layout"] == "dense" and not t["type"]:
                parts["data"] = parts["data"].reshape(t["shape"])
            tensor = ztensor.Tensor(parts, shape=t["shape"], format=t["layout"], type=t["type"], attributes=t["attributes"])
            writer.write(t["name"], tensor, compress=t["compress"], checksum=t["checksum"])


with open(sys.argv[2], encoding="utf-8") as file:
    (write_123 if hasattr(ztensor, "Tensor") else write_111)(sys.argv[1], json.load(file))
