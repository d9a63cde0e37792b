# SPDX-License-Identifier: Apache-2.0
"""Shared by the interop tests: the command, the environments of the published packages, random tensors, and a small zTensor writer
over cbor2. The packages and the tests decide what is correct."""
import hashlib
import json
import os
import pathlib
import struct
import subprocess
import tempfile

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing: tools/python-environments.sh makes the environment")
ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is missing: tools/python-environments.sh makes the environment")
cbor2 = pytest.importorskip("cbor2", reason="cbor2 is missing: tools/python-environments.sh makes the environment")

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMMAND = os.environ.get("WEIGHBRIDGE") or str(ROOT / "build/release/weighbridge")
TEST_DATA = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA") or ROOT.parent / "shared/data")

# The project's short name -> numpy's type. F6 and F4 have none of whole bytes.
NUMPY_OF = {
    "bool": np.bool_, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32, "i32": np.int32,
    "u64": np.uint64, "i64": np.int64, "f16": np.float16, "f32": np.float32, "f64": np.float64, "complex64": np.complex64,
    "complex128": np.complex128, "bf16": ml_dtypes.bfloat16, "f8_e4m3": ml_dtypes.float8_e4m3fn,
    "f8_e5m2": ml_dtypes.float8_e5m2, "f8_e8m0": ml_dtypes.float8_e8m0fnu, "f8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz}
NUMPY_OF = {name: np.dtype(kind) for name, kind in NUMPY_OF.items()}
NAME_OF = {kind: name for name, kind in NUMPY_OF.items()}
ZT_NAMES = [name for name in NUMPY_OF if name not in ("f8_e8m0", "f8_e4m3fnuz", "f8_e5m2fnuz")]
SAFETENSORS_NAMES = [name for name in NUMPY_OF if name != "complex128"]
# Published zTensor packages before 1.2's `type` cannot say these (reading Y8).
BEYOND_ZT_11 = {"f8_e4m3", "f8_e5m2", "complex64", "complex128"}


def weighbridge(*arguments, status=0):
    """Runs the command, checks the exit status, and returns its standard output as bytes."""
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == status, (arguments, done.returncode, done.stdout[-2000:], done.stderr.decode(errors="replace")[-2000:])
    return done.stdout


def inspected(path):
    """name -> what `inspect --json` says of the tensor."""
    return {tensor["name"]: tensor for tensor in json.loads(weighbridge("inspect", "--json", path))["files"][0]["tensors"]}


def content_digest(path):
    return weighbridge("hash", path).decode().split()[0]


def extracted(path, name, *flags):
    """The bytes of one tensor; its name may begin with a dash, but as an argument it holds no NUL."""
    return weighbridge("extract", "-o", "-", *flags, "--", path, name)


def all_extracted(path):
    """name -> bytes, of every tensor."""
    with tempfile.TemporaryDirectory() as folder:
        done = json.loads(weighbridge("extract", path, "--glob", "*", "--raw", "--json", "-o", folder + "/all"))
        return {tensor["name"]: pathlib.Path(tensor["output"]).read_bytes() for tensor in done["tensors"]}


def environment(name):
    """The interpreter of build/venv-NAME; skips the test if it does not exist."""
    python = ROOT / f"build/venv-{name}/bin/python"
    if not python.exists():
        pytest.skip(f"build/venv-{name} is missing: tools/python-environments.sh makes it where the package index can be reached")
    return python


def run_python(name, script, *arguments):
    """Runs a script of this folder inside an environment; returns its stdout."""
    done = subprocess.run([environment(name), HERE / script, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def sha256(data):
    return hashlib.sha256(data).hexdigest()


SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 4), (2, 3, 4), (1, 1, 1, 9), (65, 33)]


def random_array(generator, name, shape):
    """Every bit pattern that the dtype has, NaN payloads and infinities included; bool is 0 or 1."""
    kind, count = NUMPY_OF[name], int(np.prod(shape, dtype=np.int64))
    if name == "bool":
        return generator.integers(0, 2, count).astype(np.bool_).reshape(shape)
    return np.frombuffer(generator.bytes(count * kind.itemsize), kind).reshape(shape).copy()


ODD_NAMES = ["", "a b", "über.größe", "层.0", "\U0001f980", "quote\"back\\slash", "tab\there", "new\nline", "nul\0in", "\u202egpj",
             "a/b/../c", "-o", "\u007f", "e\u0301", "\u2028"]


def random_model(seed, names, tensors=12):
    """name -> array; names hold every kind of character that JSON escapes."""
    generator = np.random.Generator(np.random.PCG64(seed))
    model = {}
    for i in range(tensors):
        plain = f"layer.{generator.integers(0, 50)}.w{i}"
        name = ODD_NAMES[generator.integers(len(ODD_NAMES))] + plain if generator.random() < 0.4 else plain
        model[name] = random_array(generator, names[generator.integers(len(names))], SHAPES[generator.integers(len(SHAPES))])
    return model


def one_of_each(names):
    """Every dtype in every shape."""
    generator = np.random.Generator(np.random.PCG64(3))
    return {f"{name}.{'x'.join(map(str, shape)) or 'scalar'}": random_array(generator, name, shape)
            for name in names for shape in SHAPES}


def expect_equal(path, model):
    """Checks that the file's tensors are exactly these, bit by bit."""
    listed = inspected(path)
    assert set(listed) == set(model)
    content = all_extracted(path) if model else {}
    for name, array in model.items():
        assert listed[name]["dtype"] == NAME_OF[array.dtype] and tuple(listed[name]["shape"]) == array.shape, name
        assert content[name] == array.tobytes(), name


def zt_bytes(objects, attributes=None, version="1.1.0"):
    """A .zt file. objects: name -> (shape, format, {role: array}, attributes or None)."""
    out, index = bytearray(b"ZTEN1000"), {}
    for name, (shape, layout, parts, own) in objects.items():
        components = {}
        for role, array in parts.items():
            out += bytes(-len(out) % 64)
            components[role] = {"dtype": NAME_OF[array.dtype], "offset": len(out), "length": array.nbytes}
            out += array.tobytes()
        index[name] = {"shape": list(shape), "format": layout, "components": components}
        if own is not None:
            index[name]["attributes"] = own
    out += bytes(-len(out) % 64)
    root = {"version": version, "objects": index}
    if attributes is not None:
        root["attributes"] = attributes
    manifest = cbor2.dumps(root)
    return bytes(out) + manifest + struct.pack("<Q", len(manifest)) + b"ZTEN1000"


def zt_manifest(path):
    """The manifest of a .zt file, as cbor2 reads it."""
    data = pathlib.Path(path).read_bytes()
    assert data[:8] == data[-8:] == b"ZTEN1000"
    size, = struct.unpack("<Q", data[-16:-8])
    return cbor2.loads(data[len(data) - 16 - size:len(data) - 16])
