# SPDX-License-Identifier: Apache-2.0
"""Runs read_dump and the published readers over changed files, and says where they read other things."""
import base64
import collections
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

import families

HERE = pathlib.Path(__file__).resolve().parent


sys.path.append(str(HERE.parents[2] / "corpus"))
from conform import Missing, Process  # noqa: E402


class Lines(Process):
    """A process that answers each line with a line of JSON."""

    def __init__(self, command, seconds, folder, greets):
        surroundings = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH",)}
        surroundings.update(HOME=str(folder), TMPDIR=str(folder), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", HDF5_USE_FILE_LOCKING="FALSE")
        super().__init__(command, seconds, cwd=folder, env=surroundings)
        self.greets, self.greeting = greets, None

    def start(self):
        super().start()
        if self.greets:
            line = self.line(300)
            self.greeting = json.loads(line) if line else {"missing": "it does not start"}
            if "missing" in self.greeting:
                self.stop()
                raise Missing(self.greeting["missing"])

    def ask(self, questions):
        """An answer for each; {"ends": ...} or {"hangs": true} in place of what did not come."""
        out = []
        while len(out) < len(questions):
            batch = questions[len(out):len(out) + 40]
            self.send(batch)
            for _ in batch:
                line = self.line(self.seconds)
                if line:
                    out.append(json.loads(line))
                    continue
                code = self.process.poll() if line is None else self.process.wait()
                out.append({"hangs": True} if line is None else {"ends": code})
                self.stop()
                break
        return out


# What weighbridge says of a file with these findings is less than what the reader gives: it says so.
LEAVES_OUT = {"pytorch/opaque"}
PICKLES = {"pickle-c", "pickle-python", "numpy-pickles"}
# An array of objects has the shape that its pickle gives it, and may be anything else; it is never read here.
OBJECTS = {"npy/object", "npz/object"}


class Weighbridge:
    def __init__(self, command, folder):
        self.lines, self.harmless = Lines([str(command)], 60, folder, False), {}

    def files(self, paths):
        return self.lines.ask([f"F {path}" for path in paths])

    def judges(self, names):
        """What it thinks of a global of a pickle."""
        if names not in self.harmless:
            module, name = (text.encode("utf-8", "surrogatepass").hex() for text in names)
            self.harmless[names], = self.lines.ask([f"G {module} {name}"])
        return self.harmless[names]


def from_base64(text):
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def same_value(ours, theirs):
    """`theirs` as readers.py writes it, `ours` as JSON of inspect has it."""
    if isinstance(ours, list) and len(ours) == 1:
        ours = ours[0]  # a scalar of NumPy
    if isinstance(theirs, dict):
        return isinstance(ours, str) and from_base64(ours) == bytes.fromhex(theirs["bytes"])
    if isinstance(theirs, list):
        number = float.fromhex(theirs[0])
        if isinstance(ours, bool) or not isinstance(ours, (int, float, str)):
            return False
        try:
            value = float(ours)
        except ValueError:
            return False
        if number != number or value != value:
            return number != number and value != value
        if value == number:
            return str(value)[0] == str(number)[0]  # the sign of zero
        import numpy as np
        return np.float32(value) == np.float32(number) and float(np.float32(number)) == number  # the shortest decimal of an f32
    if isinstance(theirs, int) and not isinstance(theirs, bool) and abs(theirs) >= 2**63 and isinstance(ours, str):
        if ours.lstrip("-") == str(abs(theirs)):
            return int(ours) == theirs
        content = from_base64(ours)
        return content is not None and int.from_bytes(content, "little", signed=True) == theirs
    if isinstance(theirs, str) and isinstance(ours, str) and "\ufffd" in theirs:  # not UTF-8: bytes here
        content = from_base64(ours)
        return ours == theirs or content is not None and content.decode("utf-8", "replace") == theirs
    return type(ours) is type(theirs) and ours == theirs


def show(text, most=160):
    text = text if isinstance(text, str) else json.dumps(text)
    return text if len(text) <= most else text[:most] + "..."


def differences(reader, ours, theirs, judges):
    """(kind, sentence) of each difference. The kinds of failures: global, tensor, missing, more, value; `refused` is only counted."""
    findings = ours["verdict"]["findings"]
    said = "\n".join(finding["found"] or "" for finding in findings)
    pytorch = ours["verdict"]["format"] == "pytorch"
    for module, name in theirs["globals"]:
        if f"{module}.{name}" in said or "a name that the pickle computes" in said or (pytorch and module.split(".")[0] == "__torch__"):  # reading P9
            continue
        if not pytorch and not re.fullmatch(r"[\w.]+", module):
            continue  # nothing of that name can be imported: these are bytes of another format
        judged = judges((module, name))
        if not judged["harmless"] and not (pytorch and judged["pytorch"]):
            yield "global", f"names {module!r}.{name!r}, which no finding says"
    if theirs["refuses"]:
        if not theirs["refuses"].startswith("differential:"):
            yield "refused", theirs["refuses"]
        return
    if not pytorch and ours["verdict"]["format"] not in ("npy", "npz") and not theirs["globals"] and reader in PICKLES:
        return  # of plain values; any bytes can be one by chance (reading G15)
    inspection = ours["inspection"]
    mine = {tensor["name"]: (tensor, digest) for tensor, digest in zip(inspection["tensors"], ours["digests"])}
    big = {tensor["name"] for tensor, order in zip(inspection["tensors"], ours["big"]) if order}
    rules = {finding["rule"] for finding in findings}
    for name in theirs["doubles"]:
        yield "tensor", f"has {name!r} twice"
    for name, (dtype, shape, digest) in theirs["tensors"].items():
        if name not in mine:
            if dtype is None and isinstance(inspection["attributes"].get(name), (str, list)):
                continue  # a text, or a row of texts
            if not rules & LEAVES_OUT and not (reader == "numpy-pickles" and rules & OBJECTS):
                yield "missing", f"also has {name!r}: {dtype} {shape}"
            continue
        tensor, own = mine[name]
        if tensor["supported"] and own != "limit" and [tensor["type"] if tensor.get("type") and dtype not in (None, tensor["dtype"]) else tensor["dtype"], tensor["shape"], own] != [dtype, shape, digest]:
            if pytorch and dtype in ("u16", "u32", "u64") and name in big:
                continue  # PyTorch 2.15 does not swap their bytes: it reads other numbers than those of the machine that wrote them
            if dtype == "f16" and tensor["dtype"] in ("f8_e4m3", "f8_e5m2"):
                continue  # h5py widens floats of 8 bits
            if dtype == "q8_1":
                continue  # of 40 bytes a block in the package gguf, of 36 in GGML (reading U8)
            what = "shape" if tensor["shape"] != shape else "dtype" if tensor["dtype"] != dtype and tensor.get("type") != dtype else "elements"
            yield "tensor", f"{what} of {name!r}: {dtype} {shape} {str(digest)[:8]}, here {tensor['dtype']} {tensor['shape']} {str(own)[:8]}"
        elif not tensor["supported"] and not rules & OBJECTS and tensor["shape"] is not None and shape is not None and tensor["shape"] != shape:
            yield "tensor", f"shape of {name!r} (unsupported): {shape}, here {tensor['shape']}"
    for name, (tensor, _) in mine.items() if not theirs["odd"] else ():
        if name not in theirs["tensors"] and tensor["supported"]:
            yield "more", f"does not have {name!r}"
    yield from different_values(reader, inspection["attributes"], theirs["values"], rules)


def different_values(reader, mine, theirs, rules):
    for name, value in theirs.items():
        if name in mine:
            if not same_value(mine[name], value):
                yield "value", f"{name!r} is {show(value)}, here {show(mine[name])}"
        elif "[" in name and name.endswith("]") and name.rpartition("[")[0] in mine:  # an item of a list
            key, _, index = name[:-1].rpartition("[")
            items = mine[key]
            if not isinstance(items, list) or int(index) >= len(items) or not same_value(items[int(index)], value):
                yield "value", f"{name!r} is {show(value)}, here {show(items)}"
        elif reader in ("safetensors", "gguf"):
            yield "value", f"{name!r} is {show(value)}, and not here"


Found = collections.namedtuple("Found", "family reader index kind said")


class Run:
    """A family over many indices of one seed."""
    def __init__(self, family, seed, command, python, keep=None):
        self.family, self.seed, self.keep = family, seed, keep
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="differential-"))
        about = families.FAMILIES[family]
        for name, content in about.neighbors.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_bytes(content)
        self.ours = Weighbridge(command, self.folder)
        self.readers = {name: Lines([str(python), "-B", str(HERE / "readers.py"), name], 20, self.folder, True) for name in about.readers}
        self.found, self.tried, self.accepted, self.refused, self.worse = [], 0, 0, collections.Counter(), collections.Counter()

    def start(self):
        for reader in self.readers.values():
            reader.start()
        return self

    def batch(self, indices):
        extension = families.FAMILIES[self.family].extension
        paths = {}
        for index in indices:
            path = self.folder / f"{index}.{extension}"
            path.write_bytes(families.file_of(self.family, self.seed, index))
            paths[index] = path
        answers = dict(zip(paths, self.ours.files(paths.values())))
        self.tried += len(paths)
        accepted = []
        for index, answer in answers.items():
            if "verdict" not in answer:
                self.add(index, "weighbridge", "weighbridge", json.dumps(answer))
            elif answer["verdict"]["valid"]:
                accepted.append(index)
        self.accepted += len(accepted)
        for name, reader in self.readers.items():
            for index, theirs in zip(accepted, reader.ask([paths[index] for index in accepted])):
                if "globals" not in theirs:
                    self.worse[name, json.dumps(theirs)] += 1
                    continue
                for kind, said in differences(name, answers[index], theirs, self.ours.judges):
                    if kind == "refused":
                        self.refused[name, said[:60]] += 1
                    else:
                        self.add(index, name, kind, said)
        for path in paths.values():
            path.unlink()

    def add(self, index, reader, kind, said):
        self.found.append(Found(self.family, reader, index, kind, said))
        if self.keep and len(self.found) < 200:
            self.keep.mkdir(parents=True, exist_ok=True)
            name = f"{self.family}-{self.seed}-{index}.{families.FAMILIES[self.family].extension}"
            (self.keep / name).write_bytes(families.file_of(self.family, self.seed, index))
            with open(self.keep / "found.txt", "a") as file:
                print(f"{name}: {reader} {kind}: {said!r}", file=file)

    def close(self):
        self.ours.lines.stop()
        for reader in self.readers.values():
            reader.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
