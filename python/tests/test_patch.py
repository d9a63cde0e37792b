# SPDX-License-Identifier: Apache-2.0
"""Patches: made, applied and folded. tests/cli/test_patch.py has what the command says, src/diff/patch_test.cc the encodings."""
import array

import pytest

import weighbridge as wb


def step(number):
    return {"w": array.array("f", [i + (number if i % 50 == 0 else 0) for i in range(5000)]), "norm": array.array("f", [number // 2] * 8)}


@pytest.fixture
def steps(tmp_path):
    paths = [tmp_path / f"{i}.safetensors" for i in range(3)]
    for i, path in enumerate(paths):
        wb.save(path, step(i))
    return paths


def test_patches_make_the_other_model(steps, tmp_path):
    said = wb.make_patch(steps[0], steps[1], tmp_path / "1.zt")
    assert (said.tensors, said.changed, said.differing, said.elements) == (2, 1, 100, 5000)
    assert (said.base, said.result) == (wb.hash(steps[0]), wb.hash(steps[1]))
    assert wb.make_patch(step(1), wb.open(steps[2]), tmp_path / "2.zt").changed == 2
    made = wb.apply(steps[0], tmp_path / "1.zt", tmp_path / "1.gguf")
    assert (made.format, made.size) == ("gguf", (tmp_path / "1.gguf").stat().st_size)
    assert wb.hash(tmp_path / "1.gguf") == wb.hash(steps[1])
    wb.apply(step(0), [tmp_path / "1.zt", wb.open(tmp_path / "2.zt")], tmp_path / "2.npz", format="npz")
    assert wb.hash(tmp_path / "2.npz") == wb.hash(steps[2])
    both = wb.fold([tmp_path / "1.zt", tmp_path / "2.zt"], tmp_path / "both.zt")
    assert both.result == wb.hash(steps[2]) and wb.verify(tmp_path / "both.zt").valid
    wb.apply(steps[0], tmp_path / "both.zt", tmp_path / "both.safetensors")
    assert wb.hash(tmp_path / "both.safetensors") == wb.hash(steps[2])


def test_what_does_not_fit_is_refused_and_nothing_is_written(steps, tmp_path):
    wb.make_patch(steps[0], steps[1], tmp_path / "1.zt")
    with pytest.raises(wb.UsageError, match="exists"):
        wb.make_patch(steps[0], steps[1], tmp_path / "1.zt")
    wb.make_patch(steps[0], steps[1], tmp_path / "1.zt", overwrite=True)
    before = sorted(tmp_path.iterdir())
    for work in (lambda: wb.apply(steps[2], tmp_path / "1.zt", tmp_path / "no.zt"), lambda: wb.apply(steps[0], [], tmp_path / "no.zt"),
                 lambda: wb.apply(steps[0], steps[1], tmp_path / "no.zt"), lambda: wb.fold([tmp_path / "1.zt"], tmp_path / "no.zt"),
                 lambda: wb.fold([tmp_path / "1.zt", tmp_path / "1.zt"], tmp_path / "no.zt")):
        with pytest.raises(wb.UsageError):
            work()
    assert sorted(tmp_path.iterdir()) == before
