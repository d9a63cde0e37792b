# SPDX-License-Identifier: Apache-2.0
"""Files that h5py (libhdf5) writes, in each of its format versions, against what is read: every dtype, order, layout, filter and
index of chunks, groups and attributes of both styles, userblocks, and links that are not followed. Also the files of Keras in data/keras."""
import json
import pathlib

import pytest

from interop_tools import HERE, NUMPY_OF, content_digest, inspected, np, weighbridge

h5py = pytest.importorskip("h5py", reason="h5py is missing: tools/python-environments.sh makes the environment")

VERSIONS = [("earliest", "v108"), ("v108", "v108"), ("v110", "v110"), ("earliest", "latest"), ("latest", "latest")]
PLAIN = [name for name in NUMPY_OF if name != "bf16" and not name.startswith("f8")]
GZIP = {"compression": "gzip", "compression_opts": 4}


@pytest.fixture(params=VERSIONS, ids=["-".join(version) for version in VERSIONS])
def libver(request):
    return request.param


def numbers(shape, kind="<f4", seed=0):
    values = np.random.default_rng(seed).integers(0, 2 if np.dtype(kind) == bool else 120, int(np.prod(shape)))
    return values.astype(kind).reshape(shape)


def datasets_of(path):
    """name -> array, of every dataset, by h5py."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: np.asarray(item)}) if isinstance(item, h5py.Dataset) else None)
    return found


def expect_same(path, status=0):
    """Names, dtypes, shapes and bytes are those that h5py reads."""
    weighbridge("verify", path, status=status)
    out = pathlib.Path(str(path) + ".npz")
    weighbridge("convert", "--allow", "attribute", "--force", path, out)
    expected = datasets_of(path)
    with np.load(out, allow_pickle=False) as arrays:
        assert set(arrays.files) == set(expected)
        for name, array in expected.items():
            got = arrays[name]
            assert got.dtype == array.dtype.newbyteorder("=") and got.shape == array.shape, name
            assert got.tobytes() == np.asarray(array, array.dtype.newbyteorder("=")).tobytes(), name
    return expected


def attributes_of(path):
    return json.loads(weighbridge("inspect", "--json", path))["files"][0]["attributes"]


def test_every_dtype_order_and_layout(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for name in PLAIN:
            kind = NUMPY_OF[name]
            for order in ("<", ">"):
                array = numbers((5, 7), kind).astype(kind.newbyteorder(order))
                at = f"{name}/{'little' if order == '<' else 'big'}"
                file.create_dataset(at + "/contiguous", data=array)
                file.create_dataset(at + "/chunked", data=array, chunks=(2, 3))
                file.create_dataset(at + "/deflated", data=array, chunks=(3, 4), shuffle=True, fletcher32=True, **GZIP)
                file.create_dataset(at + "/unlimited", data=array, chunks=(2, 3), maxshape=(None, None), **GZIP)
                compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                compact.set_layout(h5py.h5d.COMPACT)
                made = h5py.h5d.create(file.id, (at + "/compact").encode(), h5py.h5t.py_create(array.dtype, logical=True),
                                       h5py.h5s.create_simple((5, 7)), compact)
                made.write(h5py.h5s.ALL, h5py.h5s.ALL, array)
            file.create_dataset(name + "/scalar", data=numbers((), kind))
            file.create_dataset(name + "/empty", data=numbers((0, 3), kind))
    tensors = inspected(path)
    assert all(tensors[f"{name}/scalar"]["dtype"] == name for name in PLAIN)
    expect_same(path)


SHAPES = [((11,), (3,)), ((11,), (11,)), ((4, 6), (4, 6)), ((9, 10), (4, 3)), ((5, 6, 7), (2, 3, 4)), ((3, 1, 2, 5), (2, 1, 1, 2))]


def test_every_index_of_chunks_and_filter(tmp_path, libver):
    """Fixed shapes, one and several unlimited dimensions, chunks allocated early: B-trees, arrays, implicit and single chunks."""
    path = tmp_path / "a.h5"
    filters = {"none": {}, "gzip": GZIP, "gzip1": {"compression": "gzip", "compression_opts": 1}, "shuffle": {"shuffle": True},
               "fletcher": {"fletcher32": True}, "all": {"shuffle": True, "fletcher32": True, **GZIP}}
    with h5py.File(path, "w", libver=libver) as file:
        for s, (shape, chunk) in enumerate(SHAPES):
            limits = {"fixed": None, "larger": tuple(2 * n + 1 for n in shape), "first": (None, *shape[1:]),
                      "last": (*shape[:-1], None), "all": (None,) * len(shape)}
            for limit, most in limits.items():
                for kind, options in filters.items():
                    array = numbers(shape, "<i4", s)
                    file.create_dataset(f"{s}/{limit}/{kind}", data=array, chunks=chunk, maxshape=most, **options)
            early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            early.set_chunk(chunk)
            early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
            made = h5py.h5d.create(file.id, f"{s}/early".encode(), h5py.h5t.STD_I32LE, h5py.h5s.create_simple(shape), early)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, numbers(shape, "<i4", s))
    expect_same(path)


def test_many_chunks(tmp_path, libver):
    """Enough for inner nodes of B-trees, pages of fixed arrays, and super blocks of extensible arrays with pages."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        data = numbers((3000,), "<i2")
        for name, most in (("fixed", None), ("unlimited", (None,))):
            file.create_dataset(name, data=data, chunks=(1,), maxshape=most)
            file.create_dataset(name + "-deflated", data=data, chunks=(2,), maxshape=most, **GZIP)
        file.create_dataset("both", data=numbers((60, 50), "<i2"), chunks=(1, 1), maxshape=(None, None))
        pages = file.create_dataset("pages", (200_000,), "i1", chunks=(1,), maxshape=(None,), fillvalue=3)
        pages[70_000], pages[199_999] = 1, 2
        sparse = file.create_dataset("sparse", (100_000,), "i1", chunks=(1,), fillvalue=5)
        sparse[50_000] = 1
    expect_same(path)


def test_fill_values_and_storage_that_was_not_allocated(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for order in "<>":
            file.create_dataset(f"contiguous{order}", (3, 4), order + "f4", fillvalue=1.5)
            file.create_dataset(f"chunked{order}", (5, 5), order + "i2", chunks=(2, 2), fillvalue=-7)
            partly = file.create_dataset(f"partly{order}", (9, 9), order + "i8", chunks=(2, 4), fillvalue=1 << 40, **GZIP)
            partly[3:5, 2:7] = 9
        file.create_dataset("zeros", (4,), "f8")
        file.create_dataset("large", (1000, 1000), "f4", chunks=(100, 100), fillvalue=0.25)
        grown = file.create_dataset("grown", (2, 2), "i4", chunks=(2, 3), maxshape=(None, 20), data=[[1, 2], [3, 4]])
        grown.resize((5, 17))
        grown.resize((4, 2))
        file.create_dataset("complex", (2,), "c8", fillvalue=1 + 2j)
    assert inspected(path)["zeros"]["parts"][0]["encoding"] == "computed"
    expect_same(path)


def test_many_members_and_attributes(tmp_path, libver):
    """Groups of hundreds of members are B-trees or fractal heaps, and so are many or large attributes."""
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for i in range(700):
            file[f"many/dataset-{i * 7919 % 700:04}"] = np.int32(i)
        for i in range(40):
            file[f"some/{'x' * (i * 40)}/{i}"] = np.float32(i)
        for i in range(300):
            file["many"].attrs[f"key-{i:03}"] = i
        file["many/dataset-0000"].attrs.update({f"a{i}": "text " * i for i in range(60)})
        if libver[0] != "earliest":
            file["some"].attrs["large"] = np.arange(20_000, dtype="<i8")  # a separate object beside the heap
    expect_same(path)
    attributes = attributes_of(path)
    assert [attributes[f"many@key-{i:03}"] for i in range(300)] == list(range(300))
    tensor = inspected(path)["many/dataset-0000"]
    assert [tensor["attributes"][f"a{i}"] for i in range(60)] == ["text " * i for i in range(60)]


def test_order_of_creation(tmp_path, libver):
    path = tmp_path / "a.h5"
    names = ["z", "a", "m", *(f"n{i * 31 % 40}" for i in range(40))]
    with h5py.File(path, "w", libver=libver, track_order=True) as file:
        for name in names:
            file[name] = np.uint8(1)
            file.attrs[name] = 1
    assert [t["name"] for t in json.loads(weighbridge("inspect", "--json", path))["files"][0]["tensors"]] == names
    assert list(attributes_of(path)) == names


def test_attributes(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["i"] = np.int16(-5)
        file.attrs["u"] = np.uint64(2**64 - 1)
        file.attrs["big"] = np.array(258, ">i4")
        file.attrs["f"] = np.float32(0.1)
        file.attrs["half"] = np.float16(1.5)
        file.attrs["yes"] = True
        file.attrs["text"] = "h\u00e9llo"
        file.attrs["fixed"] = np.bytes_(b"fixed")
        file.attrs["texts"] = ["a", "", "\u65e5\u672c"]
        file.attrs["fixed texts"] = np.array([b"one", b"three"])
        file.attrs["numbers"] = np.array([1, 2, 3], ">i2")
        file.attrs["matrix"] = np.array([[1.0, 2.0], [3.0, 4.0]])
        file.attrs["none"] = h5py.Empty("f4")
        file.attrs["no texts"] = np.array([], dtype=h5py.string_dtype())
        file.create_group("g/h").attrs["inner"] = "x"
        file["w"] = np.float32(1)
        file["w"].attrs["note"] = "about w"
    expect_same(path)
    got = attributes_of(path)
    assert {key: got[key] for key in ("i", "u", "big", "half", "yes", "text", "fixed", "texts", "fixed texts", "numbers", "none")} == {
        "i": -5, "u": 2**64 - 1, "big": 258, "half": 1.5, "yes": True, "text": "h\u00e9llo", "fixed": "fixed",
        "texts": ["a", "", "\u65e5\u672c"], "fixed texts": ["one", "three"], "numbers": [1, 2, 3], "none": None}
    assert np.float32(got["f"]) == np.float32(0.1) and got["no texts"] == []
    assert got["matrix"] == {"shape": [2, 2], "values": [1.0, 2.0, 3.0, 4.0]}
    assert got["g/h@inner"] == "x" and inspected(path)["w"]["attributes"] == {"note": "about w"}


def test_attributes_and_types_that_are_not_interpreted_are_named(tmp_path, libver):
    path = tmp_path / "a.h5"
    pair = np.dtype([("x", "<i4"), ("y", "<f8")])
    with h5py.File(path, "w", libver=libver) as file:
        file.attrs["pair"] = np.array((1, 2.0), pair)
        file.attrs["reference"] = file.ref
        file["compound"] = np.zeros(3, pair)
        file["texts"] = ["a", "b"]
        file["fixed"] = np.array([b"abc"])
        file["opaque"] = np.void(b"abc")
        file["enumeration"] = np.zeros(2, h5py.enum_dtype({"A": 1, "B": 2}, basetype="i4"))
        file.create_dataset("sequences", (2,), h5py.vlen_dtype(np.int32))
        file["arrays"] = np.zeros(2, np.dtype(("<i4", (2, 2))))
        file["null"] = h5py.Empty("f4")
        file["long"] = np.zeros(2, np.longdouble)
        file.create_dataset("references", (2,), h5py.ref_dtype)
        file["many texts"] = ["a text"] * 10_000
        file["g/one"] = "a text"
        file.create_dataset("scaled", data=numbers((8, 8), "<i4"), scaleoffset=3, chunks=(4, 4))
        file["type"] = np.dtype("<i8")
        file["good"] = numbers((2, 2))
    report = json.loads(weighbridge("verify", "--json", path, status=3))["files"][0]
    rules = {(f["rule"], f.get("tensor")) for f in report["files"][0]["findings"]} if "files" in report else {
        (f["rule"], f.get("tensor")) for f in report["findings"]}
    for name in ("compound", "opaque", "enumeration", "long"):
        assert ("hdf5/unknown-type", name) in rules, name
    assert {("hdf5/null", "null"), ("hdf5/unknown-filter", "scaled"), ("hdf5/other-object", "type"), ("hdf5/text", "many texts"),
            ("hdf5/object", "sequences"), ("hdf5/object", "references"), ("hdf5/attribute-type", None)} <= rules
    attributes = attributes_of(path)
    assert attributes["texts"] == ["a", "b"] and attributes["fixed"] == ["abc"] and attributes["g/one"] == "a text"


def test_lzf_is_read(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        for name, array in {"counting": np.arange(1000, dtype="<i4"), "zeros": np.zeros((300, 50)), "random": numbers((40, 40), "<f4", 3)}.items():
            chunks = (100,) if array.ndim == 1 else (37, 29)
            for shuffle, fletcher in ((False, False), (True, False), (True, True)):
                file.create_dataset(f"{name}/{shuffle}{fletcher}", data=array, chunks=chunks, compression="lzf", shuffle=shuffle,
                                    fletcher32=fletcher)
    expect_same(path)


def test_small_floats_are_numbers(tmp_path, libver):
    path = tmp_path / "a.h5"
    values = np.array([1, 2, 0.5, -3], "<f4")
    with h5py.File(path, "w", libver=libver) as file:
        for name, size, *fields, bias in (("f8_e4m3", 1, 7, 3, 4, 0, 3, 7), ("f8_e5m2", 1, 7, 2, 5, 0, 2, 15),
                                          ("bf16", 2, 15, 7, 8, 0, 7, 127), ("f16", 2, 15, 10, 5, 0, 10, 15)):
            kind = h5py.h5t.IEEE_F16LE.copy()
            kind.set_fields(*fields)
            kind.set_ebias(bias)
            kind.set_precision(8 * size)
            kind.set_size(size)
            made = h5py.h5d.create(file.id, name.encode(), kind, h5py.h5s.create_simple((4,)))
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, values)
            h5py.h5a.create(made, b"one", kind, h5py.h5s.create(h5py.h5s.SCALAR)).write(np.array(1.5, "<f4"))
            h5py.h5a.create(made, b"list", kind, h5py.h5s.create_simple((4,))).write(values)
    for name, tensor in inspected(path).items():
        assert tensor["dtype"] == name and tensor["attributes"] == {"one": 1.5, "list": values.tolist()}
    weighbridge("convert", "--cast", "f32", "--allow", "attribute", path, tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as arrays:
        assert len(arrays.files) == 4 and all(np.array_equal(array, values) for array in arrays.values())


def test_names_that_are_not_utf8_are_spelled(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file[b"caf\xe9"] = numbers((3,))
        file[b"g\xff/w"] = numbers((3,))
    assert set(inspected(path)) == {r"caf\xe9", r"g\xff/w"}
    assert b"hdf5/name-bytes" in weighbridge("verify", path)
    with h5py.File(path, "a") as file:
        file[r"caf\xe9"] = numbers((3,))
    assert b"hdf5/duplicate-name" in weighbridge("verify", path, status=1)


def test_a_large_dataset_that_was_never_written_is_listed(tmp_path, libver):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file["w"] = np.arange(3, dtype="<i4")
        file.create_dataset("obs", (100_000_000,), ">f4")
        file.create_dataset("chunked", (1_000_000, 1000), "f8", chunks=(1000, 1000))
    assert {name: tensor["shape"] for name, tensor in inspected(path).items()} == {
        "w": [3], "obs": [100_000_000], "chunked": [1_000_000, 1000]}
    weighbridge("verify", path)
    weighbridge("extract", path, "w", "-o", tmp_path / "w.npy")
    assert np.load(tmp_path / "w.npy").tolist() == [0, 1, 2]
    weighbridge("extract", path, "obs", "-o", tmp_path / "obs.npy", status=1)
    weighbridge("extract", path, "obs", "-o", tmp_path / "obs.npy", "--limit", "work=1G", "--limit", "output=1G")
    assert (tmp_path / "obs.npy").stat().st_size == 400_000_128


def test_links_are_named_and_not_followed(tmp_path, libver):
    path, other = tmp_path / "a.h5", tmp_path / "secret.h5"
    with h5py.File(other, "w") as file:
        file["w"] = np.arange(3)
    (tmp_path / "raw").write_bytes(bytes(16))
    with h5py.File(path, "w", libver=libver) as file:
        file["w"] = numbers((3, 3))
        file["again"] = file["w"]
        file["group/inside"] = np.float32(2)
        file["group/loop"] = file["group"]
        file["second"] = file["group"]
        file["soft"] = h5py.SoftLink("/w")
        file["external"] = h5py.ExternalLink("secret.h5", "/w")
        file.create_dataset("outside", (4,), "<i4", external=[(str(tmp_path / "raw"), 0, 16)])
        if libver[1] != "v108":
            virtual = h5py.VirtualLayout((3,), "<i8")
            virtual[:] = h5py.VirtualSource(str(other), "w", (3,))
            file.create_virtual_dataset("virtual", virtual)
    out = weighbridge("verify", path, status=3).decode()
    for rule in ("hdf5/link", "hdf5/group-again", "hdf5/external-storage") + (("hdf5/virtual",) if libver[1] != "v108" else ()):
        assert rule in out, out
    tensors = inspected(path)
    assert set(tensors) - {"virtual"} == {"w", "again", "group/inside", "outside"}
    assert tensors["w"]["parts"][0]["extent"] == tensors["again"]["parts"][0]["extent"] if "extent" in tensors["w"]["parts"][0] else True


@pytest.mark.parametrize("size", [512, 4096])
def test_userblock_and_bytes_around(tmp_path, libver, size):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver, userblock_size=size) as file:
        file["g/w"] = numbers((4, 4))
        file.create_dataset("c", data=numbers((40, 4)), chunks=(3, 3), **GZIP)
    with open(path, "r+b") as file:
        file.write(b"user's own")
    expect_same(path)
    moved = tmp_path / "moved.h5"  # the same file after other bytes
    with h5py.File(tmp_path / "b.h5", "w", libver=libver) as file:
        file["g/w"] = numbers((4, 4))
    moved.write_bytes(b"x" * size + (tmp_path / "b.h5").read_bytes())
    expect_same(moved)
    path.write_bytes(path.read_bytes() + b"more")
    assert b"hdf5/trailing-data" in weighbridge("verify", path)
    path.write_bytes(path.read_bytes()[:-8])
    assert b"hdf5/truncated" in weighbridge("verify", path, status=1)


def test_large_chunked_datasets_in_little_memory(tmp_path, libver):
    """Rows of chunks that do not fit into the memory allowed are made in several passes."""
    path, out = tmp_path / "a.h5", tmp_path / "a.npy"
    array = np.random.default_rng(1).integers(0, 9, (300, 700, 11)).astype("<i4")
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("w", data=array, chunks=(120, 64, 3), shuffle=True, **GZIP)
        file.create_dataset("plain", data=array, chunks=(120, 64, 3))
    for name in ("w", "plain"):
        weighbridge("extract", path, name, "-o", out, "--force", "--limit", "memory=1M")
        assert np.array_equal(np.load(out), array)


def test_damage_is_found(tmp_path, libver):
    path = tmp_path / "a.h5"
    for options in (dict(fletcher32=True), GZIP):
        with h5py.File(path, "w", libver=libver) as file:
            file.create_dataset("w", data=numbers((64, 64)), chunks=(64, 64), **options)
            offset = file["w"].id.get_chunk_info(0).byte_offset
        with open(path, "r+b") as file:
            file.seek(offset + 100)
            byte = file.read(1)
            file.seek(offset + 100)
            file.write(bytes([byte[0] ^ 1]))
        rule = b"hdf5/fletcher32" if "fletcher32" in options else b"hdf5/deflate"
        assert rule in weighbridge("verify", path, status=1)
        weighbridge("extract", path, "w", "-o", tmp_path / "x.npy", status=1)


KERAS = HERE / "data/keras"


def values_of(name):
    """path -> array, of what Keras said of the variables when it wrote the file."""
    said = json.loads((KERAS / (name + ".json")).read_text())
    return {path: np.array(values, dtype).reshape(shape) for path, (dtype, shape, values) in said.items()}


def arrays_of(path, folder):
    weighbridge("convert", "--allow", "attribute", path, folder / "out.npz")
    with np.load(folder / "out.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def expect_equal(got, expected):
    assert got.dtype == expected.dtype and np.array_equal(got, expected)


def test_a_keras_archive_has_the_weights_that_keras_says(tmp_path):
    got, said = arrays_of(KERAS / "small.keras", tmp_path), values_of("small.keras")
    names = json.loads(weighbridge("inspect", "--json", KERAS / "small.keras"))["files"][0]["attributes"]
    layers = {key.removesuffix("/vars@name"): value for key, value in names.items() if key.startswith("layers/")}
    assert layers == {"layers/dense": "first", "layers/batch_normalization": "norm", "layers/dense_1": "second"}
    assert len(got) == len(said) == 8
    order = {"first": ["kernel", "bias"], "second": ["kernel", "bias"], "norm": ["gamma", "beta", "moving_mean", "moving_variance"]}
    for folder, layer in layers.items():
        for i, variable in enumerate(order[layer]):
            expect_equal(got[f"{folder}/vars/{i}"], next(v for path, v in said.items() if path.endswith(f"{layer}/{variable}")))
    assert json.loads(names["keras.config"])["class_name"] == "Sequential"
    assert json.loads(names["keras.metadata"])["keras_version"] == "3.15.1"


def test_weights_alone_have_the_digest_of_the_archive():
    assert content_digest(KERAS / "small.weights.h5") == content_digest(KERAS / "small.keras")


def test_weights_in_several_files_are_one_model():
    index = KERAS / "divided.weights.json"
    places = json.loads(index.read_text())["weight_map"]
    assert any(isinstance(files, list) and len(files) > 1 for files in places.values())  # a group that was divided
    assert weighbridge("verify", index).count(b"warning") == 0
    assert content_digest(index) == content_digest(KERAS / "small.weights.h5")


def test_a_legacy_file_has_the_names_of_keras(tmp_path):
    got, said = arrays_of(KERAS / "legacy.h5", tmp_path), values_of("legacy.h5")
    assert len(got) == len(said) == 8
    for path, value in said.items():
        expect_equal(got[f"model_weights/{path.split('/')[1]}/{path}"], value)
    attributes = attributes_of(KERAS / "legacy.h5")
    assert attributes["backend"] == "numpy" and attributes["model_weights@layer_names"] == ["first", "norm", "second"]
    assert json.loads(attributes["model_config"])["class_name"] == "Sequential"


def test_code_in_a_configuration_is_named():
    assert b"keras/lambda" in weighbridge("verify", KERAS / "lambda.keras")
    assert weighbridge("verify", KERAS / "small.keras").count(b"warning") == 0
