# SPDX-License-Identifier: Apache-2.0
"""Tests both directions against the published packages ztensor 1.1.1 and 1.2.3, each in its own environment. Our files open there with
equal arrays, except as readings Y4 (index parts that are not u64) and Y8 (float8 and complex without 1.2's `type`) say. Theirs verify
and extract here, and each side appends to the other's files."""
import json

import pytest

from interop_tools import (BEYOND_ZT_11, NAME_OF, NUMPY_OF, ZT_NAMES, content_digest, expect_equal, extracted,
                           inspected, np, one_of_each, random_array, random_model, run_python, weighbridge, zt_bytes, zt_manifest)

PACKAGES = ["ztensor111", "ztensor123"]
PLAIN = [name for name in ZT_NAMES if name not in BEYOND_ZT_11]
# What 1.2 stores the four in: the storage's numpy type; the shape counts logical elements.
STORAGE = {"f8_e4m3": ("uint8", "f8_e4m3fn"), "f8_e5m2": ("uint8", "f8_e5m2"),
           "complex64": ("float32", "complex64"), "complex128": ("float64", "complex128")}
ENCODINGS = [[], ["--encoding", "zstd"], ["--digest", "sha256"], ["--encoding", "zstd", "--digest", "crc32c"]]


def package_reads(package, *paths):
    return json.loads(run_python(package, "ztensor_read.py", *paths))


def expect_package_reads(package, path, objects):
    """objects: name -> (shape, layout, {role: array})."""
    read, = package_reads(package, path)
    assert "error" not in read, read
    assert set(read) == set(objects)
    for name, (shape, layout, parts) in objects.items():
        assert read[name]["layout"] == layout and tuple(read[name]["shape"]) == tuple(shape), name
        assert read[name]["parts"] == {role: array.tobytes().hex() for role, array in parts.items()}, name
        main = next(iter(parts.values()))
        # Where two elements are stored for one of the shape the packages make no array, of their own files neither.
        two = main.dtype.kind == "c" or layout == "dense" and main.size != np.prod(shape)
        scalar_passes = package == "ztensor123" and shape == ()
        assert read[name]["array"] == (not two or main.size == 0 or scalar_passes), name
        if NAME_OF[main.dtype] in BEYOND_ZT_11:
            storage, kind = STORAGE[NAME_OF[main.dtype]]
            assert read[name]["dtype"] == storage and read[name]["type"] == (kind if package == "ztensor123" else None), name
        elif layout != "quantized_group":  # the packages name the dtype of any one part
            assert read[name]["dtype"] == main.dtype.name, name


def dense(model):
    return {name: (array.shape, "dense", {"data": array}) for name, array in model.items()}


def without_nul(model):
    """Package 1.1.1 receives the names as C strings."""
    return {name: array for name, array in model.items() if "\0" not in name}


def csr(generator, dtype, index_dtype, rows=6, columns=9):
    counts = generator.integers(0, columns, rows)
    indices = [np.sort(generator.permutation(columns)[:n]) for n in counts]
    return {"values": random_array(generator, dtype, (int(counts.sum()),)),
            "indices": np.concatenate(indices).astype(NUMPY_OF[index_dtype]),
            "indptr": np.concatenate([[0], np.cumsum(counts)]).astype(NUMPY_OF[index_dtype])}


def coo(generator, dtype, index_dtype, shape=(4, 5, 6), count=11):
    flat = np.sort(generator.permutation(int(np.prod(shape)))[:count])
    return {"values": random_array(generator, dtype, (count,)),
            "coords": np.concatenate(np.unravel_index(flat, shape)).astype(NUMPY_OF[index_dtype])}


def quantized(generator, rows=32, columns=6, group=16):
    """4 bits, eight codes to an i32, along dimension 0 (reading Y5); and its dense form."""
    codes = generator.integers(0, 16, (rows, columns))
    zeros = generator.integers(0, 16, (rows // group, columns)).astype(np.float16)
    scales = (2.0 ** generator.integers(-5, 5, (rows // group, columns))).astype(np.float16)
    words = np.zeros((rows // 8, columns), np.uint32)
    for r in range(rows):
        words[r // 8] |= (codes[r] << (4 * (r % 8))).astype(np.uint32)
    values = (codes - np.repeat(zeros, group, 0).astype(np.float32)) * np.repeat(scales, group, 0).astype(np.float32)
    parts = {"packed_weight": words.view(np.int32), "scales": scales, "zeros": zeros}
    return parts, {"bits": 4, "group_size": group, "packing": "8_per_i32"}, values.astype(np.float32)


def composed(seed, index_dtype="u64"):
    """name -> (shape, layout, parts, attributes): every layout."""
    generator = np.random.Generator(np.random.PCG64(seed))
    parts, attributes, _ = quantized(generator)
    out = {"q": ((32, 6), "quantized_group", parts, attributes),
           "d": ((2, 3), "dense", {"data": random_array(generator, "bf16", (2, 3))}, None),
           "empty.csr": ((3, 4), "sparse_csr", {"values": np.zeros(0, np.float32), "indices": np.zeros(0, NUMPY_OF[index_dtype]),
                                                "indptr": np.zeros(4, NUMPY_OF[index_dtype])}, None)}
    for dtype in ("f32", "f64", "f16", "bf16", "i8", "u16", "i64"):
        out["csr." + dtype] = ((6, 9), "sparse_csr", csr(generator, dtype, index_dtype), None)
        out["coo." + dtype] = ((4, 5, 6), "sparse_coo", coo(generator, dtype, index_dtype), None)
    return out


def source_of(path, objects):
    """Makes a valid file of these objects beside `path`, not with our writer, and converts it to `path`."""
    source = path.with_suffix(".source.zt")
    source.write_bytes(zt_bytes(objects))
    weighbridge("verify", source)
    return source


def package_writes(package, path, objects, append=False, compress=False, checksum="none", types=None):
    """objects: name -> (shape, layout, {role: array})."""
    plan = {"append": append, "tensors": [
        {"name": name, "layout": layout, "shape": list(shape), "type": (types or {}).get(name), "attributes": None,
         "parts": {role: [array.dtype.name, array.tobytes().hex()] for role, array in parts.items()},
         "compress": compress, "checksum": checksum} for name, (shape, layout, parts) in objects.items()]}
    plan_path = path.with_suffix(".json")
    plan_path.write_text(json.dumps(plan))
    run_python(package, "ztensor_write.py", path, plan_path)


def save_safetensors(path, model):
    return path.write_bytes(pytest.importorskip("safetensors.numpy", reason="safetensors is missing").save(model))


# ------------------------------------------------------------------------------------------------------- ours, read there


@pytest.mark.parametrize("flags", ENCODINGS)
@pytest.mark.parametrize("package", PACKAGES)
def test_dense_of_every_dtype_opens_there(tmp_path, package, flags):
    model = {name: array for name, array in one_of_each(PLAIN).items()}
    source, path = tmp_path / "in.safetensors", tmp_path / "out.zt"
    save_safetensors(source, model)
    weighbridge("convert", source, path, *flags)
    expect_package_reads(package, path, dense(model))


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("seed", range(4))
def test_random_models_open_there(tmp_path, package, seed):
    model = without_nul(random_model(200 + seed, PLAIN, tensors=[0, 1, 15, 300][seed]))
    source, path = tmp_path / "in.safetensors", tmp_path / "out.zt"
    save_safetensors(source, model)
    weighbridge("convert", source, path, *ENCODINGS[seed])
    expect_package_reads(package, path, dense(model))


@pytest.mark.parametrize("flags", ENCODINGS)
@pytest.mark.parametrize("package", PACKAGES)
def test_float8_and_complex_open_there_with_version_1_2(tmp_path, package, flags):
    """Reading Y8: as 1.1 specifies them no published package opens them; with `type` both do."""
    model = one_of_each(sorted(BEYOND_ZT_11))
    source, path, plain = tmp_path / "in.zt", tmp_path / "out.zt", tmp_path / "plain.zt"
    source.write_bytes(zt_bytes({n: (*o, None) for n, o in dense(model).items()}))
    weighbridge("convert", source, path, "--zt-version", "1.2", *flags)
    assert zt_manifest(path)["version"] == "1.2.0"
    expect_package_reads(package, path, dense(model))
    expect_equal(path, model)
    weighbridge("convert", path, plain, "--zt-version", "1.1")
    expect_equal(plain, model)
    assert {o["components"]["data"]["dtype"] for o in zt_manifest(plain)["objects"].values()} == BEYOND_ZT_11
    read, = package_reads(package, plain)
    assert set(read) == {"error"}
    assert content_digest(source) == content_digest(path) == content_digest(plain)


@pytest.mark.parametrize("flags", [[], *ENCODINGS[1:], ["--zt-version", "1.2", "--encoding", "zstd"]])
@pytest.mark.parametrize("package", PACKAGES)
def test_sparse_and_quantized_open_there(tmp_path, package, flags):
    objects = composed(31)
    path = tmp_path / "out.zt"
    weighbridge("convert", source_of(path, objects), path, *flags)
    expect_package_reads(package, path, {name: entry[:3] for name, entry in objects.items()})


def test_quantized_attributes_and_the_dense_form(tmp_path):
    generator = np.random.Generator(np.random.PCG64(7))
    parts, attributes, values = quantized(generator)
    path = tmp_path / "out.zt"
    weighbridge("convert", source_of(path, {"q": ((32, 6), "quantized_group", parts, attributes)}), path, "--encoding", "zstd")
    read, = package_reads("ztensor123", path)
    assert read["q"]["attributes"] == attributes
    assert extracted(path, "q", "--dense=f32") == values.tobytes()
    for role, array in parts.items():
        assert extracted(path, "q", "--part", role) == array.tobytes()


@pytest.mark.parametrize("flags", [[], ["--encoding", "zstd"]])
@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize("package", PACKAGES)
def test_tensors_made_sparse_open_there(tmp_path, package, layout, flags):
    """Issue 16, A.8."""
    path = tmp_path / "out.zt"
    dense = np.zeros((20, 30), np.float32)
    dense[3, 7], dense[3, 9], dense[19, 29], dense[0, 0] = 1.5, np.nan, -2, -0.0
    rows, columns = np.nonzero(dense.view(np.uint32))
    parts = {"values": dense[rows, columns]}
    if layout == "csr":
        parts |= {"indices": columns.astype(np.uint64), "indptr": np.searchsorted(rows, np.arange(21)).astype(np.uint64)}
    else:
        parts |= {"coords": np.concatenate([rows, columns]).astype(np.uint64)}
    weighbridge("convert", source_of(path, {"w": ((20, 30), "dense", {"data": dense}, None)}), path, "--sparse", layout, *flags)
    expect_package_reads(package, path, {"w": ((20, 30), "sparse_" + layout, parts)})
    assert extracted(path, "w", "--dense", "--raw") == dense.tobytes()


def test_sparse_dense_forms(tmp_path):
    generator = np.random.Generator(np.random.PCG64(8))
    for index_dtype in ("u64", "i32", "u8"):
        rows, grid = csr(generator, "i32", index_dtype), coo(generator, "f64", index_dtype)
        path = tmp_path / f"{index_dtype}.zt"
        weighbridge("convert", source_of(path, {"csr": ((6, 9), "sparse_csr", rows, None),
                                               "coo": ((4, 5, 6), "sparse_coo", grid, None)}), path)
        want = np.zeros((6, 9), np.int32)
        for r in range(6):
            span = slice(int(rows["indptr"][r]), int(rows["indptr"][r + 1]))
            want[r, rows["indices"][span].astype(int)] = rows["values"][span]
        assert extracted(path, "csr", "--dense") == want.tobytes()
        want = np.zeros((4, 5, 6))
        want[tuple(grid["coords"].reshape(3, -1).astype(int))] = grid["values"]
        assert extracted(path, "coo", "--dense") == want.tobytes()


@pytest.mark.parametrize("package", PACKAGES)
def test_index_dtypes_other_than_u64_stay_as_they_are(tmp_path, package):
    """Reading Y4: from .zt to .zt nothing is widened. The bytes arrive; that 1.1.1 makes u64 of them is why new files hold u64."""
    objects = {name: entry for name, entry in composed(32, "i32").items() if name != "q"}
    path = tmp_path / "out.zt"
    weighbridge("convert", source_of(path, objects), path, "--encoding", "zstd")
    assert {part["dtype"] for name, o in zt_manifest(path)["objects"].items() for role, part in o["components"].items()
            if role in ("indices", "indptr", "coords")} == {"i32"}
    expect_package_reads(package, path, {name: entry[:3] for name, entry in objects.items()})


@pytest.mark.parametrize("package", PACKAGES)
def test_attributes_do_not_stop_the_packages(tmp_path, package):
    """Text at the root for the 1.1 line (reading Y6); of any kind on an object."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    own = {"n": -7, "big": 2**64 - 1, "f": 0.1, "t": "\u00e9\"", "b": b"\0\xff", "l": [1, [2, "x"]], "m": {"k": True}, "none": None}
    source, path = tmp_path / "in.zt", tmp_path / "out.zt"
    source.write_bytes(zt_bytes({"w": ((2, 3), "dense", {"data": array}, own)}, {"license": "Apache-2.0", "\u00e9": "\u2028"}))
    weighbridge("convert", source, path, "--digest", "sha256")
    manifest = zt_manifest(path)
    assert manifest["attributes"] == {"license": "Apache-2.0", "\u00e9": "\u2028"}
    assert manifest["objects"]["w"]["attributes"] == own
    expect_package_reads(package, path, dense({"w": array}))


# ------------------------------------------------------------------------------------------------------- theirs, read here


@pytest.mark.parametrize("compress", [False, True, 9])
@pytest.mark.parametrize("package", PACKAGES)
def test_dense_files_of_the_packages_read_here(tmp_path, package, compress):
    model = one_of_each(PLAIN)
    if package == "ztensor111":  # its writer stores a scalar as one element of one dimension
        model = {name: array.reshape(array.shape or (1,)) for name, array in model.items()}
    path, back = tmp_path / "theirs.zt", tmp_path / "back.safetensors"
    package_writes(package, path, dense(model), compress=compress)
    weighbridge("verify", path)
    expect_equal(path, model)
    save_safetensors(back, model)
    assert content_digest(path) == content_digest(back)


@pytest.mark.parametrize("checksum", ["none", "crc32c", "sha256"])
@pytest.mark.parametrize("compress", [False, True])
def test_every_layout_of_1_2_3_reads_here(tmp_path, compress, checksum):
    objects = {name: entry[:3] for name, entry in composed(41).items()}
    for dtype, (storage, _) in STORAGE.items():
        array = random_array(np.random.Generator(np.random.PCG64(42)), dtype, (3, 4))
        objects["type." + dtype] = ((3, 4), "dense", {"data": array.view(storage).reshape(-1)})
    types = {"type." + dtype: kind for dtype, (_, kind) in STORAGE.items()}
    path = tmp_path / "theirs.zt"
    package_writes("ztensor123", path, objects, compress=compress, checksum=checksum, types=types)
    weighbridge("verify", path, status=3)  # its quantized_group came without attributes: reading Y5, no dense form
    listed = inspected(path)
    for name, (shape, layout, parts) in objects.items():
        assert listed[name]["layout"] == layout and tuple(listed[name]["shape"]) == tuple(shape)
        for role, array in parts.items():
            assert extracted(path, name, "--part", role) == array.tobytes(), (name, role)
    for name, dtype in ((name, name.split(".")[1]) for name in types):
        assert listed[name]["dtype"] == dtype
    ours = tmp_path / "ours.zt"
    weighbridge("convert", path, ours, "--encoding", "raw" if compress else "zstd", "--zt-version", "1.2")
    expect_package_reads("ztensor123", ours, objects)


def test_sparse_files_of_1_1_1_read_here(tmp_path):
    generator = np.random.Generator(np.random.PCG64(51))
    objects = {}
    for dtype in ("f32", "i64", "bf16"):
        objects["csr." + dtype] = ((6, 9), "sparse_csr", csr(generator, dtype, "u64"))
        objects["coo." + dtype] = ((4, 5, 6), "sparse_coo", coo(generator, dtype, "u64"))
    path = tmp_path / "theirs.zt"
    package_writes("ztensor111", path, objects)
    weighbridge("verify", path)
    for name, (_, _, parts) in objects.items():
        for role, array in parts.items():
            assert extracted(path, name, "--part", role) == array.tobytes(), (name, role)


# ------------------------------------------------------------------------------------------------------------------ append


@pytest.mark.parametrize("flags", [[], ["--encoding", "zstd", "--digest", "sha256"]])
@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_appended_here_opens_there(tmp_path, package, flags):
    first, second = without_nul(random_model(61, PLAIN)), {"added." + n: a for n, a in without_nul(random_model(62, PLAIN)).items()}
    first = {name: array.reshape(array.shape or (1,)) for name, array in first.items()}
    path, addition = tmp_path / "target.zt", tmp_path / "addition.safetensors"
    package_writes(package, path, dense(first))
    before = path.read_bytes()
    save_safetensors(addition, second)
    weighbridge("append", path, addition, *flags)
    weighbridge("verify", path)
    old_payload = len(before) - 16 - int.from_bytes(before[-16:-8], "little")
    assert path.read_bytes()[:old_payload] == before[:old_payload]
    expect_equal(path, first | second)
    expect_package_reads(package, path, dense(first | second))
    after = path.read_bytes()
    weighbridge("append", path, addition, status=1)  # every name is there already
    assert path.read_bytes() == after


def test_what_1_2_3_appends_to_ours_reads_here(tmp_path):
    first, second = random_model(63, PLAIN), {"added." + n: a for n, a in random_model(64, PLAIN).items()}
    source, path = tmp_path / "in.safetensors", tmp_path / "target.zt"
    save_safetensors(source, first)
    weighbridge("convert", source, path, "--digest", "crc32c")
    package_writes("ztensor123", path, dense(second), append=True, compress=True, checksum="sha256")
    weighbridge("verify", path)
    expect_equal(path, first | second)
