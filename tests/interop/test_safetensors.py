# SPDX-License-Identifier: Apache-2.0
"""Tests both directions against the published package `safetensors` 0.8: its files here, our files there, and equal bytes."""
import json
import struct

import pytest

from interop_tools import (NAME_OF, NUMPY_OF, SAFETENSORS_NAMES, ZT_NAMES, all_extracted, content_digest, expect_equal, extracted, inspected, np,
                           one_of_each, random_model, weighbridge)

safetensors = pytest.importorskip("safetensors", reason="safetensors is missing: tools/python-environments.sh makes the environment")
from safetensors.numpy import load, save  # noqa: E402

SEEDS = range(12)
METADATA = {"format": "pt"}  # one key: the package writes several in the order of a hash table


def package_reads(data):
    """name -> (dtype as the file spells it, shape, bytes)."""
    return {name: (entry["dtype"], tuple(entry["shape"]), bytes(entry["data"])) for name, entry in safetensors.deserialize(data)}


def header_of(data):
    size, = struct.unpack("<Q", data[:8])
    return json.loads(data[8:8 + size])


def file_of(tensors, head=b"", tail=b""):
    """A file whose header is assembled as text: [(name, dtype, shape, bytes)]."""
    entries, offset = [], 0
    for name, dtype, shape, data in tensors:
        entries.append(f'{json.dumps(name)}:{{"dtype":"{dtype}","shape":{list(shape)},"data_offsets":[{offset},{offset + len(data)}]}}')
        offset += len(data)
    text = head + ("{" + ",".join(entries) + "}").encode() + tail
    return struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in tensors)


@pytest.mark.parametrize("metadata", [None, METADATA])
def test_every_dtype_and_shape_of_the_package_reads_here(tmp_path, metadata):
    model = one_of_each(SAFETENSORS_NAMES)
    path = tmp_path / "all.safetensors"
    path.write_bytes(save(model, metadata))
    weighbridge("verify", path)
    expect_equal(path, model)
    assert json.loads(weighbridge("inspect", "--json", path))["files"][0]["attributes"] == (metadata or {})


@pytest.mark.parametrize("encoding", ["raw", "zstd"])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_models_come_back_byte_for_byte(tmp_path, seed, encoding):
    """Through .zt and back: the package's own bytes, order and padding included."""
    names = [name for name in ZT_NAMES if name in SAFETENSORS_NAMES]
    model = random_model(seed, names, tensors=[0, 1, 12, 40][seed % 4])
    path, middle, back = tmp_path / "in.safetensors", tmp_path / "m.zt", tmp_path / "back.safetensors"
    path.write_bytes(save(model, [None, METADATA][seed % 2]))
    weighbridge("verify", path)
    expect_equal(path, model)
    weighbridge("convert", path, middle, "--encoding", encoding, "--digest", ["none", "sha256", "crc32c"][seed % 3])
    weighbridge("verify", middle)
    expect_equal(middle, model)
    weighbridge("convert", middle, back)
    assert back.read_bytes() == path.read_bytes()
    assert content_digest(path) == content_digest(middle) == content_digest(back)


@pytest.mark.parametrize("seed", SEEDS)
def test_order_and_padding_are_the_package_s(tmp_path, seed):
    """From a file in another order, of every dtype that safetensors has: the package's `save` of the same tensors."""
    model = random_model(100 + seed, SAFETENSORS_NAMES, tensors=30)
    shuffled = list(model.items())
    np.random.Generator(np.random.PCG64(seed)).shuffle(shuffled)
    spelling = {name: dtype for name, (dtype, _, _) in package_reads(save(model)).items()}
    path, out = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    path.write_bytes(file_of([(name, spelling[name], array.shape, array.tobytes()) for name, array in shuffled], tail=b" " * (seed % 9)))
    weighbridge("convert", path, out)
    assert out.read_bytes() == save(model)
    assert content_digest(path) == content_digest(out)


def test_what_is_written_loads_in_the_package(tmp_path):
    model = {name: array for name, array in one_of_each(ZT_NAMES).items() if NAME_OF[array.dtype] != "complex128"}
    path, middle, back = tmp_path / "in.safetensors", tmp_path / "m.zt", tmp_path / "back.safetensors"
    metadata = {"b": "2", "a": "\u00fcn\u0000\"\\", "": "", "\U0001f980": "\u2028"}
    path.write_bytes(save(model, metadata))
    weighbridge("convert", path, middle)
    weighbridge("convert", middle, back)
    data = back.read_bytes()
    assert package_reads(data) == package_reads(path.read_bytes())
    assert header_of(data)["__metadata__"] == metadata
    assert list(header_of(data)["__metadata__"]) == sorted(metadata, key=str.encode)  # ours: reproducible
    numpy_only = {name: array for name, array in model.items() if NAME_OF[array.dtype] not in ("bf16", "f8_e4m3", "f8_e5m2")}
    loaded, content = load(save(numpy_only)), all_extracted(back)
    assert {name: array.tobytes() for name, array in loaded.items()} == {name: content[name] for name in numpy_only}
    with safetensors.safe_open(back, framework="np") as opened:
        assert opened.metadata() == metadata
        for name, array in model.items():
            if NAME_OF[array.dtype] in ("f32", "i8", "u64", "bool", "f16", "complex64"):
                loaded = opened.get_tensor(name)
                assert loaded.dtype == array.dtype and loaded.shape == array.shape and loaded.tobytes() == array.tobytes()


@pytest.mark.parametrize("shape, bytes_", [((4,), 2), ((2, 6), 6), ((0,), 0), ((3, 2, 1), 3)])
def test_four_bits_as_the_package_packs_them(tmp_path, shape, bytes_):
    """The package counts the storage bytes of its float4_e2m1fn_x2 and doubles the last axis; the header counts elements."""
    data = np.arange(1, bytes_ + 1, dtype=np.uint8)
    storage = (*shape[:-1], shape[-1] // 2) if shape[-1] % 2 == 0 else None
    path = tmp_path / "f4.safetensors"
    if storage is None:
        path.write_bytes(file_of([("w", "F4", shape, data.tobytes())]))
    else:
        spec = safetensors.TensorSpec(dtype="float4_e2m1fn_x2", shape=list(storage), data_ptr=data.ctypes.data, data_len=data.nbytes)
        path.write_bytes(bytes(safetensors.serialize({"w": spec})))
    assert package_reads(path.read_bytes()) == {"w": ("F4", shape, data.tobytes())}
    weighbridge("verify", path)
    tensor = inspected(path)["w"]
    assert tensor["dtype"] == "f4" and tuple(tensor["shape"]) == shape
    assert extracted(path, "w") == data.tobytes()


@pytest.mark.parametrize("dtype, ours", [("F6_E2M3", "f6_e2m3"), ("F6_E3M2", "f6_e3m2")])
def test_six_bits(tmp_path, dtype, ours):
    data = bytes(range(9))
    path, out = tmp_path / "f6.safetensors", tmp_path / "out.safetensors"
    path.write_bytes(file_of([("w", dtype, (3, 4), data)], tail=b"   "))
    weighbridge("verify", path)
    assert inspected(path)["w"]["dtype"] == ours and extracted(path, "w") == data
    weighbridge("convert", path, out)
    assert package_reads(out.read_bytes()) == package_reads(path.read_bytes()) == {"w": (dtype, (3, 4), data)}


@pytest.mark.parametrize("name", ["f8_e8m0", "f8_e4m3fnuz", "f8_e5m2fnuz"])
def test_what_zt_cannot_hold_is_not_written(tmp_path, name):
    path, out = tmp_path / "in.safetensors", tmp_path / "out.zt"
    path.write_bytes(save({"w": np.zeros(8, NUMPY_OF[name])}))
    weighbridge("convert", path, out, status=1)
    assert not out.exists()


@pytest.mark.parametrize("shape, size", [((3,), 1), ((5,), 2), ((2, 3, 5), 22)])
def test_sub_byte_totals_that_fill_no_byte_are_refused_by_both(tmp_path, shape, size):
    path = tmp_path / "odd.safetensors"
    for dtype in ("F4", "F6_E2M3"):
        path.write_bytes(file_of([("w", dtype, shape, bytes(size))]))
        if int(np.prod(shape)) * (4 if dtype == "F4" else 6) % 8 == 0:
            continue
        with pytest.raises(safetensors.SafetensorError):
            safetensors.deserialize(path.read_bytes())
        weighbridge("verify", path, status=1)


def test_duplicates_pass_in_the_package_and_not_here(tmp_path):
    """Reading T1: the format's text forbids duplicate keys; the package takes the last."""
    one = '"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'
    text = ("{" + one + "," + one + "}").encode()
    path = tmp_path / "twice.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"\x05")
    assert package_reads(path.read_bytes()) == {"w": ("U8", (1,), b"\x05")}
    weighbridge("verify", path, status=1)


def test_a_leading_space_passes_in_the_package_and_not_here(tmp_path):
    """Reading T1: the header starts with `{`."""
    path = tmp_path / "space.safetensors"
    path.write_bytes(file_of([("w", "U8", (1,), b"\x05")], head=b" "))
    assert package_reads(path.read_bytes()) == {"w": ("U8", (1,), b"\x05")}
    weighbridge("verify", path, status=1)


def test_mutations_that_the_package_refuses_are_refused_here(tmp_path):
    """One byte of the header changed, everywhere: we accept nothing that the package refuses, and files that both accept are equal."""
    data = save({"a": np.arange(3, dtype=np.float32), "bb": np.zeros((2, 0), np.int8), "c": np.array(True)}, {"k": "v"})
    size, = struct.unpack("<Q", data[:8])
    paths, readings = [], []
    generator = np.random.Generator(np.random.PCG64(5))
    for i in range(240):
        changed = bytearray(data)
        changed[generator.integers(0, 8 + size)] ^= 1 << generator.integers(0, 8)
        paths.append(tmp_path / f"{i}.safetensors")
        paths[-1].write_bytes(changed)
        try:
            readings.append(package_reads(bytes(changed)))
        except Exception as error:  # the package also raises plain exceptions
            readings.append(error)
    weighbridge("verify", paths[0], status=0 if isinstance(readings[0], dict) else 1)
    verdicts = json.loads(weighbridge("verify", "--json", *paths, status=1))["files"]
    accepted = 0
    for path, reading, verdict in zip(paths, readings, verdicts):
        if verdict["valid"] and not any(f["severity"] == "unsupported" for f in verdict["findings"]):
            accepted += 1
            assert isinstance(reading, dict), (path.read_bytes(), reading)
            listed, content = inspected(path), all_extracted(path)
            assert reading == {name: (reading[name][0], tuple(listed[name]["shape"]), content[name]) for name in content}
    assert accepted > 10
