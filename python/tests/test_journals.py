# SPDX-License-Identifier: Apache-2.0
"""Journals of killed edits and runs: used only if they are marked with this user's key, or trusted."""
import pytest

np = pytest.importorskip("numpy", reason="numpy is missing")

import weighbridge as wb  # noqa: E402

JOURNAL, OLD = ".weighbridge-0123456789abcdef.journal", ".x.weighbridge-0123456789abcdef.old"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return monkeypatch


def test_an_edit_of_another_home_is_undone_only_on_trust(tmp_path, home):
    path = tmp_path / "model.gguf"
    wb.save(path, {"w": np.ones((2, 32), np.float32)}, reserve=1024)
    old = path.read_bytes()
    wb.edit(path, set={"name": "a model"}, in_place=True)
    new = path.read_bytes()
    home.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    with pytest.raises(wb.InputOutputError, match="journal"):
        wb.undo_edit(path)
    assert path.read_bytes() == new
    assert wb.undo_edit(path, trust_journal=True).way == "in-place" and path.read_bytes() == old
    home.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert wb.settle_edit(path).left == "nothing"
    wb.edit(path, set={"name": "a model"}, in_place=True)
    (tmp_path / ".model.gguf.weighbridge-edit.undo").rename(tmp_path / ".model.gguf.weighbridge-edit.journal")
    home.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    for refused in (lambda: wb.settle_edit(path), lambda: wb.edit(path, set={"a": "b"}, in_place=True)):
        with pytest.raises(wb.InputOutputError, match="journal"):
            refused()
    done = wb.settle_edit(path, trust_journal=True)
    assert done.left == "finished" and [step.way for step in done.steps] == ["rename"]


def test_a_planted_journal_is_listed_and_undone_only_on_trust(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / OLD).write_text("old")
    fields = ["weighbridge journal 1", "c.zt", "", OLD, "0", str((folder / OLD).stat().st_ino), "end"]
    (folder / JOURNAL).write_bytes("".join(field + "\0" for field in fields).encode())
    wb.save(folder / "other.safetensors", {"w": np.ones(2, np.float32)})
    with pytest.raises(wb.InputOutputError, match="c.zt|journal"):
        wb.save(folder / "c.zt", {"w": np.ones(2, np.float32)})
    left = wb.left_journals(folder)
    assert len(left) == 1 and not left[0].own and left[0].why and left[0].steps[0].other == "c.zt"
    with pytest.raises(wb.InputOutputError, match="journal"):
        wb.recover_folder(folder)
    assert not (folder / "c.zt").exists()
    assert wb.recover_folder(folder, trust_journal=True)[0].undone
    assert (folder / "c.zt").read_text() == "old" and wb.left_journals(folder) == []
