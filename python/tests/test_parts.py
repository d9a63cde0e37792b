# SPDX-License-Identifier: Apache-2.0
"""Half of a model is not a model: it opens with a warning, and is converted and run only with consent."""
import shutil
import warnings

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing")

import weighbridge as wb  # noqa: E402


@pytest.fixture
def shard(tmp_path):
    for number in (1, 2):
        wb.save(tmp_path / f"model-0000{number}-of-00002.safetensors", {f"w{number}": np.ones(3, np.float32)})
    return tmp_path / "model-00001-of-00002.safetensors"


def test_a_part_is_converted_only_with_consent(shard, tmp_path):
    out = tmp_path / "out.zt"
    made = wb.plan(shard, "zt")
    assert not made.possible and [item.kind for item in made.refused] == ["part"]
    with pytest.raises(wb.Error, match="part"):
        wb.convert(shard, out)
    assert not out.exists()
    wb.convert(shard, out, allow="part")
    assert list(wb.open(out)) == ["w1"]
    # Both shards together are the model.
    wb.convert([shard, tmp_path / "model-00002-of-00002.safetensors"], tmp_path / "both.zt")
    assert sorted(wb.open(tmp_path / "both.zt")) == ["w1", "w2"]


def test_losses_that_no_option_allows_are_returned_and_warned_of(encoder_folder, tmp_path):
    """A graph, a template and a README were gone, and nothing was said."""
    encoder_folder = shutil.copytree(encoder_folder, tmp_path / "encoder")
    (encoder_folder / "README.md").write_text("a card")
    with pytest.warns(wb.LossWarning, match="allow does not name") as caught:
        made = wb.convert(encoder_folder, tmp_path / "a.zt")
    assert caught[0].filename == __file__
    assert (made.path, made.format, made.size) == (str(tmp_path / "a.zt"), "zt", (tmp_path / "a.zt").stat().st_size)
    assert made.casts == [] and {item.kind for item in made.losses} == {"file"}
    with pytest.warns(wb.LossWarning):
        assert wb.plan(encoder_folder, "zt").execute(tmp_path / "b.zt").losses == made.losses
    with pytest.warns(wb.LossWarning):
        wb.save(tmp_path / "c.zt", wb.open(encoder_folder))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wb.convert(encoder_folder, tmp_path / "d.zt", allow="file").losses == made.losses
        cast = wb.convert({"w": np.ones(3, np.float32)}, tmp_path / "e.zt", cast="f16")
    assert [(each.before, each.after, each.tensors, each.values) for each in cast.casts] == [("f32", "f16", 1, 3)] and {item.kind for item in cast.losses} <= {"dtype", "precision"}


def test_a_part_is_run_only_with_consent(encoder_folder, tmp_path):
    shutil.copytree(encoder_folder, tmp_path / "encoder")
    part = tmp_path / "model-00001-of-00002.safetensors"
    shutil.copy(encoder_folder / "model.safetensors", part)
    with pytest.raises(wb.UnsupportedError, match="allow='part'"):
        wb.Embedder(part, heads=4)
    with pytest.raises(wb.UnsupportedError, match="allow='part'"):
        wb.Generator(part)
    assert wb.Embedder(part, heads=4, allow="part").dimension == 32
