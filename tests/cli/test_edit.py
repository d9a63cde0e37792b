# SPDX-License-Identifier: Apache-2.0
"""edit by its jobs: a word of metadata, a name, what fits, what does not, and what the user is told."""
import json
import os
import struct

import pytest

from conftest import safetensors, validated, weighbridge


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [2], struct.pack("<2f", 1, 2)), "b": ("U8", [3], b"abc")},
                                 {"author": "somebody with a long name", "license": "unknown"}))
    return path


def edited(*arguments, status=0):
    return validated(weighbridge("edit", "--json", *arguments, status=status).stdout, "edit")


def metadata(path):
    return json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]["attributes"]


def test_change_a_word_and_take_it_back(model):
    old = model.read_bytes()
    out = weighbridge("edit", model, "--set", "license=mit", "--in-place").stdout
    assert out.startswith(f"{model}: changed in place; the header needs ") and '  change attributes["license"]: unknown -> mit\n' in out
    assert metadata(model)["license"] == "mit" and len(model.read_bytes()) == len(old) and model.read_bytes().endswith(old[-11:])
    weighbridge("edit", model, "--undo")
    assert model.read_bytes() == old
    weighbridge("edit", model, "--undo")
    assert metadata(model)["license"] == "mit"


def test_an_edit_that_replaces_the_file_says_that_undo_cannot_revert_it(model, tmp_path):
    """The help's first and last examples in a row ended with "there is no edit to undo", of which nothing had warned."""
    grown = ["--set", "description=" + "x" * 5000]
    assert "--undo cannot revert" in weighbridge("edit", model, *grown, "--dry-run").stdout
    done = weighbridge("edit", model, *grown, "--in-place")
    assert "which --undo cannot revert" in done.stderr and "; --undo cannot revert it, because a new file replaced the old one\n" in done.stdout
    assert "an edit that replaced the file by a new one cannot be undone" in weighbridge("edit", model, "--undo", status=2).stderr
    assert "--undo" not in weighbridge("edit", model, *grown[:1], "description=y", "-o", tmp_path / "new.safetensors").stdout


def test_undo_of_a_folder_says_why_not(model):
    """It said that only a regular file can be changed in place, after the folder had been."""
    (model.parent / "config.json").write_text('{"model_type": "mine"}')
    assert "config.json changed; --undo cannot revert it\n" in weighbridge("edit", model.parent, "--set", "license=mit", "-i").stdout
    said = weighbridge("edit", model.parent, "--undo", status=2).stderr
    assert "an edit of a folder cannot be undone: a new file replaces its config.json" in said and "regular file" not in said


def test_see_what_would_change(model):
    old = model.read_bytes()
    out = weighbridge("edit", model, "--set", "license=mit", "--unset", "author", "--rename", "w=weight", "--dry-run").stdout
    assert ": in place: the header needs " in out and 'remove attributes["author"]' in out and 'tensors["w"]: w -> weight' in out
    found = edited(model, "--set", f"long={'x' * 500}", "--dry-run")
    assert (found["way"], found["written"]) == ("copied", False) and found["needed"] > found["header"]
    assert model.read_bytes() == old and os.listdir(model.parent) == ["model.safetensors"]


def test_it_asks_where_to_write(model):
    assert "--in-place changes FILE itself" in weighbridge("edit", model, "--set", "a=b", status=2).stderr
    assert "nothing to change" in weighbridge("edit", model, "--in-place", status=2).stderr
    for words in (["--set", "novalue"], ["--set", "=x"], ["--rename", "w"], ["--in-place", "-o", "x"], ["--undo", "--in-place"]):
        weighbridge("edit", model, *words, *(() if "-o" in words or "--undo" in words else ("--in-place",)), status=2)


def test_a_header_that_does_not_fit_is_announced(model):
    done = weighbridge("edit", model, "--set", f"long={'x' * 500}", "--in-place")
    assert "a new file of" in done.stderr and "replaces this one" in done.stderr and ": written, " in done.stdout
    assert metadata(model)["long"] == "x" * 500
    weighbridge("verify", model)
    assert os.listdir(model.parent) == ["model.safetensors"]


def test_hard_links_are_named(model):
    os.link(model, model.parent / "second")
    assert "2 names (hard links), and all of them show the change" in weighbridge("edit", model, "--set", "license=mit", "-i").stderr
    assert metadata(model.parent / "second")["license"] == "mit"
    done = weighbridge("edit", model, "--set", f"long={'x' * 500}", "-i")
    assert "the others keep the old file" in done.stderr
    assert "long" not in metadata(model.parent / "second")


def test_write_another_file(model, tmp_path):
    old = model.read_bytes()
    found = edited(model, "--rename", "w=weight", "--reserve", "1K", "-o", tmp_path / "new.safetensors")
    assert found["way"] == "copied" and found["written"] and model.read_bytes() == old
    later = edited(tmp_path / "new.safetensors", "--set", f"more={'y' * 900}", "--in-place")
    assert later["way"] == "in-place" and later["undo"].endswith("/.new.safetensors.weighbridge-edit.undo")
    weighbridge("edit", model, "--set", "a=b", "-o", tmp_path / "new.safetensors", status=2)
    weighbridge("edit", model, "--set", "a=b", "-o", tmp_path / "new.safetensors", "--force")
    weighbridge("edit", model, "--without", "b", "-o", tmp_path / "less.safetensors")
    refused = weighbridge("edit", model, "--without", "b", "--in-place", status=2).stderr
    assert "needs a new file, because safetensors allows no bytes that belong to no tensor; try --output" in refused
    weighbridge("verify", tmp_path / "less.safetensors", tmp_path / "new.safetensors")


def test_tensors_left_out_in_place_stay_in_the_file(model, tmp_path):
    path = tmp_path / "model.zt"
    weighbridge("convert", model, path)
    old = path.read_bytes()
    assert "the bytes of the tensors left out stay in the file" in weighbridge("edit", path, "--without", "b", "--in-place").stderr
    assert "b" not in [tensor["name"] for tensor in json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]["tensors"]]
    weighbridge("verify", path)
    weighbridge("edit", path, "--undo")
    assert path.read_bytes() == old


def test_the_shard_and_the_command_are_named(model, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, glob in (1, "b"), (2, "w"):
        weighbridge("convert", model, folder / f"model-0000{number}-of-00002.safetensors", "--only", glob)
    names = {glob: f"model-0000{number}-of-00002.safetensors" for number, glob in ((1, "b"), (2, "w"))}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    (folder / "config.json").write_text('{"model_type": "mine"}')
    refused = weighbridge("edit", folder, "--rename", "w=a b", "--in-place", status=2).stderr
    assert 'the tensor "w" is in "model-00002-of-00002.safetensors"' in refused
    assert f"to do: weighbridge convert {folder} NEW/ --rename 'w=a b'\n" in refused
    weighbridge("convert", folder, f"{tmp_path}/NEW/", "--rename", "w=a b")


def test_names_by_pattern(model):
    weighbridge("edit", model, "--rename", "s/^w$/weight/", "-i")
    assert "weight" in weighbridge("inspect", model).stdout


def test_types_in_gguf(model, tmp_path):
    path = tmp_path / "model.gguf"
    weighbridge("convert", model, path, "--without", "b", "--reserve", "1K", "--set", "general.name=old")
    weighbridge("edit", path, "--set", "steps:u32=5", "--set", "rate:f32=0.5", "--set", "on:bool=true", "--set", "list:json=[1,2]", "-i")
    weighbridge("edit", path, "--set", "steps=6", "-i")
    inspected = json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]["attributes"]
    assert inspected["steps"] == 6 and inspected["on"] is True
    refused = weighbridge("edit", path, "--set", "steps=many", "-i", status=2).stderr
    assert "is not a value of the type u32" in refused
    assert "describes how the file is laid out" in weighbridge("edit", path, "--set", "general.alignment:u32=64", "-i", status=2).stderr


def test_from_json(model, tmp_path):
    given = tmp_path / "edit.json"
    given.write_text('{"license": null, "author": "me", "steps": 7}')
    weighbridge("edit", model, "--from-json", given, "--in-place")
    assert metadata(model) == {"author": "me", "steps": "7"}
    given.write_text("[]")
    assert "JSON object" in weighbridge("edit", model, "--from-json", given, "--in-place", status=2).stderr


def test_mistakes_name_what_is_near(model):
    assert '"license"' in weighbridge("edit", model, "--unset", "licence", "-i", status=2).stderr
    assert "would both be called" in weighbridge("edit", model, "--rename", "w=b", "-i", status=2).stderr


def test_what_cannot_be_edited(model, tmp_path):
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(model.read_bytes()[:-2])
    weighbridge("edit", broken, "--set", "a=b", "-i", status=1)
    assert "another name" in weighbridge("edit", model, "--set", "a=b", "-o", model, "--force", status=2).stderr
    weighbridge("edit", tmp_path / "absent", "--set", "a=b", "-i", status=4)
    weighbridge("edit", tmp_path, "--set", "a=b", "-i", status=2)
    model.chmod(0o444)
    assert "read-only" in weighbridge("edit", model, "--set", "a=b", "-i", status=2).stderr
    assert "no edit in place to undo" in (model.chmod(0o644) or weighbridge("edit", model, "--undo", status=2).stderr)
    assert "nothing to do" in weighbridge("edit", model, "--recover").stdout


def test_doctor_and_verify_name_a_left_journal(model):
    weighbridge("edit", model, "--set", "license=mit", "-i")
    os.rename(model.parent / ".model.safetensors.weighbridge-edit.undo", model.parent / ".model.safetensors.weighbridge-edit.journal")
    for verb in ("verify", "doctor"):
        done = weighbridge(verb, model)
        assert "edit of this file was killed" in done.stdout + done.stderr, verb
    assert "it is now finished" in weighbridge("edit", model, "--recover").stdout
    assert "killed" not in weighbridge("verify", model).stdout
