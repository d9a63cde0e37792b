# SPDX-License-Identifier: Apache-2.0
"""patch import and patch export: folders that slime and SkyRL publish. tests/interop/test_deltas.py runs these programs; here are files that
they wrote (tests/interop/data/deltas), and folders with their silent faults, made by hand."""
import json
import pathlib
import shutil
import struct
import zlib

import pytest

from conftest import validated, weighbridge

DATA = pathlib.Path(__file__).parents[1] / "interop/data/deltas"
INDEX = "model.safetensors.index.json"


def digest(path):
    return weighbridge("hash", path).stdout.split()[0]


@pytest.mark.parametrize("folder", ["slime-xor", "slime-overwrite", "skyrl"])
def test_what_trainers_publish_becomes_a_patch(folder, tmp_path):
    patch, out = tmp_path / "p.zt", tmp_path / "out.safetensors"
    said = validated(weighbridge("patch", "import", DATA / folder, "--base", DATA / "base", "-o", patch, "--json").stdout, "patch")
    assert (said["tensors"], said["changed"]) == (5, 4)
    assert "ok" in weighbridge("verify", patch).stdout
    weighbridge("apply", DATA / "base/model.safetensors", patch, "-o", out)
    assert digest(out) == digest(DATA / "result.safetensors")


def test_a_step_without_changes_is_legal(tmp_path):
    patch = tmp_path / "p.zt"
    assert "nothing changed" in weighbridge("patch", "import", DATA / "slime-none", "--base", DATA / "base", "-o", patch).stdout
    weighbridge("patch", "export", patch, "--to", "slime", "--base", DATA / "base", "-o", tmp_path / "none")
    assert json.loads((tmp_path / "none" / INDEX).read_text()) == json.loads((DATA / "slime-none" / INDEX).read_text())
    assert [path.name for path in (tmp_path / "none").iterdir()] == [INDEX]


def header_of(path):
    data = path.read_bytes()
    return json.loads(data[8:8 + int.from_bytes(data[:8], "little")])


@pytest.mark.parametrize("layout, folder", [("slime", "slime-xor"), ("slime-overwrite", "slime-overwrite"), ("skyrl", "skyrl")])
def test_a_patch_becomes_the_folder_that_trainers_publish(layout, folder, tmp_path):
    patch, out, again = tmp_path / "p.zt", tmp_path / "out/", tmp_path / "again.zt"
    weighbridge("diff", DATA / "base", DATA / "result.safetensors", "--no-metadata", "--patch", patch)
    sum_of = ["--checksum", "adler32"] if folder == "slime-overwrite" else []
    weighbridge("patch", "export", patch, "--to", layout, "--base", DATA / "base", *sum_of, "-o", out)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in (DATA / folder).iterdir())
    assert "exists" in weighbridge("patch", "export", patch, "--to", layout, "--base", DATA / "base", "-o", out, status=2).stderr
    for path in (DATA / folder).iterdir():
        if path.suffix == ".json":
            ours, theirs = json.loads((out / path.name).read_text()), json.loads(path.read_text())
            key = lambda each: each["name"]  # noqa: E731
            for value in (ours, theirs):
                value.pop("total_compressed_num_bytes", None)
                value["tensors"] = [{**each, "compressed_num_bytes": 0} for each in sorted(value.get("tensors", []), key=key)]
            assert ours == theirs
        else:  # the checksums
            assert header_of(out / path.name).get("__metadata__") == header_of(path).get("__metadata__")
    weighbridge("patch", "import", out, "--base", DATA / "base", "-o", again)
    weighbridge("apply", DATA / "base", again, "-o", tmp_path / "result.safetensors")
    assert digest(tmp_path / "result.safetensors") == digest(DATA / "result.safetensors")


def test_steps_are_a_chain(tmp_path):
    first, second = tmp_path / "1.zt", tmp_path / "2.zt"
    weighbridge("patch", "import", DATA / "slime-xor", "--base", DATA / "base", "-o", first)
    weighbridge("patch", "import", DATA / "slime-none", "--base", DATA / "base", "--with-patch", first, "-o", second)
    folder = tmp_path / "2"
    weighbridge("patch", "export", second, "--to", "slime", "--base", DATA / "base", "--with-patch", first, "--step", "2", "-o", folder)
    stated = json.loads((folder / INDEX).read_text())["metadata"]
    assert (stated["version"], stated["base_version"]) == ("000002", "000001")


def test_only_elements_can_be_exported(tmp_path):
    tensors = {"w": b"abcd"}
    write(tmp_path / "a.safetensors", tensors)
    for name, other in (("added", {"w": b"abcd", "x": b"1"}), ("removed", {}), ("resized", {"w": b"abcdef"})):
        write(tmp_path / "b.safetensors", other)
        weighbridge("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--patch", tmp_path / f"{name}.zt")
        said = weighbridge("patch", "export", tmp_path / f"{name}.zt", "--to", "skyrl", "--base", tmp_path / "a.safetensors", "-o", tmp_path / name,
                           status=2).stderr
        assert "can only change elements" in said and not (tmp_path / name).exists()


def write(path, tensors, metadata=None):
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, raw in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(raw)], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def zstd(data):
    """One frame with its content size, of a block as it is."""
    return b"\x28\xb5\x2f\xfd\xa0" + struct.pack("<I", len(data)) + struct.pack("<I", len(data) << 3 | 1)[:3] + data


OLD, NEW = bytes(range(100)), bytes(range(50)) + b"\xff" + bytes(range(51, 100))
XOR = bytes(a ^ b for a, b in zip(OLD, NEW))


def overwrite(positions, values, count=None):
    return struct.pack(f"<{len(positions) + 1}I", len(positions) if count is None else count, *positions) + values


def publish(folder, payload, encoding="xor", checksum=None, tensor="w", **metadata):
    folder.mkdir(exist_ok=True)
    stated = {"version": "000001", "base_version": "000000", "delta_encoding": encoding, "compression_format": "zstd", "checksum_format": "adler32"}
    (folder / INDEX).write_text(json.dumps({"metadata": {**stated, **metadata}, "weight_map": {tensor: "m.safetensors"}}))
    write(folder / "m.safetensors", {tensor: payload}, {tensor: checksum or f"{zlib.adler32(NEW):08x}"})
    return folder


FAULTS = {
    "a short stream": ("published/stream", zstd(XOR[:60]), {}),
    "bytes after the tensor": ("published/stream", zstd(XOR + b"\0"), {}),
    "bytes after the frame": ("published/stream", zstd(XOR) + b"xyz", {}),
    "a cut frame": ("published/stream", zstd(XOR)[:-1], {}),
    "not zstd": ("published/stream", b"nothing", {}),
    "another checksum": ("published/checksum", zstd(XOR), {"checksum": "00000001"}),
    "another base": ("published/checksum", zstd(bytes(100)), {}),
    "a position past the tensor": ("published/positions", zstd(overwrite([50, 100], b"\xff\x01")), {"encoding": "overwrite"}),
    "positions out of order": ("published/positions", zstd(overwrite([50, 7], b"\xff\x07")), {"encoding": "overwrite"}),
    "a position twice": ("published/positions", zstd(overwrite([50, 50], b"\xff\xff")), {"encoding": "overwrite"}),
    "fewer values than positions": ("published/stream", zstd(overwrite([7, 50], b"\xff")), {"encoding": "overwrite"}),
    "bytes after the values": ("published/stream", zstd(overwrite([50], b"\xff\0")), {"encoding": "overwrite"}),
    "a count that wraps": ("published/stream", zstd(overwrite([50], b"\xff", 0)), {"encoding": "overwrite"}),
    "no count": ("published/stream", zstd(b"\1"), {"encoding": "overwrite"}),
    "a tensor that the base lacks": ("published/tensor", zstd(XOR), {"tensor": "v"}),
    "another encoding": ("published/index", zstd(XOR), {"encoding": "sub"}),
    "another compression": ("published/index", zstd(XOR), {"compression_format": "lz4"}),
    "an unknown checksum": ("unsupported/checksum", zstd(XOR), {"checksum_format": "blake3"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_that_receivers_do_not_notice_are_found(fault, tmp_path):
    rule, payload, more = FAULTS[fault]
    write(tmp_path / "base.safetensors", {"w": OLD})
    folder = publish(tmp_path / "folder", payload, **more)
    out = tmp_path / "p.zt"
    status = 3 if rule.startswith("unsupported") else 1
    said = json.loads(weighbridge("patch", "import", folder, "--base", tmp_path / "base.safetensors", "-o", out, "--json", status=status).stdout)
    assert [each["rule"] for each in said["findings"]] == [rule], said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.safetensors", "folder"]


def test_the_same_without_a_fault(tmp_path):
    write(tmp_path / "base.safetensors", {"w": OLD})
    write(tmp_path / "result.safetensors", {"w": NEW})
    for payload, encoding in ((zstd(XOR), "xor"), (zstd(overwrite([50], b"\xff")), "overwrite"), (zstd(XOR[:10]) + zstd(XOR[10:]), "xor")):
        folder = publish(tmp_path / "folder", payload, encoding)
        weighbridge("patch", "import", folder, "--base", tmp_path / "base.safetensors", "-o", tmp_path / "p.zt", "--overwrite")
        weighbridge("apply", tmp_path / "base.safetensors", tmp_path / "p.zt", "-o", tmp_path / "out.safetensors", "--overwrite")
        assert digest(tmp_path / "out.safetensors") == digest(tmp_path / "result.safetensors")


# A missing name was read as the empty one, which a tensor of the base can have.
def test_a_tensor_without_a_name_is_refused(tmp_path):
    base, out = tmp_path / "base.safetensors", tmp_path / "p.zt"
    write(base, {"": OLD, "w": OLD})
    folder = publish(tmp_path / "folder", zstd(XOR), tensor="")
    entry = {"name": "w", "uncompressed_num_bytes": 100, "compressed_num_bytes": len(zstd(XOR)), "payload_file": "m.safetensors",
             "payload_key": "w", "checksum": f"{zlib.adler32(NEW):08x}", "checksum_algorithm": "adler32"}
    entries = [None] + [{**entry, key: ""} for key in ("name", "payload_key")]
    entries += [{k: v for k, v in entry.items() if k != key} for key in ("name", "payload_key")]
    for each in entries:
        if each is not None:
            write(folder / "m.safetensors", {"": zstd(XOR), "w": zstd(XOR)})
            (folder / "manifest.json").write_text(json.dumps({"version": 1, "base_version": 0, "tensors": [each]}))
        said = weighbridge("patch", "import", folder, "--base", base, "-o", out, status=1).stderr
        assert "published/index" in said and "expected a name for each tensor" in said and not out.exists(), each
    write(tmp_path / "result.safetensors", {"": NEW, "w": OLD})
    weighbridge("diff", base, tmp_path / "result.safetensors", "--patch", out)
    said = weighbridge("patch", "export", out, "--to", "slime", "--base", base, "-o", tmp_path / "out", status=2).stderr
    assert "changes a tensor whose name is empty" in said and not (tmp_path / "out").exists()


def test_positions_of_32_bits_that_wrapped_are_found(tmp_path):
    size = (1 << 32) + 1
    header = json.dumps({"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}).encode()
    with open(tmp_path / "base.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)  # sparse
    folder = publish(tmp_path / "folder", zstd(overwrite([0], b"\1")), "overwrite")
    said = weighbridge("patch", "import", folder, "--base", tmp_path / "base.safetensors", "-o", tmp_path / "p.zt", status=1).stderr
    assert "published/wrap" in said and "w" in said


def test_a_change_that_the_index_does_not_name_was_lost(tmp_path):
    write(tmp_path / "base.safetensors", {"v": OLD, "w": OLD})
    folder = publish(tmp_path / "folder", zstd(XOR))
    sums = {"v": f"{zlib.adler32(NEW):08x}", "w": f"{zlib.adler32(NEW):08x}"}
    write(folder / "m.safetensors", {"v": zstd(XOR), "w": zstd(XOR)}, sums)
    said = weighbridge("patch", "import", folder, "--base", tmp_path / "base.safetensors", "-o", tmp_path / "p.zt", status=1).stderr
    assert "published/tensor" in said and "'v'" in said and not (tmp_path / "p.zt").exists()


def test_indexes_that_say_nothing_sure_are_refused(tmp_path):
    write(tmp_path / "base.safetensors", {"w": OLD})
    folder = publish(tmp_path / "folder", zstd(XOR))
    manifest = {"version": 1, "base_version": 0, "tensors": [
        {"name": "w", "dtype": "uint8", "shape": [100], "uncompressed_num_bytes": 100, "compressed_num_bytes": len(zstd(XOR)),
         "payload_file": "m.safetensors", "payload_key": "w", "checksum": f"{zlib.adler32(NEW):08x}", "checksum_algorithm": "adler32"}]}
    whole = json.dumps(manifest)
    said = lambda: weighbridge("patch", "import", folder, "--base", tmp_path / "base.safetensors", "-o", tmp_path / "p.zt", status=1).stderr  # noqa: E731
    for text, rule in ((whole.replace('"compressed_num_bytes": ', '"compressed_num_bytes": 9'), "published/tensor"),
                       (whole.replace('"uncompressed_num_bytes": 1', '"uncompressed_num_bytes": 2'), "published/tensor"),
                       (whole.replace("m.safetensors", "../m.safetensors"), "published/tensor"),
                       (whole.replace('"payload_key": "w"', '"payload_key": "x"'), "published/tensor"),
                       (whole.replace("}]", "}, " + json.dumps(manifest["tensors"][0]) + "]"), "published/index"),
                       (whole[:-2], "published/index"), ('{"tensors": {}}', "published/index"), ("[]", "published/index")):
        (folder / "manifest.json").write_text(text)
        assert rule in said(), text
    (folder / "manifest.json").unlink()
    for text in ('{"weight_map": {}}', "[]", "{", (folder / INDEX).read_text().replace('{"w": ', '{"w": "m.safetensors", "w": ')):
        (folder / INDEX).write_text(text)
        assert "published/" in said(), text
    shutil.rmtree(folder)
    folder.mkdir()
    assert "neither" in said()
