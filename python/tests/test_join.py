# SPDX-License-Identifier: Apache-2.0
"""Several models as one, and adapters merged into a model."""
import json

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing")

import weighbridge as wb  # noqa: E402


def test_a_list_of_models_is_one(tmp_path):
    a, b = tmp_path / "a.safetensors", tmp_path / "b.zt"
    wb.save(a, {"x": np.ones(3, np.float32)}, {"format": "pt"})
    wb.save(b, {"y": np.zeros(2, np.float32)}, {"format": "pt"})
    wb.convert([a, b], tmp_path / "out.zt")
    out = wb.open(tmp_path / "out.zt")
    assert sorted(out) == ["x", "y"] and dict(out.metadata)["format"] == "pt"
    assert wb.hash([a, wb.open(b)]) == wb.hash(tmp_path / "out.zt")
    wb.convert([a, {"z": np.ones(1)}], tmp_path / "third.zt", only=["z"])
    assert list(wb.open(tmp_path / "third.zt")) == ["z"]


def test_what_two_models_have(tmp_path):
    one, two = {"x": np.ones(3, np.float32)}, {"x": np.zeros(3, np.float32)}
    with pytest.raises(wb.UsageError, match='the tensor "x" is in "input 1" and in "input 2"'):
        wb.plan([one, two], "zt")
    made = wb.plan([one, two], "zt", on_duplicate="last")
    assert made.possible and [item.subject for item in made.changes] == ['tensors["x"]']
    made.execute(tmp_path / "out.zt")
    assert wb.open(tmp_path / "out.zt")["x"].numpy().tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="on_duplicate is"):
        wb.plan([one, two], "zt", on_duplicate="middle")
    with pytest.raises(wb.UsageError, match="several models"):
        wb.plan(one, "zt", on_duplicate="last")


def test_an_adapter_is_merged(tmp_path):
    folder = tmp_path / "adapter"
    folder.mkdir()
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(8, dtype=np.float32).reshape(4, 2)
    wb.save(folder / "adapter_model.safetensors", {"base_model.model.q.lora_A.weight": a, "base_model.model.q.lora_B.weight": b})
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 4}))
    base = {"q.weight": np.ones((4, 3), np.float32)}
    for given, scale in ((folder, 2), ({folder: 0.5}, 1), ([folder, str(folder)], 4)):
        wb.convert(base, tmp_path / "out.zt", merge_lora=given, overwrite=True)
        assert np.array_equal(wb.open(tmp_path / "out.zt")["q.weight"].numpy(), 1 + scale * (b @ a))
    with pytest.raises(wb.UsageError, match="has no tensor for a change"):
        wb.plan({"k": np.ones((4, 3))}, "zt", merge_lora=folder)
    with pytest.raises(ValueError, match="it is one of auto f32 f16 bf16"):
        wb.plan(base, "zt", merge_lora=folder, dequantize="bf17")


def test_an_adapter_with_more_tokens_than_the_model(tmp_path):
    folder = tmp_path / "adapter"
    folder.mkdir()
    rows = {name: np.arange(6, dtype=np.float32).reshape(3, 2) for name in ("model.embed_tokens.weight", "lm_head.weight")}
    wb.save(folder / "adapter_model.safetensors", {"base_model.model." + name: value for name, value in rows.items()})
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 4}))
    base = {name: np.ones((2, 2), np.float32) for name in rows}
    with pytest.raises(wb.UsageError, match="has 3 rows, and the model's .* has 2; resize_vocab=True accepts it"):
        wb.plan(base, "zt", merge_lora=folder)
    wb.convert(base, tmp_path / "out.zt", merge_lora=folder, resize_vocab=True)
    assert np.array_equal(wb.open(tmp_path / "out.zt")["lm_head.weight"].numpy(), rows["lm_head.weight"])
    with pytest.raises(wb.UsageError, match="resize_vocab is for an adapter"):
        wb.plan(base, "zt", resize_vocab=True)


def test_integers_are_cast_if_each_fits(tmp_path):
    base = {"ids": np.array([1, 300], np.int64)}
    wb.convert(base, tmp_path / "out.zt", cast_int="int32")
    assert wb.open(tmp_path / "out.zt")["ids"].dtype == "i32"
    with pytest.raises(wb.UsageError, match="element 1 does not fit"):
        wb.convert(base, tmp_path / "small.zt", cast_int="u8")


def test_a_name_that_shows_no_format_says_what_to_give(tmp_path):
    with pytest.raises(wb.UsageError, match="does not show the output format: .*, or give format="):
        wb.save(tmp_path / "model.unknown", {"w": np.ones(2, np.float32)})
