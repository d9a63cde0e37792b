# SPDX-License-Identifier: Apache-2.0
"""Results are records, and what writes replaces nothing unasked: the habits that all functions share."""
import ast
import copy
import inspect
import json
import pathlib
import pickle

import pytest

import weighbridge as wb
from weighbridge._record import Record

RECORDS = sorted((value for value in vars(wb).values() if isinstance(value, type) and issubclass(value, Record)), key=lambda one: one.__name__)
PACKAGE = pathlib.Path(wb.__file__).parent


@pytest.fixture
def file(tmp_path):
    wb.save(tmp_path / "a.safetensors", {"w": b"12345678", "v": b"1"}, {"name": "x"})
    return tmp_path / "a.safetensors"


@pytest.mark.parametrize("kind", RECORDS, ids=lambda one: one.__name__)
def test_a_record_documents_each_field(kind):
    said = inspect.getdoc(kind).split("Attributes\n----------\n")[1]
    named = {name.strip() for line in said.splitlines() if " : " in line and not line.startswith(" ") for name in line.split(" : ")[0].split(",")}
    assert named == set(kind.__match_args__)


def test_a_record_is_a_value():
    one = wb.Hint("limit", "header", "5")
    assert one == wb.Hint("limit", "header", value="5") != one.__replace__(value="6") and hash(one) == hash(copy.copy(one))
    assert pickle.loads(pickle.dumps(one)) == one and repr(one) == "Hint(what='limit', name='header', value='5')"
    match one:
        case wb.Hint("limit", name):
            assert name == "header"
    with pytest.raises(AttributeError, match="immutable"):
        one.name = "y"
    for wrong in (lambda: wb.Hint(), lambda: wb.Hint("a", "b", "c", "d"), lambda: wb.Hint("a", hint="b")):
        with pytest.raises(TypeError):
            wrong()


def test_dicts_of_records_are_json(file):
    found = json.loads(json.dumps(wb.doctor(file.read_bytes()[:-1]).asdict()))
    assert found["advice"][0]["what"] == "fetch-rest" and found["findings"][0]["hint"]["what"] == "size"


def test_no_function_returns_a_dict_or_a_tuple():
    """But mappings by path or by name, and shapes."""
    mappings = {"verify", "numpy", "torch", "metadata", "attributes", "facts", "asdict", "shape", "prompts", "get_options"}
    names = set()
    for path in PACKAGE.glob("_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.returns:
                if "dict[" in (said := ast.unparse(node.returns)) or "tuple[" in said:
                    names.add(node.name)
    assert names - mappings == {"of_array"}  # not public


def test_nothing_is_replaced_unasked(file, tmp_path):
    there = tmp_path / "there.zt"
    there.write_bytes(b"mine")
    for write in (lambda **more: wb.save(there, {"w": b"1"}, **more), lambda **more: wb.convert(file, there, **more),
                  lambda **more: wb.plan(file, "zt", **more).execute(there), lambda **more: wb.make_patch(file, file, there, **more),
                  lambda **more: wb.edit(file, unset="name", output=there, **more), lambda **more: wb.salvage(file, there, **more)):
        there.write_bytes(b"mine")
        with pytest.raises(wb.UsageError, match="overwrite=True replaces it"):
            write()
        assert there.read_bytes() == b"mine"
        write(overwrite=True)
        assert there.read_bytes() != b"mine"


def test_edit_says_where_it_writes(file, tmp_path):
    before = file.read_bytes()
    with pytest.raises(wb.UsageError, match="needs output=PATH for a new file, or in_place=True"):
        wb.edit(file, unset="name")
    with pytest.raises(wb.UsageError, match="not both"):
        wb.edit(file, unset="name", in_place=True, output=tmp_path / "b.safetensors")
    assert file.read_bytes() == before and wb.edit(file, unset="name", in_place=True).changes == [wb.Item("attribute", 'attributes["name"]', "x", "removed")]


def test_none_is_no_file(file):
    for call in (wb.open, wb.verify, wb.check, wb.doctor, lambda none: wb.explain(none, 0), lambda none: wb.salvage(none, "a.zt"), wb.hash):
        with pytest.raises(TypeError, match="a path, a buffer or a file object is expected, not None"):
            call(None)
    assert wb.check(file, manifest=None).passed


def test_salvage(file, tmp_path):
    (tmp_path / "cut.safetensors").write_bytes(file.read_bytes()[:-1])
    made = wb.salvage(tmp_path / "cut.safetensors", tmp_path / "saved.zt")
    assert (made.written.format, made.written.size) == ("zt", (tmp_path / "saved.zt").stat().st_size)
    with wb.open(tmp_path / "saved.zt") as saved:
        assert {*saved, *made.diagnosis.damaged} == {"w", "v"} and len(saved) == made.diagnosis.whole == 1
    with pytest.raises(wb.UsageError, match="nothing to salvage"):
        wb.salvage(b"not a model", tmp_path / "none.zt")
    assert not (tmp_path / "none.zt").exists()


def test_salvage_warns_of_losses(encoder_folder, tmp_path):
    (encoder_folder.parent / "card").mkdir()
    folder = encoder_folder.parent / "card"
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        (folder / name).write_bytes((encoder_folder / name).read_bytes())
    (folder / "README.md").write_text("a card")
    with pytest.warns(wb.LossWarning, match="README.md"):
        assert [item.kind for item in wb.salvage(folder, tmp_path / "a.zt").written.losses] == ["file"]


def test_a_folder_is_salvaged_into_a_folder(encoder_folder, tmp_path):
    made = wb.salvage(encoder_folder, f"{tmp_path}/saved/")
    assert made.written.format == "hf" and wb.verify(tmp_path / "saved").valid


def test_parts_of_a_tensor(file):
    part, = wb.open(file)["w"].parts
    assert (part.role, part.dtype, part.shape, part.nbytes, part.tobytes()) == ("data", "u8", (8,), 8, b"12345678") and "u8 8, 8 B" in repr(part)


def test_the_types_of_arguments_are_there_at_run_time():
    from weighbridge import typing

    assert {"ConvertOptions", "Source", "ModelSource", "Progress"} <= set(typing.__all__) and all(hasattr(typing, name) for name in typing.__all__)


def test_records_are_equal_hashed_alike_and_kept():
    a, b = wb.Cast("a", "b", 1, 1, 0, 0, 0), wb.Cast("a", "b", 1, 1, 0, 0, 0.0)
    assert a == b and hash(a) == hash(b) and len({a, b}) == 1
    with pytest.raises(AttributeError):
        del a.before


def test_an_explanation_as_json(file):
    import base64
    found = wb.explain(file, 0)
    assert base64.b64decode(json.loads(json.dumps(found.asdict()))["data"]) == found.data
