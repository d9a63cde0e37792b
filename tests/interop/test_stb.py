# SPDX-License-Identifier: Apache-2.0
"""Tests both directions against independent implementations of STB and its sidecar (tests/witness): their files read here with equal
arrays in every dtype, rank and storage order, ours read there, and the sidecars match the published schema. The files of the
specification's own tool match their manifest."""
import json
import sys

import pytest

from interop_tools import (ROOT, TEST_DATA, all_extracted, content_digest, expect_equal, inspected, np, random_array, sha256,
                           weighbridge)

sys.path.insert(0, str(ROOT / "tests/witness"))
import khlnary  # noqa: E402
import stb  # noqa: E402

save_safetensors = pytest.importorskip("safetensors.numpy").save_file
jsonschema = pytest.importorskip("jsonschema")

SCHEMA = json.loads((ROOT / "docs/schemas/khm.schema.json").read_text())
SHAPES = [(), (0,), (1,), (7,), (3, 5), (2, 0, 4), (2, 3, 4), (1, 5, 1), (2, 3, 4, 5), (1, 1, 3, 1), (2, 3, 2, 4, 3),
          (2, 1, 2, 1, 2, 3), (1, 2, 1, 2, 1, 2, 1, 2)]


def random_model(seed):
    """name -> array, of every dtype and shape."""
    generator = np.random.Generator(np.random.PCG64(seed))
    return {f"{dtype}.{'x'.join(map(str, shape))}": random_array(generator, dtype, shape)
            for dtype in stb.NUMPY for shape in SHAPES}


def sidecar_of(path):
    return path.with_suffix(".khm.json")


def witness_writes(path, model, seed, **members):
    """The model in random storage orders, with its sidecar."""
    generator = np.random.Generator(np.random.PCG64(seed))
    ids = [int(i) for i in generator.permutation(256)[: len(model)]]
    table = sorted({array.shape for array in model.values() if array.ndim > 3})
    tensors = []
    for tensor_id, array in zip(ids, model.values()):
        layouts = [name for name in stb.LAYOUTS.values() if stb.storage_axes(array.ndim, name) is not None]
        layout = layouts[generator.integers(len(layouts))]
        tensors.append(stb.tensor(tensor_id, array, layout, table.index(array.shape) if array.ndim > 3 else None))
    stb.write(path, tensors)
    document = {"schema": 1, "files": [{"id": 5, "path": path.name, "size": path.stat().st_size}],
                "shapes": [list(shape) for shape in table],
                "tensors": [{"file": 5, "id": i, "name": name} for i, name in zip(ids, model)]} | members
    jsonschema.validate(document, SCHEMA)
    sidecar_of(path).write_text(json.dumps(document))
    return ids


@pytest.mark.parametrize("seed", range(4))
def test_what_the_witness_writes_reads_here(tmp_path, seed):
    model, path = random_model(seed), tmp_path / "theirs.stb"
    witness_writes(path, model, seed)
    weighbridge("verify", path)
    expect_equal(path, model)


def test_every_order_has_the_content_of_row_major(tmp_path):
    model, plain = random_model(9), tmp_path / "plain.safetensors"
    save_safetensors(model, plain)
    for seed in range(3):
        path = tmp_path / f"{seed}.stb"
        witness_writes(path, model, seed)
        assert content_digest(path) == content_digest(plain)
        weighbridge("convert", path, tmp_path / f"{seed}.safetensors")
        expect_equal(tmp_path / f"{seed}.safetensors", model)


def test_without_its_sidecar_only_high_ranks_are_unsupported(tmp_path):
    model, path = random_model(1), tmp_path / "theirs.stb"
    ids = witness_writes(path, model, 1)
    sidecar_of(path).unlink()
    weighbridge("verify", path, status=3)
    listed = inspected(path)
    for tensor_id, array in zip(ids, model.values()):
        tensor = listed[str(tensor_id)]
        assert tensor["shape"] == (list(array.shape) if array.ndim <= 3 else None)
        assert tensor["supported"] == (array.ndim <= 3)


def test_shapes_that_tensors_state_stand_in_for_the_table(tmp_path):
    array = np.arange(24, dtype=np.int32).reshape(2, 3, 2, 2)
    path = tmp_path / "a.stb"
    stb.write(path, [stb.tensor(3, array, "channels_last", 99)])
    document = {"schema": 1, "files": [{"id": 0, "path": "a.stb"}],
                "tensors": [{"file": 0, "id": 3, "name": "w", "shape": [2, 3, 2, 2]}]}
    sidecar_of(path).write_text(json.dumps(document))
    expect_equal(path, {"w": array})
    assert khlnary.open_file(khlnary.load_sidecar(sidecar_of(path)), tmp_path, 0)["w"].array.tobytes() == array.tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_here_reads_there(tmp_path, seed):
    model, source, path = random_model(seed), tmp_path / "in.safetensors", tmp_path / "ours.stb"
    save_safetensors(model, source)
    weighbridge("convert", source, path)
    weighbridge("verify", path)
    assert stb.parse(path.read_bytes()).warnings == []
    jsonschema.validate(json.loads(sidecar_of(path).read_text()), SCHEMA)
    sidecar = khlnary.load_sidecar(sidecar_of(path))
    assert [entry["path"] for entry in sidecar["files"]] == ["ours.stb"]
    read = khlnary.open_file(sidecar, tmp_path, 0)
    assert set(read) == set(model)
    for name, array in model.items():
        assert read[name].shape == array.shape and read[name].dtype == name.split(".")[0], name
        assert read[name].array.tobytes() == array.tobytes() and read[name].layout == "row_major", name
    again = tmp_path / "again.stb"
    weighbridge("convert", source, again)
    assert again.read_bytes() == path.read_bytes()
    weighbridge("convert", path, tmp_path / "kept.stb")  # ids, names and bytes survive
    assert (tmp_path / "kept.stb").read_bytes() == path.read_bytes()


def test_names_that_are_ids_need_no_sidecar(tmp_path):
    model, source, path = {str(i): np.full(3, i, np.int8) for i in range(10)}, tmp_path / "in.safetensors", tmp_path / "a.stb"
    save_safetensors(model, source)
    weighbridge("convert", source, path)
    assert not sidecar_of(path).exists()
    assert {name: e.array.tobytes() for name, e in stb.read(path).items()} == {n: a.tobytes() for n, a in model.items()}


def test_an_old_sidecar_is_not_left_to_speak_of_a_new_file(tmp_path):
    source, path = tmp_path / "in.safetensors", tmp_path / "a.stb"
    save_safetensors({"0": np.zeros(3, np.int8)}, source)
    sidecar_of(path).write_text('{"schema":1,"files":[{"id":0,"path":"a.stb"}],"tensors":[{"file":0,"id":0,"name":"old"}]}')
    weighbridge("convert", source, path, status=2)
    assert not path.exists()
    weighbridge("convert", source, path, "--force")
    assert not sidecar_of(path).exists()
    assert set(inspected(path)) == {"0"}


@pytest.mark.parametrize("model, word", [({str(i): np.zeros(1, np.int8) for i in range(257)}, "257"),
                                         ({"w": np.zeros(2, np.int64)}, "i64"), ({"w": np.zeros(2, np.float64)}, "makes it one")])
def test_what_does_not_fit_is_refused_by_name(tmp_path, model, word):
    source, path = tmp_path / "in.safetensors", tmp_path / "a.stb"
    save_safetensors(model, source)
    plan = weighbridge("convert", source, path, "--dry-run", "--json", status=1).decode()
    assert word in plan
    assert not path.exists() and not sidecar_of(path).exists()


def test_a_cast_makes_floats_fit(tmp_path):
    source, path = tmp_path / "in.safetensors", tmp_path / "a.stb"
    save_safetensors({"w": np.array([1.5, -2.0, 3e-5])}, source)
    weighbridge("convert", source, path, "--cast", "f16")
    expect_equal(path, {"w": np.array([1.5, -2.0, 3e-5]).astype(np.float16)})


def real_files():
    manifest = TEST_DATA / "stb/MANIFEST.json"
    return json.loads(manifest.read_text())["files"] if manifest.exists() else []


@pytest.mark.parametrize("entry", real_files(), ids=lambda entry: entry["file"])
def test_files_of_the_reference_tool(entry):
    path = TEST_DATA / "stb" / entry["file"]
    status = {"accept": 0, "reject": 1, "unsupported": 3}[entry["expect"]]
    found = json.loads(weighbridge("verify", "--json", path, status=status))["files"][0]
    assert found["valid"] == (status != 1)
    if status == 1:
        assert found["findings"][0]["rule"] == "stb/unaligned"
    if status == 0:
        listed, content = inspected(path), all_extracted(path) if entry["tensors"] else {}
        assert {name: (t["dtype"], t["shape"]) for name, t in listed.items()} == {
            t["name"]: (t["dtype"], t["shape"]) for t in entry["tensors"]}
        assert {name: sha256(data) for name, data in content.items()} == {t["name"]: t["sha256"] for t in entry["tensors"]}
