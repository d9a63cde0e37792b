# SPDX-License-Identifier: Apache-2.0
"""convert --gptq: what a person reads. tests/interop/test_gptq_numbers.py has the numbers."""
import random
import struct

import pytest

from conftest import safetensors, validated, weighbridge


def layer(name, bits, rows, columns, groups, g_idx=None):
    words = lambda n: random.Random(n).randbytes(4 * n)
    out = {f"{name}.qweight": ("I32", [rows * bits // 32, columns], words(rows * bits // 32 * columns)),
           f"{name}.qzeros": ("I32", [groups, columns * bits // 32], words(groups * columns * bits // 32)),
           f"{name}.scales": ("F16", [groups, columns], bytes.fromhex("003c") * (groups * columns))}
    if g_idx is not None:
        out[f"{name}.g_idx"] = ("I32", [rows], struct.pack(f"<{rows}i", *g_idx))
    return out


@pytest.fixture
def model(tmp_path):
    """A layer that a quantized_group holds, and three that it does not."""
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({
        **layer("good", 4, 64, 32, 2, [i // 32 for i in range(64)]), **layer("act", 4, 64, 32, 2, [i % 2 for i in range(64)]),
        **layer("three", 3, 64, 32, 2), **layer("odd", 4, 72, 32, 5), "good.bias": ("F16", [1], b"\0\0")}, {"format": "pt"}))
    return path


def test_layers_are_grouped_or_left_with_the_reason(model, tmp_path):
    there, back = tmp_path / "there.zt", tmp_path / "back.safetensors"
    said = weighbridge("convert", model, there, "--gptq", "v1").stdout
    for line in ['tensors["good"]: GPTQ, 4 bits -> a quantized_group, with zeros that were stored minus one (v1)',
                 'tensors["three.qweight"]: GPTQ -> left as plain tensors: codes of 3 bits: ',
                 'tensors["odd.qweight"]: GPTQ -> left as plain tensors: its 72 rows are not 5 groups of one size',
                 'tensors["act.qweight"]: GPTQ -> left as plain tensors: its g_idx is not row / group_size (desc_act): ']:
        assert f"  change layout: {line}" in said
    assert "12 tensors" in said and ": ok (zt, 12 tensors" in weighbridge("verify", there).stdout
    weighbridge("convert", there, back, "--gptq", "auto")
    weighbridge("convert", model, tmp_path / "sorted.safetensors")
    assert back.read_bytes() == (tmp_path / "sorted.safetensors").read_bytes()


def test_without_it_nothing_is_grouped(model, tmp_path):
    there = tmp_path / "there.zt"
    weighbridge("convert", model, there)
    one, two = (line.split()[0] for line in weighbridge("hash", model, there).stdout.splitlines())
    assert one == two


def test_a_file_that_does_not_say_how_zeros_are_stored_needs_a_word(model, tmp_path):
    said = weighbridge("convert", model, tmp_path / "out.zt", "--gptq", "auto", status=2).stderr
    assert "nothing says how GPTQ's zeros are stored" in said and said.endswith("try --gptq v1 or v2\n")
    assert "did you mean 'v1'" in weighbridge("convert", model, tmp_path / "out.zt", "--gptq", "v9", status=2).stderr


def test_a_model_without_such_layers_is_a_usage_error(sample, tmp_path):
    assert "no tensors are named as GPTQ's" in weighbridge("convert", sample, tmp_path / "o.zt", "--gptq", "v1", status=2).stderr
    assert "no tensor is a quantized_group" in weighbridge("convert", sample, tmp_path / "o.stb", "--gptq", "v1", status=2).stderr


def test_dense_numbers_need_only_the_loss_of_the_layout(model, tmp_path):
    weighbridge("convert", model, tmp_path / "there.zt", "--gptq", "v2")
    plan = validated(weighbridge("convert", "--json", "-n", tmp_path / "there.zt", tmp_path / "o.safetensors", status=1).stdout,
                     "convert")
    assert [(item["kind"], item["from"], item["to"]) for item in plan["losses"]] == [("layout", "quantized_group", "dense f32")]


def test_a_zero_that_does_not_fit_writes_nothing(tmp_path):
    model, there, out = tmp_path / "m.safetensors", tmp_path / "there.zt", tmp_path / "out.safetensors"
    tensors = layer("a", 4, 64, 32, 2)
    tensors["a.qzeros"] = ("I32", [2, 4], b"\xff" * 32)
    model.write_bytes(safetensors(tensors))
    weighbridge("convert", model, there, "--gptq", "v1")
    failed = weighbridge("convert", there, out, "--gptq", "v2", status=1).stderr
    assert "cannot store a zero of 16 in 4 bits" in failed and "convert/gptq-zeros" in failed and not out.exists()
