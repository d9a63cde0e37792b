# SPDX-License-Identifier: Apache-2.0
"""What a GGUF was made from, and the statement about it."""
import array
import json
import random
import struct

import pytest
import weighbridge as wb


def matrix(rows, columns, seed=0):
    rng = random.Random(seed)
    return memoryview(array.array("f", [rng.gauss(0, 0.02) for _ in range(rows * columns)])).cast("B").cast("f", [rows, columns])


@pytest.fixture
def base(tmp_path):
    wb.save(tmp_path / "base.safetensors", {"a": matrix(8, 512), "b": matrix(8, 512, 1), "norm": array.array("f", range(8))})
    return tmp_path / "base.safetensors"


def test_a_quantized_file_is_made_from_its_source(base, tmp_path):
    wb.convert(base, tmp_path / "out.gguf", quantize="q4_0")
    found = wb.verify(tmp_path / "out.gguf", derived_from=base)
    assert found and (found.verdict, found.quantize, found.tensors, found.unlike, found.header) == ("equal", "q4_0", 3, 0, True)
    with wb.open(base) as source:
        assert wb.verify((tmp_path / "out.gguf").read_bytes(), derived_from=source) == found
    content = bytearray((tmp_path / "out.gguf").read_bytes())
    content[-200] ^= 1
    found = wb.verify(bytes(content), derived_from=base, report=True)
    assert not found and found.verdict == "not from this source"
    only, = found.differences
    assert (only.name, only.unlike) == ("b", 1) and only.values.max_abs > 0


def test_a_statement_says_how_a_file_was_made(base, tmp_path):
    out = struct.pack("<i", 1) + struct.pack("<i", 1) + b"a" + struct.pack("<ii", 1, 512) + struct.pack("<512f", *range(1, 513))
    (tmp_path / "m.dat").write_bytes(out)
    wb.convert(base, tmp_path / "out.gguf", quantize="q4_0", imatrix=tmp_path / "m.dat", without="b", rename={"norm": "n"}, statement=tmp_path / "s.json")
    said = json.loads((tmp_path / "s.json").read_text())["predicate"]["buildDefinition"]
    assert {each["name"]: each["value"] for each in said["externalParameters"]["options"]} == \
        {"quantize": "q4_0", "imatrix": str(tmp_path / "m.dat"), "without": "b", "rename": "norm=n"}
    assert [each["name"] for each in said["resolvedDependencies"]] == ["source", "imatrix"]
    given = dict(statement=tmp_path / "s.json", imatrix=tmp_path / "m.dat")
    assert wb.verify(tmp_path / "out.gguf", derived_from=base, **given).verdict == "equal"
    assert wb.verify(tmp_path / "out.gguf", derived_from=base, statement=tmp_path / "s.json").verdict == "not claimed"
    with pytest.raises(wb.MalformedError, match="another source"):
        wb.verify(tmp_path / "out.gguf", derived_from=tmp_path / "out.gguf", **given)
    with pytest.raises(wb.MalformedError, match="another importance matrix"):
        wb.verify(tmp_path / "out.gguf", derived_from=base, statement=tmp_path / "s.json", imatrix=base)
    (tmp_path / "s.json").write_text("")
    with pytest.raises(wb.MalformedError):
        wb.verify(tmp_path / "out.gguf", derived_from=base, **given)
    with pytest.raises(wb.UsageError):       # the statement exists
        wb.convert(base, tmp_path / "other.gguf", quantize="q4_0", statement=tmp_path / "s.json")
    assert not (tmp_path / "other.gguf").exists()


def test_a_statement_has_the_digests_of_merged_adapters(base, tmp_path):
    folder = tmp_path / "adapter"
    folder.mkdir()
    wb.save(folder / "adapter_model.safetensors", {"base_model.model.a.lora_A.weight": matrix(2, 512), "base_model.model.a.lora_B.weight": matrix(8, 2)})
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "lora_alpha": 4}')
    wb.save(tmp_path / "l.safetensors", {"a.weight": matrix(8, 512)})
    wb.convert(tmp_path / "l.safetensors", tmp_path / "out.gguf", quantize="q8_0", merge_lora=folder, statement=tmp_path / "s.json")
    said = json.loads((tmp_path / "s.json").read_text())["predicate"]["buildDefinition"]
    listed = [each["digest"].get("sha256") for each in said["resolvedDependencies"] if each["name"] == "merge-lora"]
    from weighbridge import _core
    from weighbridge._progress import settings
    assert listed == [_core.file_sha256(str(folder / name), settings(None, None, what="hash")) for name in ("adapter_model.safetensors", "adapter_config.json")]
    with pytest.raises(wb.UnsupportedError, match="merge-lora"):
        wb.verify(tmp_path / "out.gguf", derived_from=tmp_path / "l.safetensors", statement=tmp_path / "s.json")


def test_usage(base, tmp_path):
    with pytest.raises(TypeError):
        wb.verify(base, statement="s.json")
    with pytest.raises(wb.UsageError):
        wb.verify(base, derived_from=base)      # not a GGUF


def test_iterators_are_done_and_stated_alike(base, tmp_path):
    """The statement named what an iterator gave first; the conversion got nothing more from it."""
    wb.convert(base, tmp_path / "out.safetensors", only=iter(["a", "b"]), set={"n": 3}, allow=iter(["attribute"]), rename=str.upper,
               statement=tmp_path / "s.json")
    with wb.open(tmp_path / "out.safetensors") as made:
        assert list(made) == ["A", "B"] and dict(made.metadata)["n"] == "3"
    stated = json.loads((tmp_path / "s.json").read_text())["predicate"]["buildDefinition"]["externalParameters"]["options"]
    assert {(one["name"], one["value"]) for one in stated} == {("only", "a"), ("only", "b"), ("rename", "a=A"), ("rename", "b=B"), ("set", "n=3"),
                                                              ("allow", "attribute")}


def test_arguments_of_another_way_to_verify_are_refused(base, tmp_path):
    wb.convert(base, tmp_path / "out.gguf", quantize="q4_0")
    for more in ({"read_all": True}, {"recursive": True}, {"format": "gguf"}, {"read_as": "a=bf16"}, {"scheme": "gptq"}):
        with pytest.raises(TypeError, match=f"{next(iter(more))} has no effect with derived_from"):
            wb.verify(tmp_path / "out.gguf", derived_from=base, **more)
    with pytest.raises(TypeError, match="derived_from has no effect with manifest"):
        wb.verify(tmp_path / "out.gguf", derived_from=base, manifest=tmp_path / "list.sig")
