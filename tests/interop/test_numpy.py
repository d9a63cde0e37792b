# SPDX-License-Identifier: Apache-2.0
"""Written .npy and .npz against NumPy, both ways: every dtype, order and shape class, memory maps, Python's zipfile, and what NumPy
would read differently."""
import collections
import datetime
import decimal
import io
import json
import os
import pathlib
import pickle
import shutil
import struct
import subprocess
import warnings
import zipfile
import zlib

import pytest

from interop_tools import COMMAND, NUMPY_OF, content_digest, extracted, inspected, ml_dtypes, np, weighbridge

safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment")

VOID = [name for name in NUMPY_OF if name == "bf16" or name.startswith("f8")]
PLAIN = [name for name in NUMPY_OF if name not in VOID]
NUMPYS_OWN = sorted((pathlib.Path(np.__file__).parent / "lib/tests/data").glob("*.np[yz]"))
SHAPES = {"scalar": (), "empty": (0, 3), "vector": (7,), "cube": (3, 4, 5), "one": (1, 1)}


def array_of(name, shape, seed=0):
    kind = NUMPY_OF[name]
    count = int(np.prod(shape))
    numbers = np.random.default_rng(seed).integers(0, 2 if name == "bool" else 100, count)
    return numbers.astype(kind).reshape(shape)


def variants(array):
    yield "c", array
    yield "fortran", np.asfortranarray(array)
    if array.dtype.itemsize > 1:
        yield "big", array.astype(array.dtype.newbyteorder(">"))
    if array.ndim > 1:
        yield "steps", np.repeat(array, 2, axis=-1)[..., ::2]


def all_arrays():
    out = {}
    for name in PLAIN:
        for shape_name, shape in SHAPES.items():
            for order, array in variants(array_of(name, shape)):
                out[f"{name}/{shape_name}.{order}"] = array
    return out


def expect_arrays(path, arrays):
    with np.load(path, allow_pickle=False) as there:
        assert there.files == list(arrays)
        for name, array in arrays.items():
            got = there[name]
            assert got.shape == array.shape and got.dtype == array.dtype.newbyteorder("="), name
            assert np.array_equal(got, array), name


def expect_archive(path, stored):
    """Python's reader and unzip find nothing wrong, and elements that are stored begin at a multiple of 64."""
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        infos = archive.infolist()
        for info in infos:
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            name, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
            if stored:
                begin = info.header_offset + 30 + name + extra
                assert info.compress_type == zipfile.ZIP_STORED and (begin + 10 + struct.unpack_from("<H", data, begin + 8)[0]) % 64 == 0
    if infos and shutil.which("unzip"):  # which warns of an empty archive
        assert subprocess.run(["unzip", "-tqq", path], capture_output=True).returncode == 0


@pytest.mark.parametrize("encoding", ["raw", "deflate"])
@pytest.mark.parametrize("save", ["savez", "savez_compressed"])
def test_every_dtype_order_and_shape_through_an_archive(tmp_path, encoding, save):
    arrays = all_arrays()
    source, out, again = tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "c.npz"
    getattr(np, save)(source, **arrays)
    weighbridge("convert", source, out, "--encoding", encoding)
    weighbridge("convert", out, again, "--encoding", encoding)
    expect_arrays(out, arrays)
    expect_archive(out, encoding == "raw")
    weighbridge("verify", out)
    assert out.read_bytes() == again.read_bytes() and content_digest(source) == content_digest(out)


def test_through_safetensors_and_back(tmp_path):
    arrays = {name: array for name, array in all_arrays().items() if "complex128" not in name}
    source, middle, out = tmp_path / "a.npz", tmp_path / "b.safetensors", tmp_path / "c.npz"
    np.savez(source, **arrays)
    weighbridge("convert", source, middle)
    weighbridge("convert", middle, out)
    with np.load(out) as there:
        assert set(there.files) == set(arrays)
        for name, array in arrays.items():
            assert there[name].dtype == array.dtype.newbyteorder("=") and np.array_equal(there[name], array), name


@pytest.mark.parametrize("dtype", PLAIN)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_an_array_is_byte_for_byte_what_numpy_saves(tmp_path, dtype, shape):
    for order, array in variants(array_of(dtype, shape)):
        source, out = tmp_path / f"{order}.npy", tmp_path / f"{order}-out.npy"
        np.save(source, array)
        weighbridge("convert", source, out)
        expected = io.BytesIO()
        np.save(expected, np.array(array, dtype=array.dtype.newbyteorder("="), order="C"))
        assert out.read_bytes() == expected.getvalue()
        if array.size:
            mapped = np.load(out, mmap_mode="r")
            assert isinstance(mapped, np.memmap) and np.array_equal(mapped, array) and mapped.offset % 64 == 0


def header_of(descr, count):
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


# Letters with an order, and names.
WORDS = [order + word for word in "?bBhHiIlLqQnNpPefdFD" for order in ("", "<", ">", "|", "=")] + [
    word for names in ("bool bool_ byte ubyte short ushort intc uintc int int_ uint long ulong longlong ulonglong intp uintp half single float double",
                       "csingle complex cdouble int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128",
                       "bfloat16 float8_e4m3fn float8_e5m2 float8_e8m0fnu float8_e4m3fnuz float8_e5m2fnuz") for word in names.split()]


@pytest.mark.parametrize("word", WORDS)
def test_every_spelling_of_a_type_reads_as_numpy_reads_it(tmp_path, word):
    kind = np.dtype(word)
    array = np.array([0, 1, 1, 0], kind) if kind.kind == "b" else np.arange(1, 5).astype(kind)
    (tmp_path / "a.npy").write_bytes(header_of(word, 4) + array.tobytes())
    there = inspected(tmp_path / "a.npy")["array"]
    assert NUMPY_OF[there["dtype"]] == kind.newbyteorder("=")
    assert extracted(tmp_path / "a.npy", "array", "--raw") == array.astype(kind.newbyteorder("=")).tobytes()


@pytest.mark.parametrize("word", ["<float64", ">bool", "float33", "f3", "<f", "f1", "a", "<a", "O2", "M4", "S", "U", "longdouble", "int4", "?1", "i16"])
def test_a_spelling_is_refused_where_numpy_refuses_it(tmp_path, word):
    (tmp_path / "a.npy").write_bytes(header_of(word, 0))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.dtype(getattr(ml_dtypes, word, word)) if word != "f1" else None
        status = {0, 3}
    except TypeError:
        status = {1}
    done = subprocess.run([COMMAND, "verify", tmp_path / "a.npy"], capture_output=True, timeout=60)
    assert done.returncode in status, done.stdout


def test_what_ml_dtypes_saves_as_f1_is_float8_e5m2(tmp_path):
    array = np.array([1, 2, 0.5, -4], ml_dtypes.float8_e5m2)
    np.save(tmp_path / "a.npy", array)
    assert inspected(tmp_path / "a.npy")["array"]["dtype"] == "f8_e5m2" and extracted(tmp_path / "a.npy", "array", "--raw") == array.tobytes()


def test_raw_bytes_of_ml_dtypes_are_read_by_as(tmp_path):
    bf16, f8 = np.array([1, 2, 0.5, -3], ml_dtypes.bfloat16), np.array([[1, 2], [0.5, -4]], ml_dtypes.float8_e4m3fn)
    np.savez(tmp_path / "a.npz", w=bf16, f=f8, u=np.asfortranarray(np.arange(6, dtype=np.uint16).reshape(2, 3)))
    done = subprocess.run([COMMAND, "verify", tmp_path / "a.npz"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and "--as w=bf16" in done.stdout + done.stderr
    options = ["--as", "w=bf16", "--as", "f=f8_e4m3", "--as", "u=f16"]
    weighbridge("verify", tmp_path / "a.npz", *options)
    out = tmp_path / "a.safetensors"
    weighbridge("convert", tmp_path / "a.npz", out, *options)
    assert {name: each["dtype"] for name, each in inspected(out).items()} == {"w": "bf16", "f": "f8_e4m3", "u": "f16"}
    assert extracted(out, "w", "--raw") == bf16.tobytes() and extracted(out, "f", "--raw") == f8.tobytes()
    assert extracted(out, "u", "--raw") == np.arange(6, dtype=np.uint16).tobytes()
    weighbridge("inspect", tmp_path / "a.npz", "--as", "w=f32", status=2)
    weighbridge("inspect", tmp_path / "a.npz", "--as", "x=bf16", status=2)
    weighbridge("inspect", tmp_path / "a.npz", "--as", "w=bf17", status=2)


def test_texts_and_objects_do_not_stop_a_conversion_or_an_extraction(tmp_path):
    labels = np.array(["Haus", "\u00f6l", "\U0001f600"])
    np.savez(tmp_path / "a.npz", data=np.ones(3), format=np.array(b"csr"), labels=labels, big=labels.astype(">U4"), many=np.full(99_999, "abc"),
             o=np.array([{}, None], dtype=object))
    there = json.loads(weighbridge("inspect", "--json", tmp_path / "a.npz"))["files"][0]
    assert there["attributes"] == {"format": "csr", "labels": labels.tolist(), "big": labels.tolist()}
    assert [each["name"] for each in there["tensors"]] == ["data", "many", "o"]
    for target in ("safetensors", "npz", "zt", "pt", "gguf"):
        said = weighbridge("convert", tmp_path / "a.npz", tmp_path / f"b.{target}").decode()
        assert list(inspected(tmp_path / f"b.{target}")) == ["data"] and 'tensors["many"]' in said and 'tensors["o"]' in said
    done = subprocess.run([COMMAND, "extract", tmp_path / "a.npz", "--only", "*", "-o", tmp_path / "x"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "many" in done.stderr and "--" not in done.stderr
    assert [each.name for each in (tmp_path / "x").iterdir()] == ["data.npy"] and np.array_equal(np.load(tmp_path / "x/data.npy"), np.ones(3))


@pytest.mark.parametrize("dtype", VOID)
@pytest.mark.parametrize("target", ["npy", "npz", "deflated.npz"])
def test_types_of_ml_dtypes_are_void_items(tmp_path, dtype, target):
    kind = NUMPY_OF[dtype]
    array = np.arange(24, dtype=np.uint8).view(kind).reshape(2, -1)
    safetensors, out = tmp_path / "a.safetensors", tmp_path / f"b.{target}"
    name = {"bf16": "BF16", "f8_e4m3": "F8_E4M3", "f8_e5m2": "F8_E5M2", "f8_e8m0": "F8_E8M0", "f8_e4m3fnuz": "F8_E4M3FNUZ",
            "f8_e5m2fnuz": "F8_E5M2FNUZ"}[dtype]
    header = f'{{"array":{{"dtype":"{name}","shape":[{",".join(map(str, array.shape))}],"data_offsets":[0,24]}}}}'.encode()
    header += b" " * (-len(header) % 8)
    safetensors.write_bytes(struct.pack("<Q", len(header)) + header + array.tobytes())
    options = ["--encoding", "deflate"] if target.startswith("deflated") else []
    weighbridge("convert", safetensors, out, *options, status=1)
    assert not out.exists()
    weighbridge("convert", safetensors, out, "--allow", "dtype", *options)
    got = np.load(out) if target == "npy" else np.load(out)["array"]
    assert got.dtype.kind == "V" and got.dtype.itemsize == kind.itemsize and got.shape == array.shape
    assert got.view(kind).tobytes() == array.tobytes()
    if target != "npy":  # the archive's comment states the type
        assert inspected(out)["array"]["dtype"] == dtype and extracted(out, "array", "--raw") == array.tobytes()
    if target == "npy" and dtype != "f8_e5m2":  # ml_dtypes saves that as <f1, which numpy.load refuses
        expected = io.BytesIO()
        np.save(expected, array)
        assert out.read_bytes() == expected.getvalue()


def test_large_arrays_are_streamed_and_the_same_each_time(tmp_path):
    rng = np.random.default_rng(3)
    arrays = {"noise": rng.standard_normal((1200, 1100)), "zeros": np.zeros((3000, 1000), np.float32), "small": np.arange(5),
              "fortran": np.asfortranarray(rng.integers(0, 9, (1500, 1300)))}
    source = tmp_path / "a.npz"
    np.savez(source, **arrays)
    for encoding in ("raw", "deflate"):
        outs = [tmp_path / f"{encoding}-{threads}.npz" for threads in (1, 4)]
        for threads, out in zip((1, 4), outs):
            weighbridge("convert", source, out, "--encoding", encoding, "--threads", threads)
        expect_arrays(outs[0], arrays)
        expect_archive(outs[0], encoding == "raw")
        weighbridge("verify", outs[0])
        assert outs[0].read_bytes() == outs[1].read_bytes()
    assert outs[0].stat().st_size < source.stat().st_size


def test_canonical_archives_are_equal(tmp_path):
    arrays = {"b": np.arange(6).reshape(2, 3), "a": np.ones(3, np.float32)}
    np.savez(tmp_path / "a.npz", **arrays)
    np.savez_compressed(tmp_path / "b.npz", **dict(reversed(arrays.items())))
    for name in "ab":
        weighbridge("convert", tmp_path / f"{name}.npz", tmp_path / f"{name}-out.npz", "--canonical")
    assert (tmp_path / "a-out.npz").read_bytes() == (tmp_path / "b-out.npz").read_bytes()


@pytest.mark.parametrize("count", [0, 1, 10_000, 65_534, 65_535, 70_000])
def test_many_members(tmp_path, count):
    source, out = tmp_path / "a.safetensors", tmp_path / "b.npz"
    safetensors_numpy.save_file({f"t{i}": np.array([i], np.int32) for i in range(count)}, source)
    weighbridge("convert", source, out)
    with np.load(out) as there:
        assert len(there.files) == count
        for i in range(0, count, 997):
            assert there[f"t{i}"] == [i]
    expect_archive(out, True)
    weighbridge("verify", out)


@pytest.mark.parametrize("encoding", ["raw", "deflate"])
def test_names(tmp_path, encoding):
    names = ["a", "A", "layers/0/w", "x.npy", "é 猫", "-", "a..b", ".hidden", "n" * 3000]
    source, out = tmp_path / "a.safetensors", tmp_path / "b.npz"
    arrays = {name: np.array([i], np.int64) for i, name in enumerate(names)}
    safetensors_numpy.save_file(arrays, source)
    weighbridge("convert", source, out, "--encoding", encoding)
    with np.load(out) as there:
        assert set(there.files) == set(names)
        assert all(np.array_equal(there[name], array) for name, array in arrays.items())
    expect_archive(out, encoding == "raw")


@pytest.mark.parametrize("names", [["../x"], ["/x"], ["a/../../x"], ["a\\b"], ["C:x"], ["a\0b"], ["n" * 65_532], ["x", "x.npy"]])
def test_names_that_an_archive_cannot_have(tmp_path, names):
    source, out = tmp_path / "a.safetensors", tmp_path / "b.npz"
    safetensors_numpy.save_file({name: np.zeros(1, np.float32) for name in names}, source)
    weighbridge("convert", source, out, status=1)
    assert not out.exists()


def test_what_numpy_cannot_hold(tmp_path):
    source = tmp_path / "a.safetensors"
    safetensors_numpy.save_file({"a": np.zeros(2, np.float32), "b": np.zeros(2, np.float32)}, source, {"k": "v"})
    weighbridge("convert", source, tmp_path / "b.npy", "--allow", "attribute,name", status=1)
    weighbridge("convert", source, tmp_path / "b.npz", status=1)
    weighbridge("convert", source, tmp_path / "b.npz", "--allow", "attribute")
    weighbridge("convert", source, tmp_path / "b.npy", "--only", "b", "--allow", "attribute,name")
    assert np.load(tmp_path / "b.npy").tolist() == [0, 0]
    assert not list(tmp_path.glob("*.tmp*"))


@pytest.mark.parametrize("path", NUMPYS_OWN, ids=lambda path: path.name)
def test_files_of_numpys_own_tests(path):
    """NumPy's wheel has a few: one that it opens without pickle opens here with the same array; the others are listed, and say why."""
    theirs = {}
    try:
        loaded = np.load(path, allow_pickle=False)
        theirs = dict(loaded) if path.suffix == ".npz" else {"array": loaded}
    except ValueError:  # objects
        pass
    found = json.loads(weighbridge("inspect", path, "--json"))["files"][0]
    assert found["tensors"]
    weighbridge("verify", path, status=0 if theirs else 3)
    for tensor in found["tensors"]:
        assert tensor["supported"] == (tensor["name"] in theirs)
        if tensor["supported"]:
            array = theirs[tensor["name"]]
            assert tensor["shape"] == list(array.shape)
            assert extracted(path, tensor["name"], "--raw") == np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
        else:
            assert "object" in json.dumps(found["findings"])


LARGE = (1 << 32) + 64  # bytes: above what 32 bits state


def with_hole(path, member, size, crc):
    """An archive as numpy.savez writes it, with one array of u8 whose bytes are a hole; its last byte is 7."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "|u1", "fortran_order": False, "shape": (size,)})
    head = head.getvalue()
    crc = zlib.crc32(b"\7", crc(zlib.crc32(head), size - 1))
    whole = len(head) + size
    name = (member + ".npy").encode()
    local = struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 33, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20) + name
    local += struct.pack("<HHQQ", 1, 16, whole, whole)
    entry = struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 0, 33, crc, 0xFFFFFFFF, 0xFFFFFFFF, len(name), 20, 0, 0, 0, 0, 0)
    entry += name + struct.pack("<HHQQ", 1, 16, whole, whole)
    at = len(local) + whole
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, 1, 1, len(entry), at)
    end = end64 + struct.pack("<IIQI", 0x07064B50, 0, at + len(entry), 1)
    end += struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 1, 1, len(entry), 0xFFFFFFFF, 0)
    with open(path, "wb") as file:
        file.write(local + head)
        file.seek(len(local) + whole - 1)
        file.write(b"\7" + entry + end)


def crc_of_zeros(crc, count):
    block = bytes(1 << 24)
    while count:
        n = min(count, len(block))
        crc, count = zlib.crc32(block if n == len(block) else block[:n], crc), count - n
    return crc


@pytest.mark.skipif(not os.environ.get("WEIGHBRIDGE_LARGE"), reason="reads 20 GB of holes, for a minute: WEIGHBRIDGE_LARGE=1 runs it")
def test_a_member_above_4_gib_goes_both_ways(tmp_path):
    source, out = tmp_path / "a.npz", tmp_path / "b.npz"
    with_hole(source, "w", LARGE, crc_of_zeros)
    with zipfile.ZipFile(source) as archive:  # the witness takes it
        assert archive.infolist()[0].file_size > LARGE
    weighbridge("verify", source)
    weighbridge("convert", source, tmp_path / "deflated.npz", "--encoding", "deflate")  # small, with sizes above 4 GiB
    assert content_digest(tmp_path / "deflated.npz") == content_digest(source)
    if shutil.disk_usage(tmp_path).free > 8 << 30:
        weighbridge("convert", source, out)
        with zipfile.ZipFile(out) as archive, archive.open("w.npy") as member:
            assert archive.infolist()[0].file_size > LARGE
            assert np.lib.format.read_magic(member) == (1, 0)
            assert np.lib.format.read_array_header_1_0(member) == ((LARGE,), False, np.dtype("u1"))
        out.unlink()
    with zipfile.ZipFile(tmp_path / "deflated.npz") as archive, archive.open("w.npy") as member:
        assert archive.infolist()[0].file_size > LARGE
        last = b""
        while piece := member.read(1 << 24):  # to the end, where zipfile compares the CRC-32
            last = piece
        assert last[-1:] == b"\7"


def test_headers_above_4_gib_are_read_from_a_hole(tmp_path):
    """The same archive without reading its 4 GiB: listing it reads the headers alone."""
    path = tmp_path / "a.npz"
    with_hole(path, "w", LARGE, crc=lambda crc, count: crc)
    found = json.loads(weighbridge("inspect", path, "--json"))["files"][0]["tensors"]
    assert [(tensor["name"], tensor["shape"]) for tensor in found] == [("w", [LARGE])]
    assert path.stat().st_blocks * 512 < 1 << 20


class Named:
    pass


class Calls:
    def __reduce__(self):
        return (os.system, ("true",))


HARMLESS = [1, "a", None, {"k": [1.5]}, (1, 2), b"x", np.float32(2), np.arange(3), np.datetime64("2020-01-01"), decimal.Decimal("1.5"),
            datetime.date(2020, 1, 1), pathlib.Path("/a"), collections.OrderedDict(a=1), {1, 2}, range(3), 1 << 80, np.dtype("f4"), np.str_("a")]
FIELDS = np.zeros(2, [("number", "<i2"), ("object", "O")])


def objects(*items):
    out = np.empty(len(items), object)
    for i, item in enumerate(items):
        out[i] = item
    return out


def with_field(item):
    out = FIELDS.copy()
    out["object"][1] = item
    return out


@pytest.mark.parametrize("save", ["save", "savez", "savez_compressed"])
@pytest.mark.parametrize("array,rules,status", [
    (objects(*HARMLESS), [], 3), (objects(), [], 3), (with_field(None), [], 3), (objects(1, Named()), ["unknown-global"], 3),
    (objects(Calls(), 1), ["dangerous-global"], 1), (with_field(Calls()), ["dangerous-global"], 1),
    (objects(pickle.dumps(Calls())), ["dangerous-global"], 1)])
def test_what_the_pickle_of_an_object_array_would_call(tmp_path, save, array, rules, status):
    """Its globals are judged as those of a PyTorch checkpoint, and nothing is called."""
    path = tmp_path / ("a.npy" if save == "save" else "a.npz")
    if save == "save":
        np.save(path, array)
    else:
        getattr(np, save)(path, plain=np.arange(3), mixed=array)
    report = json.loads(weighbridge("verify", path, "--json", status=status))["files"][0]
    kind = path.suffix[1:]
    found = [finding["rule"] for finding in report["findings"] if finding["rule"] not in (f"{kind}/object", f"{kind}/structured")]
    assert found == [f"{kind}/{rule}" for rule in rules]
    if rules == ["dangerous-global"]:
        assert "system" in json.dumps(report["findings"])
        # An npz has other arrays, which the pickle does not touch.
        weighbridge("convert", path, tmp_path / "out.safetensors", "--allow", "unsupported", status=1 if save == "save" else 0)


def test_an_object_array_that_is_cut_off_is_an_error(tmp_path):
    whole, path = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(whole, objects(*HARMLESS))
    path.write_bytes(whole.read_bytes()[:-5])
    with pytest.raises(Exception):
        np.load(path, allow_pickle=True)
    report = json.loads(weighbridge("verify", path, "--json", status=1))["files"][0]
    assert [finding["rule"] for finding in report["findings"]] == ["npy/object", "npy/pickle"]
