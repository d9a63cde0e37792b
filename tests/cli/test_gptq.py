# SPDX-License-Identifier: Apache-2.0
"""convert --scheme gptq: what a person reads. tests/interop/test_gptq_numbers.py has the numbers."""
import random
import struct
from array import array

import pytest

from conftest import safetensors, tensors_of, validated, weighbridge


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
    said = weighbridge("convert", model, there, "--scheme", "gptq:zeros=v1").stdout
    for line in ['tensors["good"]: GPTQ, 4 bits -> a quantized_group, with zeros that were stored minus one (v1)',
                 'tensors["three.qweight"]: GPTQ -> left as plain tensors: codes of 3 bits: ',
                 'tensors["odd.qweight"]: GPTQ -> left as plain tensors: its groups do not divide its columns',
                 'tensors["act.qweight"]: GPTQ -> left as plain tensors: its g_idx is not row / group_size (desc_act): ']:
        assert f"  change layout: {line}" in said
    assert "12 tensors" in said
    assert "quantized/shape in tensor 'odd.qweight'" in weighbridge("verify", there, status=1).stdout
    weighbridge("convert", there, back, "--scheme", "gptq:zeros=auto")
    weighbridge("convert", model, tmp_path / "sorted.safetensors")
    assert back.read_bytes() == (tmp_path / "sorted.safetensors").read_bytes()


def test_without_it_nothing_is_grouped(model, tmp_path):
    there = tmp_path / "there.zt"
    weighbridge("convert", model, there)
    one, two = (line.split()[0] for line in weighbridge("hash", model, there).stdout.splitlines())
    assert one == two


def test_a_file_that_does_not_say_how_zeros_are_stored_needs_a_word(model, tmp_path):
    said = weighbridge("convert", model, tmp_path / "out.zt", "--scheme", "gptq:zeros=auto", status=2).stderr
    assert "its zeros do not show how they are stored" in said and said.endswith("try --scheme gptq:zeros=v1 or gptq:zeros=v2\n")
    assert "it takes zeros=auto|v1|v2" in weighbridge("convert", model, tmp_path / "out.zt", "--scheme", "gptq:zeros=v9", status=2).stderr


def test_a_model_without_such_layers_is_a_usage_error(sample, tmp_path):
    assert "no tensor of the model is of the scheme gptq" in weighbridge("convert", sample, tmp_path / "o.zt", "--scheme", "gptq:zeros=v1", status=2).stderr
    assert "no tensor of the model is of the scheme gptq" in weighbridge("convert", sample, tmp_path / "o.stb", "--scheme", "gptq:zeros=v1", status=2).stderr


def test_dense_numbers_need_only_the_loss_of_the_layout(model, tmp_path):
    weighbridge("convert", model, tmp_path / "there.zt", "--scheme", "gptq:zeros=v2")
    plan = validated(weighbridge("convert", "--json", "--dry-run", tmp_path / "there.zt", tmp_path / "o.safetensors", status=1).stdout,
                     "convert")
    assert [(item["kind"], item["from"], item["to"]) for item in plan["losses"]] == [("layout", "quantized_group", "dense f32")]


def test_a_zero_that_does_not_fit_writes_nothing(tmp_path):
    model, there, out = tmp_path / "m.safetensors", tmp_path / "there.zt", tmp_path / "out.safetensors"
    tensors = layer("a", 4, 64, 32, 2)
    tensors["a.qzeros"] = ("I32", [2, 4], b"\xff" * 32)
    model.write_bytes(safetensors(tensors))
    weighbridge("convert", model, there, "--scheme", "gptq:zeros=v1")
    # All ones are 0, on every path, and come back.
    weighbridge("convert", model, tmp_path / "dense.safetensors", "--dequantize", "f32", "--scheme", "gptq:zeros=v1")
    weighbridge("convert", there, tmp_path / "group.safetensors", "--dequantize", "f32")
    rows, columns = (array("f", tensors_of(tmp_path / f"{name}.safetensors")[weight][2]) for name, weight in (("group", "a"), ("dense", "a.weight")))
    assert [rows[row * 32 + column] for column in range(32) for row in range(64)] == list(columns)
    weighbridge("convert", there, tmp_path / "back.safetensors", "--scheme", "gptq:zeros=v1")
    assert tensors_of(tmp_path / "back.safetensors")["a.qzeros"] == tensors_of(model)["a.qzeros"]
    written = there.read_bytes()
    assert written.count(bytes(2 * 64)) == 1
    there.write_bytes(written.replace(bytes(2 * 64), b"\x00\x4c" * 64))  # 16, which 4 bits do not have
    failed = weighbridge("convert", there, out, "--scheme", "gptq:zeros=v2", status=1).stderr
    assert "cannot store a zero of 16 in 4 bits" in failed and "convert/gptq-zeros" in failed and not out.exists()
