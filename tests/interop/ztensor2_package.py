# SPDX-License-Identifier: Apache-2.0
"""Runs inside the environment of the published ztensor 2.1.2. `read FILE` prints what the package reads, as JSON; `write FILE MODEL` writes the
objects of MODEL, JSON text of {name: {"shape", "layout", "attributes", "parts": {role: {"dtype", "logical", "encoding", "hex"}}}}."""
import json
import sys

import ztensor


def read(path):
    source = ztensor.open(path)
    checked = source.verify(deep=True)
    out = {}
    for name in source:
        tensor = source[name]
        parts = {}
        for role in tensor.parts:
            part = tensor[role]
            parts[role] = {"dtype": part.dtype, "logical": part.logical, "hex": part.tobytes().hex()}
        out[name] = {"shape": tensor.shape, "layout": tensor.layout, "parts": parts}
    print(json.dumps({"objects": out, "checked": checked.checked, "undigested": checked.undigested, "attributes": source.attributes}))


def write(path, text, canonical):
    objects = json.loads(text)
    writer = ztensor.Writer(path, canonical=canonical)
    for name in sorted(objects, key=lambda each: each.encode()):
        item = objects[name]
        parts = {}
        for role, part in item["parts"].items():
            made = {"dtype": part["dtype"], "data": bytes.fromhex(part["hex"])}
            made.update({key: part[key] for key in ("logical", "encoding") if part.get(key)})
            parts[role] = made
        writer.add_object(name, item["shape"], parts, layout=item["layout"], attributes=item.get("attributes"))
    writer.finish()


if sys.argv[1] == "read":
    read(sys.argv[2])
else:
    write(sys.argv[2], sys.argv[3], len(sys.argv) > 4)
