# SPDX-License-Identifier: Apache-2.0
# Shared by all tests of the command: the command itself, small files made byte by byte, and the committed schemas.
# WEIGHBRIDGE names the command; the default is the release build.
import io
import json
import os
import pathlib
import struct
import subprocess
import zipfile

import pytest

try:
    import jsonschema
except ImportError:  # then the tests that check JSON skip
    jsonschema = None
try:
    import referencing
except ImportError:  # before jsonschema 4.18, as Debian 12 has it
    referencing = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("WEIGHBRIDGE") or str(ROOT / "build/release/weighbridge")
TEST_DATA = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA") or ROOT.parent / "shared/data")
SCHEMAS = {path.stem: json.loads(path.read_text()) for path in (ROOT / "docs/schemas").glob("*.json")}
SIZES = {"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "U8": 1, "I8": 1, "BOOL": 1, "F8_E4M3": 1}


def weighbridge(*arguments, status=0, text=True, **options):
    """Runs the command, checks the exit status, and returns its output. `input` is text for standard input."""
    given = {"input": options.pop("input").encode()} if "input" in options else {"stdin": options.pop("stdin", subprocess.DEVNULL)}
    done = subprocess.run([COMMAND, *map(str, arguments)], stdout=options.pop("stdout", subprocess.PIPE),
                          stderr=subprocess.PIPE, timeout=60, **given, **options)
    if text:
        done.stdout, done.stderr = ((s or b"").decode() for s in (done.stdout, done.stderr))
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def validated(text, schema):
    """The JSON value of `text`, which must be valid by docs/schemas/<schema>.json."""
    if not jsonschema:
        pytest.skip("needs the Python package jsonschema")
    value = json.loads(text)
    if not referencing:
        resolver = jsonschema.RefResolver("", {}, store={each["$id"]: each for each in SCHEMAS.values()})
        jsonschema.Draft202012Validator(SCHEMAS[schema], resolver=resolver).validate(value)
        return value
    registry = referencing.Registry().with_resources(
        (each["$id"], referencing.Resource.from_contents(each)) for each in SCHEMAS.values())
    jsonschema.Draft202012Validator(SCHEMAS[schema], registry=registry).validate(value)
    return value


def tensors_of(path):
    """Of a .safetensors: dtype, shape and bytes by name."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    return {name: (each["dtype"].lower(), each["shape"], data[end + each["data_offsets"][0]:end + each["data_offsets"][1]])
            for name, each in header.items() if name != "__metadata__"}


def safetensors(tensors, metadata=None):
    """The bytes of a .safetensors file; tensors: name -> (dtype, shape, bytes)."""
    header, offset = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *(data for _, _, data in tensors.values())])


def cbor(value):
    """A value of text, non-negative integers, lists and dicts as CBOR."""
    def head(major, count):
        size = next(size for size in (0, 1, 2, 4, 8) if count < (24 if size == 0 else 1 << 8 * size))
        if size == 0:
            return bytes([major << 5 | count])
        return bytes([major << 5 | {1: 24, 2: 25, 4: 26, 8: 27}[size]]) + count.to_bytes(size, "big")

    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(part) for item in value.items() for part in item)


def ztensor(objects):
    """The bytes of a .zt file; objects: name -> (format, shape, {role: (dtype, bytes)})."""
    body, manifest = b"ZTEN1000", {"version": "1.1.0", "objects": {}}
    for name, (layout, shape, parts) in objects.items():
        components = {}
        for role, (dtype, data) in parts.items():
            body += b"\0" * (-len(body) % 64)
            components[role] = {"dtype": dtype, "offset": len(body), "length": len(data)}
            body += data
        manifest["objects"][name] = {"shape": shape, "format": layout, "components": components}
    text = cbor(manifest)
    return body + text + struct.pack("<Q", len(text)) + b"ZTEN1000"


def torch_archive(tensors):
    """What torch.save writes of {name: (class of the storage, bytes, bytes of an element, shape, strides, metadata)}; metadata: a dict of bools."""
    def text(value):
        return b"X" + struct.pack("<I", len(value.encode())) + value.encode()

    def number(value):
        return b"\x8a\x08" + struct.pack("<q", value)

    pickled, archive = b"\x80\x02}", io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as file:
        for key, (name, (kind, data, width, shape, strides, metadata)) in enumerate(tensors.items()):
            storage = b"(" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" + text(str(key)) + text("cpu") + number(len(data) // width) + b"tQ"
            sizes = b"".join(b"(" + b"".join(map(number, each)) + b"t" for each in (shape, strides))
            more = b"" if metadata is None else b"}" + b"".join(text(k) + (b"\x88" if v else b"\x89") + b"s" for k, v in metadata.items())
            pickled += (text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(0) + sizes + b"\x89ccollections\nOrderedDict\n)R" +
                        more + b"tRs")
            file.writestr(f"archive/data/{key}", data)
        file.writestr("archive/data.pkl", pickled + b".")
        file.writestr("archive/version", "3\n")
    return archive.getvalue()


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


@pytest.fixture
def sample(tmp_path):
    """Four tensors of three dtypes with metadata."""
    path = tmp_path / "sample.safetensors"
    path.write_bytes(safetensors({
        "layer.weight": ("F32", [2, 3], floats(1, -2.5, 0, 4, 5, 6)),
        "layer.bias": ("F32", [3], floats(0, 0, 0.5)),
        "embedding": ("BF16", [2, 2], bytes.fromhex("803f0040c0bf0000")),
        "steps": ("I64", [], struct.pack("<q", -7)),
    }, {"format": "pt", "note": "a\tb"}))
    return path


@pytest.fixture
def broken(tmp_path):
    """Its only tensor ends after the end of the file."""
    path = tmp_path / "broken.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [4], floats(1, 2, 3, 4))})[:-4])
    return path


@pytest.fixture
def sparse(tmp_path):
    """[[0, 5, 0], [0, 0, 7]] as coordinates, a layout that .safetensors lacks."""
    path = tmp_path / "sparse.zt"
    path.write_bytes(ztensor({"s": ("sparse_coo", [2, 3], {
        "values": ("f32", floats(5, 7)), "coords": ("u64", struct.pack("<4Q", 0, 1, 1, 2))})}))
    return path


@pytest.fixture
def strange(tmp_path):
    """One good tensor, and one with an unknown layout."""
    path = tmp_path / "strange.zt"
    path.write_bytes(ztensor({"good": ("dense", [1], {"data": ("f32", floats(1))}),
                              "odd": ("fractal", [2], {"data": ("u8", b"ab")})}))
    return path
