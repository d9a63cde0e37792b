# SPDX-License-Identifier: Apache-2.0
"""Quantized layers that become blocks of GGUF: the values that the package gguf decodes are those of the library that made the file.
Layers of libraries are in the test data; those below are written by hand and decoded by the package."""
import json
import struct

import pytest

from interop_tools import TEST_DATA, ml_dtypes, np, weighbridge

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment")

ALLOW = ("--allow", "attribute,attribute-type")


def tensors_of(path):
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def decoded(tensors, name):
    """The values, times the factor that llama.cpp multiplies the product with."""
    tensor = tensors[name]
    values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    factor = tensors.get(name.removesuffix(".weight") + ".scale")
    return values.reshape(tensor.shape[::-1]) * (np.float32(1) if factor is None else factor.data[0])


def type_name(tensors, name):
    return tensors[name].tensor_type.name


def same(values, expected, dtype):
    """Equal, but for the sign of zero."""
    kind = {"BF16": ml_dtypes.bfloat16, "F16": np.float16, "F32": np.float32}[dtype]
    expected = expected.view(kind) if dtype == "BF16" else expected
    np.testing.assert_array_equal(values.astype(kind).astype(np.float32) + 0, expected.astype(np.float32) + 0)


DOWN = "model.layers.0.mlp.down_proj"
# The case, the layer (tensors that begin so), its type in GGUF, and the name of the expected values if it is another.
ROUTES = [
    ("ct_mxfp4", DOWN, "MXFP4"), ("modelopt_mxfp4", DOWN, "MXFP4"), ("mlx_mxfp4_bf16", "up_proj", "MXFP4"),
    ("fp4_experts_int8", "model.layers.0.mlp.experts.0.gate_proj", "MXFP4"),
    ("gptoss_mxfp4", "model.layers.0.mlp.experts.down_proj", "MXFP4"), ("gptoss_mxfp4", "model.layers.0.mlp.experts.gate_up_proj", "MXFP4"),
    ("ct_nvfp4", DOWN, "NVFP4"), ("mlx_nvfp4_bf16", "up_proj", "NVFP4"),
    ("gptq_v1_b4_g32_sym", DOWN, "Q4_0"), ("gptq_v1_b4_g32_sym", "model.layers.0.self_attn.q_proj", "Q4_0"), ("gptq_v1_b4_channel", DOWN, "Q4_0"),
    ("gptq_v1_b8_g64_sym", DOWN, "Q8_0"), ("ct_pack_int4_g32_sym_bf16", DOWN, "Q4_0"), ("ct_pack_int2_g32_bf16", DOWN, "Q4_0"),
    ("ct_old_int3_padded", DOWN, "Q4_0"), ("ct_pack_int5_g32_bf16", DOWN, "Q8_0"),
    ("ct_pack_int7_g32_bf16", DOWN, "Q8_0"),
]
# And those that stay what they are, with the reason.
REASONS = [
    ("ct_nvfp4", "model.layers.0.self_attn.q_proj", "rows of 48 elements do not divide into blocks of 64"),
    ("ct_mxfp4_codes", "m", "an exponent is 255"), ("gptoss_mxfp4_codes", "model.layers.0.mlp.experts.down_proj", "an exponent is 255"),
    ("modelopt_nvfp4_codes", "m", "the scale of a block is negative or NaN"),
    ("gptq_v1_b4_act_order", DOWN, "act order"), ("gptq_v1_b4_g32_asym", DOWN, "not symmetric"), ("gptq_v2_b4_bf16_scales", DOWN, "symmetric"),
    ("ct_pack_int4_g32_asym_f16", DOWN, "not symmetric"), ("ct_pack_int8_g64_asym_bf16", DOWN, "not symmetric"),
    ("ct_pack_int3_g32_bf16", DOWN, "not symmetric"),
    ("ct_pack_int4_channel_edge_f32", DOWN, "rows of 100 elements do not divide into blocks of 32"),
    ("ct_int8_channel_w8a8", DOWN, "rows of 48 elements"), ("ct_old_int4_g_idx", DOWN, "act order"), ("awq_gemm_g32", DOWN, "not symmetric"),
    ("fp8_block_128", None, "GGUF has no such blocks"), ("bnb_int8", None, "GGUF has no such blocks"), ("bnb_nf4_bf16", None, "GGUF has no such blocks"),
    ("hqq_b4_g64_axis1", None, "GGUF has no such blocks"), ("quanto_qint8", None, "GGUF has no such blocks"),
    ("mlx_affine_b4_g32_f16", None, "GGUF has no such blocks"), ("ct_mxfp6", None, "GGUF has no such blocks"), ("ct_mxfp8", None, "GGUF has no such blocks"),
]


def case(name):
    path = TEST_DATA / "quantized" / name
    if not path.exists():
        pytest.skip(f"quantized/{name} is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
    return path


@pytest.mark.parametrize("name,layer,block", ROUTES, ids=[f"{route[0]}-{route[1]}" for route in ROUTES])
def test_values_are_those_of_the_library_that_made_the_file(tmp_path, name, layer, block):
    path, out = case(name), tmp_path / "out.gguf"
    weighbridge("convert", path, out, "--only", f"{layer}[._]*", *ALLOW)
    tensors = tensors_of(out)
    listed = json.loads((path / "expected.json").read_text())["expected"]
    called = next(each for each in (layer + ".weight", layer) if each in tensors)
    assert type_name(tensors, called) == block
    for array in listed.get(called + ".row_major") or listed[called]:
        same(decoded(tensors, called), np.load(path / array["file"]), array["dtype"])
    # And this program reads the same.
    weighbridge("extract", out, called, "--dense", "-o", tmp_path / "out.npy")
    tensor = tensors[called]
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy").reshape(-1), gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(-1))


@pytest.mark.parametrize("name,layer,reason", REASONS, ids=[reason[0] for reason in REASONS])
def test_a_layer_that_no_block_holds_stays_and_the_plan_says_why(tmp_path, name, layer, reason):
    path = case(name)
    only = [] if layer is None else ["--only", f"{layer}[._]*"]
    for status in (0, 1, 3):  # by whether GGUF has the types of the codes
        try:
            plan = json.loads(weighbridge("convert", "--json", "--dry-run", path, tmp_path / "out.gguf", *only, status=status))
            break
        except AssertionError:
            assert status != 3
    whys = [item["to"] for item in plan["changes"] if item["to"].startswith("left in ")]
    assert whys and all(reason in why and "dequantizing" in why for why in whys), plan


def saved(path, tensors):
    safetensors.save_file({name: np.asarray(array) for name, array in tensors.items()}, path, metadata={"format": "pt"})
    return path


def nvfp4(rows=3, columns=128, seed=0):
    random = np.random.default_rng(seed)
    return {"x.weight": random.integers(0, 256, (rows, columns // 2), np.uint8),
            "x.weight_scale": random.integers(0, 0x7f, (rows, columns // 16), np.uint8)}


def with_f8(path, tensors, *names):
    """safetensors of numpy has no F8: the header says it afterwards."""
    saved(path, tensors)
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    for name in names:
        header[name]["dtype"] = "F8_E4M3"
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length:])
    return path


def e2m1(codes):
    """Two a byte, the first in the low bits."""
    table = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, 0, -.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    return table[np.stack([codes & 15, codes >> 4], -1).reshape(len(codes), -1)]


def test_a_factor_stays_a_tensor(tmp_path):
    layer = nvfp4()
    path = with_f8(tmp_path / "in.safetensors", {**layer, "x.weight_scale_2": np.float32(.0123)}, "x.weight_scale")
    weighbridge("convert", path, tmp_path / "out.gguf")
    tensors = tensors_of(tmp_path / "out.gguf")
    assert sorted(tensors) == ["x.scale", "x.weight"] and tensors["x.scale"].data.tolist() == [np.float32(.0123)]
    scales = layer["x.weight_scale"].view(ml_dtypes.float8_e4m3fn).astype(np.float32).repeat(16, 1)
    np.testing.assert_array_equal(decoded(tensors, "x.weight"), e2m1(layer["x.weight"]) * scales * np.float32(.0123))


def test_a_large_layer_goes_in_pieces(tmp_path):
    layer = nvfp4(1024, 4096)
    path = with_f8(tmp_path / "in.safetensors", {**layer, "x.weight_scale_2": np.float32(2)}, "x.weight_scale")
    weighbridge("convert", path, tmp_path / "out.gguf")
    scales = layer["x.weight_scale"].view(ml_dtypes.float8_e4m3fn).astype(np.float32).repeat(16, 1)
    np.testing.assert_array_equal(decoded(tensors_of(tmp_path / "out.gguf"), "x.weight"), e2m1(layer["x.weight"]) * scales * np.float32(2))


@pytest.mark.parametrize("divisor,exact", [(2.0, True), (3.0, True), (7.0, False)])
def test_a_divisor_becomes_a_factor_and_a_loss_if_it_cannot_come_back(tmp_path, divisor, exact):
    assert (np.float32(1) / (np.float32(1) / np.float32(divisor)) == np.float32(divisor)) == exact
    layer = {"x.weight_packed": nvfp4()["x.weight"], "x.weight_scale": nvfp4()["x.weight_scale"],
             "x.weight_global_scale": np.array([divisor], np.float32)}
    path, out = with_f8(tmp_path / "in.safetensors", layer, "x.weight_scale"), tmp_path / "out.gguf"
    plan = json.loads(weighbridge("convert", "--json", "--dry-run", path, out, status=0 if exact else 1))
    assert [item["kind"] for item in plan["losses"]] == ([] if exact else ["precision"])
    weighbridge("convert", path, out, "--allow", "precision")
    assert tensors_of(out)["x.scale"].data[0] == np.float32(1) / np.float32(divisor)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_that_is_no_factor_is_refused(tmp_path, factor):
    path = with_f8(tmp_path / "in.safetensors", {**nvfp4(), "x.weight_scale_2": np.float32(factor)}, "x.weight_scale")
    assert b"its global scale is zero, negative or not finite" in weighbridge("convert", path, tmp_path / "out.gguf", status=3)
    assert not (tmp_path / "out.gguf").exists()


@pytest.mark.parametrize("byte", [0x7f, 0x80, 0xff])
def test_a_scale_that_gguf_reads_as_another_is_refused(tmp_path, byte):
    layer = nvfp4()
    layer["x.weight_scale"][2, 5] = byte
    path = with_f8(tmp_path / "in.safetensors", {**layer, "x.weight_scale_2": np.float32(1)}, "x.weight_scale")
    assert b"the scale of a block is negative or NaN" in weighbridge("convert", path, tmp_path / "out.gguf", status=3)


@pytest.mark.parametrize("exponent", [0, 1, 127, 254])
def test_every_exponent_but_255_is_kept(tmp_path, exponent):
    codes = np.random.default_rng(1).integers(0, 256, (2, 32), np.uint8)
    exponents = np.array([[exponent, 120], [3, 4]], np.uint8)
    path = saved(tmp_path / "in.safetensors", {"x.weight_packed": codes, "x.weight_scale": exponents})
    weighbridge("convert", path, tmp_path / "out.gguf")
    tensors = tensors_of(tmp_path / "out.gguf")
    with np.errstate(over="ignore"):
        wanted = e2m1(codes).astype(np.float64) * 2.0 ** (exponents.astype(np.float64).repeat(32, 1) - 127)
        np.testing.assert_array_equal(decoded(tensors, "x.weight"), wanted.astype(np.float32))


def int8(scale, columns=64):
    random = np.random.default_rng(2)
    return {"x.weight": random.integers(-128, 128, (2, columns), np.int8), "x.weight_scale": np.array([[scale], [.5]], np.float32)}


@pytest.mark.parametrize("scale,exact", [(.25, True), (2.0 ** -24, True), (65504.0, True), (-.5, True), (.1, False), (2.0 ** -25, False), (65536.0, False), (float("nan"), False),
                                         (float("inf"), False)])
def test_int8_becomes_q8_0_where_its_scales_are_exact_in_f16(tmp_path, scale, exact):
    layer = int8(scale)
    path, out = saved(tmp_path / "in.safetensors", layer), tmp_path / "out.gguf"
    said = weighbridge("convert", path, out)
    if not exact:
        assert b"a scale is not finite, or not exact in f16" in said and type_name(tensors_of(out), "x.weight") == "I8"
        return
    np.testing.assert_array_equal(decoded(tensors_of(out), "x.weight"), layer["x.weight"].astype(np.float32) * layer["x.weight_scale"])


def test_experts_become_one_tensor(tmp_path):
    random = np.random.default_rng(3)
    codes, exponents = random.integers(0, 256, (3, 4, 2, 16), np.uint8), random.integers(100, 130, (3, 4, 2), np.uint8)
    path = saved(tmp_path / "in.safetensors", {"experts.down_proj_blocks": codes, "experts.down_proj_scales": exponents})
    weighbridge("convert", path, tmp_path / "out.gguf")
    tensors = tensors_of(tmp_path / "out.gguf")
    assert tensors["experts.down_proj"].shape.tolist() == [64, 4, 3]
    wanted = e2m1(codes.reshape(12, 32)) * np.exp2(exponents.astype(np.float32) - 127).reshape(12, 2).repeat(32, 1)
    np.testing.assert_array_equal(decoded(tensors, "experts.down_proj").reshape(12, 64), wanted)


V1 = "--scheme", "gptq:zeros=v1"


def gptq(rows=256, columns=32, group=128):
    """4 bits, symmetric, with the zeros of v1."""
    random = np.random.default_rng(4)
    return {"x.qweight": random.integers(0, 2**32, (rows // 8, columns), np.uint32).view(np.int32),
            "x.qzeros": np.full((rows // group, columns // 8), 0x77777777, np.int32),
            "x.scales": (random.random((rows // group, columns)) / 64).astype(np.float16)}


@pytest.mark.parametrize("rows,columns", [(256, 32), (1280, 4096)])  # the second: in several pieces
def test_gptq_becomes_q4_0_with_its_scales_repeated(tmp_path, rows, columns):
    layer = gptq(rows, columns)
    weighbridge("convert", saved(tmp_path / "in.safetensors", layer), tmp_path / "out.gguf", *V1)
    codes = np.stack([layer["x.qweight"].view(np.uint32) >> np.uint32(at) & np.uint32(15) for at in range(0, 32, 4)], 1).reshape(rows, columns)
    wanted = (codes.astype(np.float32) - 8) * layer["x.scales"].astype(np.float32).repeat(128, 0)
    np.testing.assert_array_equal(decoded(tensors_of(tmp_path / "out.gguf"), "x.weight"), wanted.T)


def test_a_quantization_keeps_codes_that_are_of_its_type(tmp_path):
    layer, out = gptq(), tmp_path / "out.gguf"
    path = saved(tmp_path / "in.safetensors", layer)
    weighbridge("convert", path, tmp_path / "kept.gguf", *V1)
    weighbridge("convert", path, out, "--quantize", "q4_0", *V1)
    assert tensors_of(out)["x.weight"].data.tobytes() == tensors_of(tmp_path / "kept.gguf")["x.weight"].data.tobytes()
    weighbridge("convert", path, out, "--quantize", "q8_0", "--force", *V1)
    assert type_name(tensors_of(out), "x.weight") == "Q8_0"


def test_what_is_asked_for_is_numbers(tmp_path):
    path = saved(tmp_path / "in.safetensors", gptq())
    weighbridge("convert", path, tmp_path / "out.gguf", "--dequantize", "f32", *V1)
    assert type_name(tensors_of(tmp_path / "out.gguf"), "x.weight") == "F32"


def test_a_name_that_is_taken_is_not_given_again(tmp_path):
    path = saved(tmp_path / "in.safetensors", {**gptq(), "x.weight": np.zeros((2, 2), np.float32)})
    assert b"there is a tensor of the name" in weighbridge("convert", path, tmp_path / "out.gguf", *V1)
    layer = {**nvfp4(), "x.weight_scale_2": np.float32(2), "x.scale": np.zeros(1, np.float32)}
    path = with_f8(tmp_path / "b.safetensors", layer, "x.weight_scale")
    assert b"there is a tensor of the name" in weighbridge("convert", path, tmp_path / "b.gguf", status=3)
