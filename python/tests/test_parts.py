# SPDX-License-Identifier: Apache-2.0
"""Half of a model is not a model: it opens with a warning, and is converted and run only with consent."""
import shutil

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


def test_a_part_is_run_only_with_consent(encoder_folder, tmp_path):
    shutil.copytree(encoder_folder, tmp_path / "encoder")
    part = tmp_path / "model-00001-of-00002.safetensors"
    shutil.copy(encoder_folder / "model.safetensors", part)
    with pytest.raises(wb.UnsupportedError, match="allow='part'"):
        wb.Embedder(part, heads=4)
    with pytest.raises(wb.UnsupportedError, match="allow='part'"):
        wb.Generator(part)
    assert wb.Embedder(part, heads=4, allow="part").dimension == 32
