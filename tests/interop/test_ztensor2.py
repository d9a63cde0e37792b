# SPDX-License-Identifier: Apache-2.0
"""zTensor 2 beside the published package 2.1.2 in both directions, the conformance files of its authors, the content digest computed from the text, and
conversions among the three generations."""
import hashlib
import json

import pytest

from interop_tools import (NAME_OF, TEST_DATA, content_digest, expect_equal, np, one_of_each, run_python, weighbridge, zt_bytes)

cbor2 = pytest.importorskip("cbor2")
PACKAGE = "ztensor212"
NAMES = ["bool", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f16", "bf16", "f32", "f64"]
# name in the package: storage type, logical type, bytes of three elements
TYPES = {"f64": ("f64", None, 24), "f32": ("f32", None, 12), "f16": ("f16", None, 6), "bf16": ("bf16", None, 6), "i64": ("i64", None, 24),
         "i32": ("i32", None, 12), "i16": ("i16", None, 6), "i8": ("i8", None, 3), "u64": ("u64", None, 24), "u32": ("u32", None, 12),
         "u16": ("u16", None, 6), "u8": ("u8", None, 3), "bool": ("u8", "bool", 3), "f8_e4m3": ("u8", "f8_e4m3fn", 3),
         "f8_e5m2": ("u8", "f8_e5m2", 3), "f8_e4m3fnuz": ("u8", "f8_e4m3fnuz", 3), "f8_e5m2fnuz": ("u8", "f8_e5m2fnuz", 3),
         "f8_e8m0": ("u8", "f8_e8m0", 3), "f4": ("u8", "f4_e2m1", 2), "complex64": ("f32", "complex64", 24),
         "complex128": ("f64", "complex128", 48)}

# What the conformance files must give: the rule, or "" where the image is valid. A valid image may have tensors that nothing here interprets, or
# break a rule that the corpus checks in another file with the same bytes.
REJECT = {
    "attribute-key-empty": "attribute-key", "attribute-key-not-text": "attribute-key-type", "attribute-key-nul": "attribute-key",
    "attributes-not-a-map": "root-field", "blob-array-with-three-elements": "part-field", "blob-misaligned": "offset",
    "blob-offset-zero": "offset", "blob-out-of-bounds": "range", "blob-partial-overlap": "overlap", "bool-invalid-byte": "bool",
    "cbor-depth": "depth", "cbor-duplicate-key": "duplicate-key", "cbor-indefinite": "cbor", "cbor-non-shortest": "determinism",
    "cbor-tag": "cbor", "cbor-trailing-bytes": "cbor", "cbor-unsorted-keys": "determinism", "csr-index-out-of-cols": "index-range",
    "csr-indptr-count": "layout-size", "csr-indptr-not-zero-based": "indptr", "csr-missing-part": "layout-parts",
    "csr-row-not-increasing": "index-order", "csr-signed-indices": "layout-dtype", "csr-values-size": "layout-size",
    "data-shard-nonzero-offset": "data-shard-footer", "dense-extra-part": "layout-parts", "dense-f4-size-mismatch": "dense-size",
    "dense-size-mismatch": "dense-size", "f4-nonzero-odd-nibble": "nibble", "footer-magic": "bad-footer", "header-magic": "bad-magic",
    "manifest-hash-mismatch": "manifest-hash", "manifest-misaligned": "manifest-offset", "manifest-out-of-bounds": "manifest-range",
    "manifest-too-large": "manifest-too-large", "name-empty": "name", "name-nul": "name", "name-too-long": "name",
    "object-attributes-not-a-map": "object-field", "schema-blob-arity": "part-field", "schema-digest-uppercase-hex": "digest-syntax",
    "schema-encoding-without-decoded-length": "decoded-length", "schema-ltype-dtype-mismatch": "type", "schema-missing-objects": "root-missing",
    "schema-unknown-dtype": "dtype", "shape-product-overflow": "shape-overflow", "shape-rank-65": "rank",
    "shard-blob-partial-overlap": "overlap", "shard-name-empty": "shard-name", "shard-name-leading-dot": "shard-name",
    "shard-name-separator": "shard-name", "shard-name-traversal": "shard-name", "shard-ref-not-in-table": "shard-unknown",
    "shard-table-key-not-text": "shard-key", "verify-digest-mismatch": "digest", "version-unsupported": "version",
    "file-too-small": None}  # ten zeros: nothing shows the format, and the extension is that of zTensor 1.x
VALID = {"aliased-identical-blobs": 0, "attributes-kitchen-sink": 0, "canonical-basic": 0, "csr-data-valid": 0, "csr-metadata-valid": 0,
         "data-shard": 0, "empty-objects": 0, "f4-packed-odd-count": 1, "local-and-foreign-parts-together": 3, "minimal": 0,
         "nonzero-reserved-ignored": 0, "scalar": 0, "shard-reference-is-a-valid-image": 3, "shards-table": 3,
         "unknown-layout-structural": 3, "unknown-ltype-structural": 3, "verify-ok": 0, "view-unknown-encoding-refused": 3,
         "zero-size-tensor": 0}


def rules_of(path, status):
    report = json.loads(weighbridge("verify", "--json", path, status=status))["files"][0]
    return [finding["rule"] for finding in report["findings"] if finding["severity"] == "error"]


def test_the_conformance_files_get_the_verdicts_that_they_name():
    folder = TEST_DATA / "ztensor2"
    if not folder.is_dir():
        pytest.skip("the conformance files of zTensor 2 are in no published package: put its corpus/{valid,reject} into the test data as ztensor2")
    assert {path.stem for path in (folder / "reject").iterdir()} == set(REJECT)
    assert {path.stem for path in (folder / "valid").iterdir()} == set(VALID)
    for name, rule in REJECT.items():
        found = rules_of(folder / f"reject/{name}.zt", 1)
        assert found[0] == f"zt2/{rule}" if rule else len(found) == 1, (name, found)
    for name, status in VALID.items():
        path = folder / f"valid/{name}.zt"
        # The same bytes as f4-nonzero-odd-nibble: opening is fine, verifying is not.
        assert rules_of(path, status) == (["zt2/nibble"] if name == "f4-packed-odd-count" else []), name
        weighbridge("inspect", path)


def package_reads(path):
    return json.loads(run_python(PACKAGE, "ztensor2_package.py", "read", path))


def package_writes(path, objects, *canonical):
    run_python(PACKAGE, "ztensor2_package.py", "write", path, json.dumps(objects), *canonical)
    return path


def every_type(encoding=None):
    data = bytes(range(1, 49))
    return {name: {"shape": [3], "layout": "dense",
                   "parts": {"data": {"dtype": dtype, "logical": logical, "encoding": encoding,
                                      "hex": (b"\1\0\1" if name == "bool" else b"\x21\x03" if name == "f4" else data[:size]).hex()}}}
            for name, (dtype, logical, size) in TYPES.items()}


def expect_same_objects(read, objects):
    assert set(read["objects"]) == set(objects)
    for name, item in objects.items():
        ours = read["objects"][name]
        assert ours["shape"] == item["shape"] and ours["layout"] == item["layout"], name
        for role, part in item["parts"].items():
            got = ours["parts"][role]
            assert (got["dtype"], got["logical"], got["hex"]) == (part["dtype"], part["logical"], part["hex"]), (name, role)


def test_every_type_of_the_package_is_read_and_written_back_byte_for_byte(tmp_path):
    objects = every_type()
    theirs = package_writes(tmp_path / "theirs.zt", objects, "canonical")
    weighbridge("verify", theirs)
    weighbridge("convert", theirs, tmp_path / "same.zt", "--to", "zt2")
    weighbridge("convert", theirs, tmp_path / "canonical.zt", "--to", "zt2", "--canonical")
    # Our canonical form is theirs.
    assert (tmp_path / "canonical.zt").read_bytes() == theirs.read_bytes()
    read = package_reads(tmp_path / "same.zt")
    assert read["undigested"] == 0
    expect_same_objects(read, objects)


def test_seekable_zstd_is_read_in_both_directions(tmp_path):
    objects = every_type("zt.zstd-seekable/1")
    theirs = package_writes(tmp_path / "theirs.zt", objects)
    weighbridge("verify", theirs)
    array = {"long": np.arange(700_000, dtype=np.uint32) // 100}
    (tmp_path / "in.zt").write_bytes(zt_bytes({name: (a.shape, "dense", {"data": a}, None) for name, a in array.items()}))
    for digest in ("xxh3", "sha256", "none"):
        ours = tmp_path / f"{digest}.zt"
        weighbridge("convert", tmp_path / "in.zt", ours, "--to", "zt2", "--encoding", "zstd", "--digest", digest)
        weighbridge("verify", ours)
        assert ours.stat().st_size < 1_000_000
        read = package_reads(ours)
        assert read["objects"]["long"]["parts"]["data"]["hex"] == array["long"].tobytes().hex()
        assert read["checked"] == (0 if digest == "none" else 1)


def test_sparse_matrices_are_read_in_both_directions(tmp_path):
    def u64(*values):
        return np.array(values, "<u8").tobytes().hex()

    objects = {"m": {"shape": [2, 3], "layout": "zt.sparse_csr/1",
                     "parts": {"values": {"dtype": "f32", "logical": None, "hex": np.array([1, 2, 3], "<f4").tobytes().hex()},
                               "indices": {"dtype": "u64", "logical": None, "hex": u64(0, 2, 1)},
                               "indptr": {"dtype": "u64", "logical": None, "hex": u64(0, 2, 3)}}},
               "n": {"shape": [2, 3], "layout": "zt.sparse_coo/1",
                     "parts": {"values": {"dtype": "f32", "logical": None, "hex": np.array([4, 5], "<f4").tobytes().hex()},
                               "coords": {"dtype": "u64", "logical": None, "hex": u64(1, 0, 2, 1)}}}}
    theirs = package_writes(tmp_path / "theirs.zt", objects)
    weighbridge("verify", theirs)
    weighbridge("convert", theirs, tmp_path / "one.zt")
    weighbridge("convert", tmp_path / "one.zt", tmp_path / "back.zt", "--to", "zt2")
    assert content_digest(tmp_path / "one.zt") == content_digest(theirs) == content_digest(tmp_path / "back.zt")
    expect_same_objects(package_reads(tmp_path / "back.zt"), objects)


@pytest.mark.parametrize("flags", [[], ["--encoding", "zstd"], ["--digest", "sha256"]])
def test_the_three_generations_convert_into_each_other(tmp_path, flags):
    model = one_of_each(NAMES)
    first = tmp_path / "first.zt"
    first.write_bytes(zt_bytes({name: (array.shape, "dense", {"data": array}, None) for name, array in model.items()}))
    wanted = content_digest(first)
    path = first
    for step, to in enumerate(["zt2", "zt0", "zt2", "zt", "zt0", "zt", "zt2"]):
        after = tmp_path / f"{step}.zt"
        weighbridge("convert", path, after, "--to", to, *flags)
        weighbridge("verify", after)
        assert content_digest(after) == wanted, (step, to)
        path = after
    expect_equal(path, model)
    read = package_reads(path)["objects"]
    assert {name: bytes.fromhex(item["parts"]["data"]["hex"]) for name, item in read.items()} == {
        name: array.tobytes() for name, array in model.items()}
    assert all(item["shape"] == list(model[name].shape) for name, item in read.items())
    assert all((item["parts"]["data"]["logical"] or item["parts"]["data"]["dtype"]) == NAME_OF[model[name].dtype] for name, item in read.items())


def manifest_of(path):
    data = path.read_bytes()
    offset, length = (int.from_bytes(data[at:at + 8], "little") for at in (len(data) - 40, len(data) - 32))
    return cbor2.loads(data[offset:offset + length])


def identity(path):
    """The content digest as section 6.4 says it, from the manifest."""
    objects = {}
    for name, item in manifest_of(path)["objects"].items():
        objects[name] = {key: item[key] for key in ("shape", "layout", "attributes") if key in item}
        objects[name]["parts"] = {role: {key: part[key] for key in ("dtype", "type", "digest") if key in part}
                                  for role, part in item["parts"].items()}
    return "sha256:" + hashlib.sha256(cbor2.dumps(["zt.content/1", objects], canonical=True)).hexdigest()


def test_the_content_digest_is_that_of_the_text(tmp_path):
    theirs = package_writes(tmp_path / "theirs.zt", every_type(), "canonical")
    weighbridge("convert", theirs, tmp_path / "zstd.zt", "--to", "zt2", "--encoding", "zstd")
    wanted = identity(theirs)
    for path in (theirs, tmp_path / "zstd.zt"):
        printed = weighbridge("hash", "--zt", path)
        printed = printed.decode() if isinstance(printed, bytes) else printed
        assert printed.split()[0] == wanted == identity(path)


def test_a_file_without_any_magic_number_is_judged_as_the_first_owner_of_its_name(tmp_path):
    path = tmp_path / "zeros.zt"
    path.write_bytes(bytes(10))
    assert [finding["rule"] for finding in json.loads(weighbridge("verify", "--json", path, status=1))["files"][0]["findings"]] == ["zt/bad-magic"]


def test_a_shard_that_no_part_is_in_is_checked_as_in_the_package(tmp_path):
    one = package_writes(tmp_path / "model-base.zt", every_type())
    data = one.read_bytes()
    xxhash = pytest.importorskip("xxhash")
    for size, digest, rule in ((len(data), xxhash.xxh3_64_intdigest(data), None), (len(data) + 1, xxhash.xxh3_64_intdigest(data), "zt2/shard-size"),
                               (len(data), 1, "zt2/shard-digest")):
        root = cbor2.dumps({"objects": {}, "shards": {"base": {"size": size, "digest": f"xxh3:{digest:016x}"}}}, canonical=True)
        footer = b"".join(n.to_bytes(8, "little") for n in (4096, len(root), xxhash.xxh3_64_intdigest(root), 2)) + data[:8]
        (tmp_path / "model.zt").write_bytes(data[:8] + bytes(4088) + root + footer)
        assert rules_of(tmp_path / "model.zt", 1 if rule else 0) == ([rule] if rule else [])
        if rule:
            with pytest.raises(Exception, match="ShardIdentity|shard"):
                package_reads(tmp_path / "model.zt")
        else:
            assert package_reads(tmp_path / "model.zt")["objects"] == {}


@pytest.mark.parametrize("how", [[], ["--encoding", "zstd"], ["--digest", "sha256"], ["--digest", "none"]], ids=" ".join)
def test_the_package_reads_shards(tmp_path, how):
    model = one_of_each(NAMES)
    whole, out = tmp_path / "whole.zt", tmp_path / "out"
    whole.write_bytes(zt_bytes({name: (array.shape, "dense", {"data": array}, None) for name, array in model.items()}))
    weighbridge("convert", whole, f"{out}/", "--to", "zt2", "--max-shard-size", "64", *how)
    *shards, root = sorted(path.name for path in out.iterdir())
    assert len(shards) > 3 and root == "model.zt" and shards == [f"model-{i:05}-of-{len(shards):05}.zt" for i in range(1, len(shards) + 1)]
    for path in (out, out / root):
        assert content_digest(path) == content_digest(whole)
        weighbridge("verify", path)
    read = package_reads(out / root)
    assert read["undigested"] == (len(model) if "none" in how else 0)
    assert {name: bytes.fromhex(item["parts"]["data"]["hex"]) for name, item in read["objects"].items()} == {
        name: array.tobytes() for name, array in model.items()}
    alone = [name for shard in shards for name in package_reads(out / shard)["objects"]]
    assert sorted(alone) == sorted(model)


def test_a_root_finds_its_shard_beside_it(tmp_path):
    array = np.arange(6, dtype=np.float32)
    (tmp_path / "in.zt").write_bytes(zt_bytes({"w": (array.shape, "dense", {"data": array}, None)}))
    base = tmp_path / "model-base.zt"
    weighbridge("convert", tmp_path / "in.zt", base, "--to", "zt2")
    data = base.read_bytes()
    objects = manifest_of(base)["objects"]
    objects["w"]["parts"]["data"]["shard"] = "base"
    root = cbor2.dumps({"objects": objects, "shards": {"base": {"size": len(data), "digest": "sha256:" + hashlib.sha256(data).hexdigest()}}},
                       canonical=True)
    magic = data[:8]
    xxhash = pytest.importorskip("xxhash")
    footer = (4096).to_bytes(8, "little") + len(root).to_bytes(8, "little") + xxhash.xxh3_64_intdigest(root).to_bytes(8, "little") + (
        b"\2" + bytes(7)) + magic
    model = tmp_path / "model.zt"
    model.write_bytes(magic + bytes(4088) + root + footer)
    weighbridge("verify", model)
    expect_equal(model, {"w": array})
    base.write_bytes(data.replace(array.tobytes(), array[::-1].tobytes()))
    assert sorted(rules_of(model, 1)) == ["zt2/digest", "zt2/shard-digest"]
    base.unlink()
    assert b"zt2/shard-missing" in weighbridge("verify", "--json", model, status=3)
