# SPDX-License-Identifier: Apache-2.0
"""wb.edit and wb.undo_edit."""
import pytest

np = pytest.importorskip("numpy", reason="numpy is missing")

import weighbridge as wb  # noqa: E402


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.gguf"
    wb.save(path, {"w": np.ones((2, 32), np.float32), "b": np.zeros(32, np.float32)}, reserve=1024)
    return path


def metadata(path):
    with wb.open(path) as model:
        return dict(model.metadata)


def test_set_undo_and_types(path):
    old = path.read_bytes()
    done = wb.edit(path, set={"name": "a model", "steps": (5, "u32"), "rate": 0.5, "on": True, "words": ["a", "b"]}, in_place=True)
    assert done.way == "in-place" and done.written and len(done.changes) == 5 and path.stat().st_size == len(old)
    assert metadata(path)["steps"] == 5 and metadata(path)["name"] == "a model"
    wb.edit(path, set={"steps": 6, "name": None}, in_place=True)
    assert metadata(path)["steps"] == 6 and "name" not in metadata(path)
    wb.undo_edit(path)
    assert metadata(path)["steps"] == 5
    with pytest.raises(wb.UsageError):
        wb.edit(path, set={"steps": (-1, "u32")}, in_place=True)
    with pytest.raises(TypeError):
        wb.edit(path, set={"steps": (1, 2, 3)}, in_place=True)


def test_rename_and_new_files(path, tmp_path):
    assert wb.edit(path, rename={"w": "weight"}, dry_run=True, in_place=True).way == "in-place"
    wb.edit(path, rename={"w": "b", "b": "w"}, in_place=True)
    with wb.open(path) as model:
        assert model["b"].shape == (2, 32)
    new = tmp_path / "new.gguf"
    assert wb.edit(path, without="w", output=new).way == "converted" and list(wb.open(new)) == ["b"]
    with pytest.raises(wb.UsageError, match="authr|no attribute"):
        wb.edit(path, unset="authr", in_place=True)


def test_rename_by_pattern(path):
    wb.edit(path, rename=["s/^w$/weight/", "b=bias"], in_place=True)
    with wb.open(path) as model:
        assert sorted(model) == ["bias", "weight"]


def test_the_last_tensor_is_left_out_in_place(path):
    old = path.read_bytes()
    with wb.open(path) as model:
        last = list(model)[-1]
    assert wb.edit(path, without=last, in_place=True).way == "in-place"
    with wb.open(path) as model:
        assert last not in model and len(model) == 1
    wb.undo_edit(path)
    assert path.read_bytes() == old


def test_a_file_that_is_open_here_is_refused(path):
    with wb.open(path):
        try:
            done = wb.edit(path, set={"a": "b"}, in_place=True)
        except wb.InputOutputError as error:
            assert "open" in str(error)
        else:
            assert not done.alone, "the filesystem has no leases"


def test_the_format_can_be_named(path):
    assert wb.edit(path, set={"k": "v"}, format="gguf", in_place=True).written
    with pytest.raises(wb.Error):
        wb.edit(path, set={"k": "w"}, format="safetensors", in_place=True)


def test_values_that_cannot_be_stored_are_refused(path, tmp_path):
    """They were rounded to f64."""
    for value in (1 << 64, -(1 << 63) - 1, [1, 1 << 70], (1 << 64, "u64")):
        with pytest.raises(wb.UsageError, match="does not fit 64 bits"):
            wb.edit(path, set={"n": value}, output=tmp_path / "out.gguf")
    with pytest.raises(wb.UsageError, match="JSON has no nan"):
        wb.edit(path, set={"n": float("nan")}, output=tmp_path / "out.gguf")


def test_an_empty_output_does_not_change_the_file(path):
    old = path.read_bytes()
    with pytest.raises(wb.UsageError, match="output is empty"):
        wb.edit(path, set={"a": "2"}, output="")
    assert path.read_bytes() == old


def test_a_path_that_is_no_unicode(path, tmp_path):
    import os
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.gguf")
    path.rename(odd)
    assert wb.edit(odd, set={"a": "2"}, in_place=True).written and wb.undo_edit(odd).written
