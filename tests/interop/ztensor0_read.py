# SPDX-License-Identifier: Apache-2.0
"""Runs inside the environment of PyPI's ztensor 0.1.4: ztensor0_read.py FILE... prints what the package reads from each file, as
JSON: [[{"name", "dtype", "shape", "layout", "encoding", "checksum", "bytes" (hexadecimal)}]], or {"error"} in a file's place."""
import json
import sys

import ztensor


def read(path):
    out = []
    with ztensor.Reader(path) as reader:
        for about in reader:
            array = reader.read_tensor(about.name)
            assert tuple(array.shape) == tuple(about.shape), about.name
            out.append({"name": about.name, "dtype": about.dtype_str, "shape": about.shape, "layout": about.layout,
                        "encoding": about.encoding, "checksum": about.checksum, "bytes": array.tobytes().hex()})
    return out


def attempt(path):
    try:
        return read(path)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


print(json.dumps([attempt(path) for path in sys.argv[1:]]))
