# SPDX-License-Identifier: Apache-2.0
"""Journals of killed runs, and those that somebody put beside the user's files. tests/robustness/test_kill_homes.py kills runs."""
import os
import stat
import struct
import time

import pytest

from conftest import safetensors, validated, weighbridge

JOURNAL = ".weighbridge-0123456789abcdef.journal"
OLD, FRESH = ".x.weighbridge-0123456789abcdef.old", ".x.weighbridge-0123456789abcdef.tmp"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "folder"
    (folder / "Documents").mkdir(parents=True)
    (folder / "Documents/thesis.tex").write_text("precious")
    (folder / "a.safetensors").write_bytes(safetensors({"w": ("F32", [1], struct.pack("<f", 1))}))
    return folder


def plant(folder, *entries):
    """name, fresh, aside, inode, old inode, as weighbridge 0.2 wrote them."""
    fields = [field for entry in entries for field in entry]
    (folder / JOURNAL).write_bytes("".join(f"{field}\0" for field in ["weighbridge journal 1", *fields, "end"]).encode())


def test_a_planted_journal_takes_no_file_away_and_blocks_no_other_name(folder):
    thesis = folder / "Documents/thesis.tex"
    inode = thesis.stat().st_ino
    plant(folder, *(("Documents/thesis.tex", FRESH, "", str(i), "0") for i in range(inode - 100_000, inode + 10)))
    begin = time.monotonic()
    done = weighbridge("convert", folder / "a.safetensors", folder / "b.zt")
    assert time.monotonic() - begin < 5 and thesis.read_text() == "precious"
    assert JOURNAL in done.stderr and "--recover" in done.stderr and (folder / "b.zt").exists()
    weighbridge("doctor", folder, "--recover", "--trust-journal", status=4)
    assert thesis.read_text() == "precious"


def test_what_a_planted_journal_lists_is_named_and_undone_only_on_trust(folder):
    (folder / OLD).write_text("old")
    inode = (folder / "a.safetensors").stat().st_ino
    plant(folder, ("a.safetensors", FRESH, OLD, inode, (folder / OLD).stat().st_ino), ("b.zt", FRESH + "2", "", "0", "0"))
    assert "damaged" in weighbridge("doctor", folder, "--recover", status=4).stderr  # no name of a temporary
    plant(folder, ("a.safetensors", FRESH, OLD, inode, (folder / OLD).stat().st_ino))
    other = folder.parent / "other.safetensors"
    other.write_bytes(safetensors({"w": ("F32", [1], struct.pack("<f", 2))}))
    refused = weighbridge("convert", other, folder / "a.safetensors", "--force", status=4).stderr
    assert JOURNAL in refused and f"weighbridge doctor {folder} --recover --trust-journal" in refused
    before = (folder / "a.safetensors").read_bytes()
    said = validated(weighbridge("doctor", folder, "--recover", "--json", status=4).stdout, "doctor")["files"][0]
    assert said["findings"][0]["rule"] == "io/half-published"
    assert (folder / "a.safetensors").read_bytes() == before
    out = weighbridge("doctor", folder, "--recover", "--trust-journal").stdout
    assert f"rename {folder}/a.safetensors to {folder}/{FRESH}" in out and f"remove {folder}/{JOURNAL}" in out
    assert (folder / "a.safetensors").read_text() == "old" and (folder / FRESH).read_bytes() == before
    assert "nothing to do" in weighbridge("doctor", folder, "--recover").stdout


def test_recovering_as_json(folder):
    (folder / OLD).write_text("old")
    plant(folder, ("c.zt", "", OLD, "0", (folder / OLD).stat().st_ino))
    done = validated(weighbridge("doctor", folder, "--recover", "--trust-journal", "--json").stdout, "doctor")["files"][0]
    assert done["journals"] == [{"path": f"{folder}/{JOURNAL}", "own": False, "why": None, "undone": True, "steps": [
        {"way": "rename", "from": OLD, "to": "c.zt", "offset": 0, "length": 0},
        {"way": "remove", "from": JOURNAL, "to": None, "offset": 0, "length": 0}]}]


def test_a_planted_journal_of_an_edit_is_not_used(folder):
    model = folder / "a.safetensors"
    old = model.read_bytes()
    (folder / ".a.safetensors.weighbridge-edit.journal").write_text("x")
    assert "journal of an edit" in weighbridge("verify", model).stdout
    for words in (["--set", "a=b", "-i"], ["--undo"], ["--recover"], ["--recover", "--trust-journal"]):
        assert "damaged" in weighbridge("edit", model, *words, status=4).stderr
    weighbridge("convert", model, folder / "c.zt")
    assert model.read_bytes() == old


def test_an_edit_of_another_home_is_undone_only_on_trust(folder, monkeypatch):
    model = folder / "roomy.safetensors"
    weighbridge("convert", folder / "a.safetensors", model, "--reserve", "512")
    old = model.read_bytes()
    weighbridge("edit", model, "--set", "author=me", "-i")
    state = folder.parent / "state"
    key = state / "weighbridge/journal-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and stat.S_IMODE(key.parent.stat().st_mode) == 0o700 and key.stat().st_size == 32
    assert os.listdir(key.parent) == ["journal-key"]
    new = model.read_bytes()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "another"))
    refused = weighbridge("edit", model, "--undo", status=4).stderr
    assert "not marked with this user's key" in refused or "no state folder" in refused
    assert f"weighbridge edit {model} --undo --trust-journal" in refused and model.read_bytes() == new
    weighbridge("edit", model, "--undo", "--trust-journal")
    assert model.read_bytes() == old
    weighbridge("edit", model, "--trust-journal", "--set", "a=b", "-i", status=2)
    os.rename(folder / ".roomy.safetensors.weighbridge-edit.undo", folder / ".roomy.safetensors.weighbridge-edit.journal")
    done = validated(weighbridge("edit", model, "--recover", "--trust-journal", "--json").stdout, "edit")
    assert done["left"] == "finished" and [step["way"] for step in done["steps"]] == ["rename"]


def test_a_folder_with_a_journal_is_warned_of(folder):
    (folder / "config.json").write_text('{"model_type": "bert"}')
    (folder / "a.safetensors").rename(folder / "model.safetensors")
    plant(folder, ("c.zt", "", OLD, "0", "1"))
    for verb in ("verify", "doctor"):
        assert "io/half-published" in weighbridge(verb, folder, status=1).stdout  # it has no vocabulary either


def test_the_key_is_made_by_a_confined_command_and_nothing_else_in_the_home(folder, monkeypatch):
    """The home itself is not opened for writing: only the folder of the key."""
    home = folder.parent / "home"
    home.mkdir()
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(home))
    weighbridge("inspect", folder / "a.safetensors")
    assert os.listdir(home) == []
    weighbridge("convert", folder / "a.safetensors", folder / "roomy.safetensors", "--reserve", "512")
    weighbridge("edit", folder / "roomy.safetensors", "--set", "a=b", "-i")
    assert sorted(path.relative_to(home).as_posix() for path in home.rglob("*")) == [
        ".local", ".local/state", ".local/state/weighbridge", ".local/state/weighbridge/journal-key"]
    weighbridge("edit", folder / "roomy.safetensors", "--undo")
