# SPDX-License-Identifier: Apache-2.0
# Weights that are codes in one tensor and scales in others: each known layout is recognized from its tensors alone. What
# is not decoded is refused by name: nothing casts, counts, compares or runs codes as if they were numbers.
import ast
import json
import math
import shutil
import struct

import pytest

from conftest import SIZES, TEST_DATA, floats, safetensors, tensors_of, validated, weighbridge

MORE_SIZES = {**SIZES, "U32": 4, "I16": 2, "U16": 2, "F8_E5M2": 1, "F8_E8M0": 1}
L = "model.layers.0.mlp.up_proj"
NF4_STATE = json.dumps({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [64, 128]}).encode()


def tensor(dtype, shape, data=None):
    return dtype, shape, (bytes(range(1, 65)) * (math.prod(shape) * MORE_SIZES[dtype] // 64 + 1))[:math.prod(shape) * MORE_SIZES[dtype]] if data is None else data


# What the scheme is called, its tensors, and the numbers that they stand for.
LAYOUTS = {
    "fp8_weight_scale": ("FP8 with scales", {f"{L}.weight": ("F8_E4M3", [64, 32]), f"{L}.weight_scale": ("F32", []), f"{L}.input_scale": ("F32", [])}, 64 * 32),
    "fp8_scale_weight": ("FP8 with scales", {f"{L}.weight": ("F8_E4M3", [64, 32]), f"{L}.scale_weight": ("F32", [1]), "scaled_fp8": ("F8_E4M3", [2])}, 64 * 32),
    "fp8_weight_scale_inv": ("FP8 with scales", {f"{L}.weight": ("F8_E4M3", [256, 128]), f"{L}.weight_scale_inv": ("F32", [2, 1])}, 256 * 128),
    "fp8_scale": ("FP8 with scales", {f"{L}.weight": ("F8_E5M2", [64, 32]), f"{L}.scale": ("F8_E8M0", [1, 1])}, 64 * 32),
    "fp8_scale_of_weight": ("FP8 with scales", {f"{L}.weight": ("F8_E4M3", [64, 32]), f"{L}.weight.scale": ("BF16", [64])}, 64 * 32),
    "fp8_other_scale": ("FP8 with scales", {f"{L}.weight": ("F8_E4M3", [64, 32]), f"{L}.dequant_scale": ("F32", [64, 1])}, 64 * 32),
    "fp8_experts": ("FP8 with scales", {"experts.gate_up_proj": ("F8_E4M3", [3, 32, 64]), "experts.gate_up_proj_scale_inv": ("F32", [3, 2, 2])}, 3 * 32 * 64),
    "fp8_activations_only": ("FP8 with scales", {f"{L}.weight": ("F8_E4M3", [64, 32]), f"{L}.input_scale": ("F32", [])}, 64 * 32),
    "mxfp8": ("MXFP8", {f"{L}.weight": ("F8_E4M3", [16, 64]), f"{L}.weight_scale": ("U8", [16, 2])}, 16 * 64),
    "int8": ("int8 with scales", {f"{L}.weight": ("I8", [16, 48]), f"{L}.weight_scale": ("BF16", [16, 1])}, 16 * 48),
    "int8_other_scale": ("int8 with scales", {f"{L}.weight": ("I8", [16, 48]), f"{L}.dequant_scale": ("F32", [16])}, 16 * 48),
    "nvfp4": ("NVFP4", {f"{L}.weight_packed": ("U8", [16, 32]), f"{L}.weight_scale": ("F8_E4M3", [16, 4]), f"{L}.weight_global_scale": ("F32", [1])}, 16 * 64),
    "nvfp4_comfy": ("NVFP4", {f"{L}.weight": ("U8", [32, 24]), f"{L}.weight_scale": ("F8_E4M3", [32, 3]), f"{L}.weight_scale_2": ("F32", []), f"{L}.comfy_quant": ("U8", [24])}, 32 * 48),
    "nvfp4_modelopt": ("NVFP4", {f"{L}.weight": ("U8", [32, 24]), f"{L}.weight_scale": ("F8_E4M3", [32, 3]), f"{L}.weight_scale_2": ("F32", [])}, 32 * 48),
    "mxfp4_blocks": ("MXFP4", {"experts.down_proj_blocks": ("U8", [2, 64, 1, 16]), "experts.down_proj_scales": ("U8", [2, 64, 1])}, 2 * 64 * 32),
    "mxfp4_experts": ("MXFP4", {f"{L}.weight": ("I8", [24, 32]), f"{L}.weight_scale_inv": ("F8_E8M0", [24, 2])}, 24 * 64),
    "mxfp6": ("MXFP6", {f"{L}.weight_packed": ("U8", [16, 48]), f"{L}.weight_scale": ("U8", [16, 2])}, 16 * 64),
    "awq": ("AWQ", {f"{L}.qweight": ("I32", [128, 8]), f"{L}.qzeros": ("I32", [2, 8]), f"{L}.scales": ("F16", [2, 64])}, 64 * 128),
    "gptq": ("GPTQ", {f"{L}.qweight": ("I32", [16, 64]), f"{L}.qzeros": ("I32", [2, 8]), f"{L}.scales": ("F16", [2, 64]), f"{L}.g_idx": ("I32", [128])}, 64 * 128),
    "gptq_3_bits": ("GPTQ", {f"{L}.qweight": ("I32", [6, 32]), f"{L}.qzeros": ("I32", [2, 3]), f"{L}.scales": ("F16", [2, 32])}, 64 * 32),
    "bitsandbytes_int8": ("bitsandbytes int8", {f"{L}.weight": ("I8", [64, 128]), f"{L}.SCB": ("F32", [64]), f"{L}.weight_format": ("U8", [], b"\0")}, 64 * 128),
    "bitsandbytes_nf4": ("bitsandbytes nf4", {f"{L}.weight": ("U8", [4096, 1]), f"{L}.weight.absmax": ("F32", [128]), f"{L}.weight.quant_map": ("F32", [16]),
                                              f"{L}.weight.quant_state.bitsandbytes__nf4": ("U8", [len(NF4_STATE)], NF4_STATE)}, 64 * 128),
    "bitsandbytes_storage": ("bitsandbytes nf4", {f"{L}.weight": ("BF16", [2048, 1]), f"{L}.weight.absmax": ("F32", [128]),
                                                  f"{L}.weight.quant_state.bitsandbytes__nf4": ("U8", [len(NF4_STATE)], NF4_STATE)}, 64 * 128),
    "bitsandbytes_no_state": ("bitsandbytes 4-bit", {f"{L}.weight": ("U8", [4096, 1]), f"{L}.weight.absmax": ("F32", [128]), f"{L}.weight.quant_map": ("F32", [16])}, 64 * 128),
    "hqq": ("HQQ", {f"{L}.W_q": ("U8", [16, 64]), f"{L}.scale": ("F16", [32, 1]), f"{L}.zero": ("F16", [32, 1]), f"{L}.shape": ("I64", [2], bytes([32, *[0] * 7, 64, *[0] * 7]))}, 32 * 64),
    "quanto": ("Quanto", {f"{L}.weight._data": ("I8", [16, 256]), f"{L}.weight._scale": ("BF16", [16, 1])}, 16 * 256),
    "quanto_int4": ("Quanto", {f"{L}.weight._data._data": ("U8", [16, 128]), f"{L}.weight._scale": ("BF16", [32, 1]), f"{L}.weight._shift": ("BF16", [32, 1])}, 16 * 256),
    "torchao": ("torchao", {f"{L}._weight_qdata": ("I8", [16, 64]), f"{L}._weight_scale": ("F32", [16])}, 16 * 64),
    "mlx": ("MLX", {f"{L}.weight": ("U32", [32, 8]), f"{L}.scales": ("F16", [32, 1]), f"{L}.biases": ("F16", [32, 1])}, 32 * 64),
    "mlx_metal": ("MLX", {f"{L}.weight": ("U32", [32, 8]), f"{L}.scales": ("BF16", [32, 1]), f"{L}.qbiases": ("BF16", [32, 1])}, 32 * 64),
    "compressed": ("compressed-tensors pack-quantized", {f"{L}.weight_packed": ("I32", [9, 13]), f"{L}.weight_scale": ("F32", [9, 1]),
                                                         f"{L}.weight_shape": ("I64", [2], bytes([9, *[0] * 7, 100, *[0] * 7]))}, 9 * 100),
    "aqlm": ("AQLM", {f"{L}.codes": ("I8", [16, 8, 2]), f"{L}.codebooks": ("F16", [2, 256, 1, 8]), f"{L}.scales": ("F16", [16, 1, 1, 1])}, 16 * 8 * 8),
    "exl3": ("EXL3", {f"{L}.trellis": ("I16", [4, 4, 48]), f"{L}.suh": ("F16", [64]), f"{L}.svh": ("F16", [64])}, 64 * 64),
}
# Those whose tensors say all that decoding them takes.
DECODED = ["fp8_weight_scale", "fp8_scale", "mxfp8", "int8", "nvfp4", "nvfp4_modelopt", "mxfp4_blocks", "mxfp4_experts", "mxfp6", "awq", "bitsandbytes_int8",
           "bitsandbytes_nf4", "quanto", "compressed"]
# What is said of those whose files leave something open.
OPEN = {"fp8_weight_scale_inv": "fp8:block=128x128", "gptq_3_bits": "gptq:zeros=v1", "quanto_int4": "quanto:columns=128", "mlx": "mlx:group=64", "mlx_metal": "mlx:group=64"}
PLAIN = {"model.norm.weight": ("F32", [4]), "model.embed_tokens.weight": ("F16", [8, 4])}


@pytest.fixture(params=LAYOUTS)
def layout(request, tmp_path):
    """A shard by itself: its path, the scheme, the name of the codes, and its parameters."""
    return stored(request.param, tmp_path)


@pytest.fixture(params=[name for name in LAYOUTS if name not in DECODED])
def opaque(request, tmp_path):
    """The same of a layout that is not decoded."""
    return stored(request.param, tmp_path)


def stored(name, folder):
    scheme, tensors, numbers = LAYOUTS[name]
    path = folder / "one.safetensors"
    path.write_bytes(safetensors({name: tensor(*facts) for name, facts in {**tensors, **PLAIN}.items()}))
    return path, scheme, next(iter(tensors)), numbers + 4 + 32


def test_codes_are_recognized_from_tensors_alone(layout):
    path, scheme, codes, parameters = layout
    out = validated(weighbridge("inspect", "--json", "--stored", path).stdout, "inspect")["files"][0]
    assert [each["name"] for each in out["schemes"]] == [scheme]
    assert out["parameters"] == parameters
    of = {each["name"]: each.get("scheme") for each in out["tensors"]}
    assert of[codes] == {"id": out["schemes"][0]["id"], "name": scheme, "codes": True}
    assert of["model.norm.weight"] is None and of["model.embed_tokens.weight"] is None
    assert f"quantized: {scheme}, " in weighbridge("inspect", "--stored", path).stdout


@pytest.mark.parametrize("flags", [["--cast", "f32"], ["--cast", "bf16"], ["--dequantize", "f16"], ["--cast", "f32", "--allow", "unsupported,layout,dtype,precision"]])
def test_codes_are_not_cast(opaque, tmp_path, flags):
    path, scheme, codes, _ = opaque
    for more in [], ["--only", codes], ["--rename", f"{codes}=w"], ["--only", codes, "--rename", f"{codes}=w"], ["--canonical", "--only", codes]:
        done = weighbridge("convert", path, tmp_path / "o.safetensors", *flags, *more, status=3)
        assert scheme in done.stdout and scheme in done.stderr
        assert "--allow unsupported" not in done.stderr and "--cast" not in done.stderr
        assert not (tmp_path / "o.safetensors").exists()


@pytest.mark.parametrize("flags", [["--quantize", "q8_0"], ["--naming", "llama"], ["--cast", "f16"], ["--quantize", "f16"]])
def test_codes_do_not_become_a_gguf_of_numbers(opaque, tmp_path, flags):
    path, scheme, _, _ = opaque
    done = weighbridge("convert", path, tmp_path / "o.gguf", *flags, status=3)
    assert scheme in done.stdout and "--allow unsupported" not in done.stderr and not (tmp_path / "o.gguf").exists()


def test_codes_are_not_made_sparse(opaque, tmp_path):
    path, scheme, _, _ = opaque
    assert scheme in weighbridge("convert", path, tmp_path / "o.zt", "--sparse", "coo", status=3).stdout


@pytest.mark.parametrize("end", [".safetensors", ".zt", ".pt"])
def test_codes_are_copied_as_they_are(layout, tmp_path, end):
    path, scheme, _, parameters = layout
    out = tmp_path / ("copy" + end)
    if end == ".zt" and b"F8_E8M0" in path.read_bytes():
        assert scheme in weighbridge("convert", path, out, status=3).stdout  # .zt has no such dtype
        return
    weighbridge("convert", path, out, "--allow", "attribute,extra")
    assert "equal" in weighbridge("diff", "--no-metadata", path, out).stdout
    found = json.loads(weighbridge("inspect", "--json", "--stored", out).stdout)["files"][0]
    assert found["parameters"] == parameters and [each["name"] for each in found["schemes"]] == [scheme]


@pytest.mark.parametrize("name", DECODED)
def test_numbers_of_codes_are_what_people_see(name, tmp_path):
    path, _, codes, parameters = stored(name, tmp_path)
    out = validated(weighbridge("inspect", "--json", "--stats", path).stdout, "inspect")["files"][0]
    weight, = [each for each in out["tensors"] if "stored" in each]
    assert out["parameters"] == parameters == math.prod(weight["shape"]) + 4 + 32 and "schemes" not in out
    assert weight["stored"]["tensors"][0] == codes and weight["stats"]["elements"] == math.prod(weight["shape"])
    text = weighbridge("inspect", path).stdout
    assert f"quantized: 1 weight of {len(weight['stored']['tensors'])} tensors" in text and weight["stored"]["name"] in text
    dense = tmp_path / "dense.safetensors"
    weighbridge("convert", path, dense, "--dequantize")
    assert "equal" in weighbridge("diff", path, dense).stdout
    assert len({line.split()[0] for line in weighbridge("hash", "--values", path, dense).stdout.splitlines()}) == 1
    for flags in ["--cast", "f32"], ["--dequantize", "f32"]:
        weighbridge("convert", path, tmp_path / "f32.safetensors", "--overwrite", *flags)
        assert "i32" not in weighbridge("inspect", tmp_path / "f32.safetensors").stdout
    weighbridge("extract", path, weight["name"], "--dense", "f32", "-o", tmp_path / "w.npy")
    # Without what completes the codes, there are no numbers.
    for more in ["--only", codes], ["--only", codes, "--rename", f"{codes}=w"]:
        assert "--allow unsupported" not in weighbridge("convert", path, tmp_path / "o.safetensors", "--cast", "f32", *more, status=3).stderr


@pytest.mark.parametrize("name", OPEN)
def test_what_a_file_leaves_open_is_asked_and_the_answer_decodes_it(name, tmp_path):
    path, _, codes, parameters = stored(name, tmp_path)
    out, scheme = tmp_path / "o.safetensors", OPEN[name].split(":")[0]
    asked = weighbridge("convert", path, out, "--dequantize", status=3).stdout
    assert f"a stated scheme says it, as {scheme}:" in asked
    weighbridge("convert", path, out, "--dequantize", "--scheme", OPEN[name])
    found = json.loads(weighbridge("inspect", "--json", path, "--scheme", OPEN[name]).stdout)["files"][0]
    assert found["parameters"] == parameters and "schemes" not in found
    assert len(found["tensors"]) == 3


def test_extract_gives_the_numbers_or_what_is_stored(tmp_path):
    path, _, codes, _ = stored("awq", tmp_path)
    weight = codes.replace("qweight", "weight")
    assert "f16, 16,384 bytes" in weighbridge("extract", path, weight, "-o", tmp_path / "w.npy").stdout
    assert "codes of AWQ" in weighbridge("extract", path, codes, "-o", tmp_path / "c.npy").stdout
    assert f"make the weight '{weight}'" in weighbridge("extract", path, codes, "--dense", "f32", "-o", tmp_path / "x.npy", status=2).stderr
    weighbridge("extract", path, codes.replace("qweight", "scales"), "--dense", "f32", "-o", tmp_path / "s.npy")
    path, _, codes, _ = stored("fp8_weight_scale_inv", tmp_path)
    assert "states the size of its blocks" in weighbridge("extract", path, codes, "--dense", "-o", tmp_path / "x.npy", status=3).stderr
    weighbridge("extract", path, codes, "--dense", "-o", tmp_path / "x.npy", "--scheme", "fp8:block=128x128")


def test_codes_without_what_completes_them_need_consent(layout, tmp_path):
    path, scheme, codes, _ = layout
    done = weighbridge("convert", path, tmp_path / "o.safetensors", "--only", codes, status=1)
    assert scheme in done.stdout and "--allow layout" in done.stderr
    weighbridge("convert", path, tmp_path / "o.safetensors", "--only", codes, "--allow", "layout")


def test_codes_have_no_statistics(opaque):
    path, scheme, codes, _ = opaque
    out = validated(weighbridge("inspect", "--json", "--stats", path).stdout, "inspect")["files"][0]
    stats = {each["name"]: each.get("stats") for each in out["tensors"]}
    assert stats[codes] is None and stats["model.norm.weight"]["elements"] == 4
    row = next(line for line in weighbridge("inspect", "--stats", path).stdout.splitlines() if line.startswith(codes + " "))
    assert scheme in row and row.split()[-8:] == ["-"] * 7 + ["codes"]


def test_codes_have_no_dense_form(opaque, tmp_path):
    path, scheme, codes, _ = opaque
    for dtype in "f32", "f16":
        done = weighbridge("extract", path, codes, "-o", tmp_path / "o.npy", "--dense", dtype, status=3)
        assert scheme in done.stderr and "--dense" not in done.stderr
    out = validated(weighbridge("extract", "--json", path, codes, "-o", tmp_path / "o.bin", "--raw").stdout, "extract")
    assert out["tensors"][0]["scheme"] == scheme
    assert f", codes of {scheme}\n" in weighbridge("extract", path, codes, "-o", tmp_path / "p.bin", "--raw").stdout


def test_codes_that_differ_are_compared_by_their_bytes(opaque, tmp_path):
    path, scheme, codes, _ = opaque
    data = bytearray(path.read_bytes())
    header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
    data[8 + int.from_bytes(data[:8], "little") + header[codes]["data_offsets"][0]] ^= 0x55
    (tmp_path / "b.safetensors").write_bytes(data)
    out = validated(weighbridge("diff", "--json", path, tmp_path / "b.safetensors", status=1).stdout, "diff")
    assert [(t["a"]["name"], t["scheme"], t["why"], t.get("values")) for t in out["tensors"]] == [
        (codes, scheme, f"{scheme}, stored bytes are not equal", None)]
    assert f"{scheme}, stored bytes are not equal" in weighbridge("diff", path, tmp_path / "b.safetensors", status=1).stdout


def test_codes_are_not_compared_with_values(tmp_path):
    codes, values = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    codes.write_bytes(safetensors({"x.weight": tensor("F8_E4M3", [4, 4]), "x.weight_scale": ("F32", [], floats(0.5))}))
    values.write_bytes(safetensors({"x.weight": tensor("F32", [4, 4])}))
    assert "FP8 with scales" not in weighbridge("diff", codes, values, status=1).stdout  # their numbers are
    codes.write_bytes(safetensors({"x.weight": tensor("F8_E4M3", [4, 4]), "x.scale_weight": ("F32", [], floats(0.5))}))
    done = weighbridge("diff", "--only", "x.weight", codes, values, status=3)
    assert "FP8 with scales in A" in done.stdout and "codes of FP8 with scales not compared with values" in done.stdout


def test_an_adapter_is_not_merged_into_codes(opaque, tmp_path):
    path, scheme, _, _ = opaque
    lora = tmp_path / "lora.safetensors"
    lora.write_bytes(safetensors({"base_model.model.model.embed_tokens.lora_embedding_A": tensor("F32", [1, 8]),
                                  "base_model.model.model.embed_tokens.lora_embedding_B": tensor("F32", [4, 1])}))
    assert scheme in weighbridge("convert", path, tmp_path / "o.safetensors", "--merge-lora", lora, status=3).stderr


def test_scales_of_another_file_complete_codes(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(safetensors({"x.weight": tensor("F8_E4M3", [4, 4])}))
    (tmp_path / "b.safetensors").write_bytes(safetensors({"x.weight_scale": ("F32", [], floats(0.5))}))
    done = weighbridge("convert", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "-o", tmp_path / "o.safetensors", "--cast", "f32")
    assert "FP8 with scales -> dense f32" in done.stdout


def test_codes_and_scales_in_different_shards_are_recognized(tmp_path):
    shards = {"a.safetensors": {"x.weight": tensor("F8_E4M3", [4, 4])}, "b.safetensors": {"x.weight_scale": ("F32", [], floats(0.5))}}
    for name, tensors in shards.items():
        (tmp_path / name).write_bytes(safetensors(tensors))
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 20}, "weight_map": {each: name for name, tensors in shards.items() for each in tensors}}))
    assert "quantized: FP8 with scales, 1 tensor of codes and 1 that complete them" in weighbridge("inspect", "--stored", index).stdout
    assert "FP8 with scales -> dense f32" in weighbridge("convert", index, tmp_path / "o.safetensors", "--cast", "f32").stdout


def test_an_edit_does_not_make_values_of_codes(tmp_path):
    path = tmp_path / "one.safetensors"
    path.write_bytes(safetensors({"x.weight": tensor("F8_E4M3", [4, 4]), "x.weight_scale": ("F32", [], floats(0.5)), "y": ("F32", [], floats(1))}))
    assert "FP8 with scales" in weighbridge("edit", path, "--in-place", "--rename", "x.weight_scale=x.s", status=3).stderr
    weighbridge("edit", path, "--in-place", "--rename", "y=z")
    weighbridge("edit", path, "--in-place", "--rename", "s/^x/w/")


def test_a_copy_in_another_format_says_that_it_holds_codes(tmp_path):
    path = tmp_path / "one.safetensors"
    path.write_bytes(safetensors({name: tensor(*facts) for name, facts in LAYOUTS["torchao"][1].items()}))
    assert "change layout" in (out := weighbridge("convert", path, tmp_path / "o.gguf").stdout) and "torchao -> the same codes in 2 tensors" in out
    assert "torchao" in weighbridge("generate", tmp_path / "o.gguf", "-p", "x", status=3).stderr
    assert "change" not in weighbridge("convert", path, tmp_path / "o.safetensors").stdout


# Models that are not quantized: every tensor is a value, and can be cast.
VALUES = {
    "f8": {"x.weight": ("F8_E4M3", [4, 4]), "x.bias": ("F16", [4]), "norm.weight": ("F8_E5M2", [4])},
    "f8_with_other_scales": {"a.q.weight": ("F8_E4M3", [4, 4]), "a.k_scale": ("F32", []), "a.v_scale": ("F32", []), "logit_scale": ("F32", []),
                             "x.output_scale": ("F32", []), "x.weight": ("F8_E4M3", [4, 4]), "x.scale_shift_table": ("F16", [2])},
    "layer_norm_scale": {"norm.scale": ("F32", [4]), "norm.bias": ("F32", [4]), "mlp.kernel": ("BF16", [4, 4]), "ls.gamma": ("F32", [4])},
    "f8_norm_scale": {"norm.query_norm.scale": ("F8_E4M3", [4]), "img_in.weight": ("F8_E4M3", [4, 4])},
    "input_scale_alone": {"x.input_scale": ("F32", []), "x.weight": ("BF16", [4, 4])},
    "integers": {"position_ids": ("U8", [1, 8]), "attn.mask": ("U8", [8, 8]), "tokens": ("I8", [16]), "x.weight": ("F32", [4, 4]),
                 "emb.position_ids": ("I64", [1, 8]), "relative_position_index": ("I32", [4, 4]), "num_batches_tracked": ("I64", [])},
    "scales": {"blocks.0.scales": ("F32", [4]), "blocks.0.weight": ("F32", [4, 4]), "x.scales": ("F32", [4]), "x.biases": ("F32", [4])},
    "zero_scale": {"x.zero": ("F16", [4]), "x.scale": ("F16", [4]), "x.weight": ("F16", [4, 4]), "x.ids": ("I32", [4])},
    "words": {"hash.weight": ("U32", [4, 4]), "hash.table": ("I32", [8]), "x.codes": ("F32", [4]), "x.indices": ("I64", [4]), "B": ("I32", [4])},
}


@pytest.mark.parametrize("name", VALUES)
def test_values_are_not_codes(name, tmp_path):
    path = tmp_path / "one.safetensors"
    path.write_bytes(safetensors({each: tensor(*facts) for each, facts in VALUES[name].items()}))
    out = json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]
    assert "schemes" not in out and all("scheme" not in each for each in out["tensors"])
    weighbridge("convert", path, tmp_path / "o.safetensors", "--cast", "f32")
    assert "stats" in json.loads(weighbridge("inspect", "--json", "--stats", path).stdout)["files"][0]["tensors"][0]


def folder(path, tensors, config):
    path.mkdir()
    (path / "model.safetensors").write_bytes(safetensors({each: tensor(*facts) for each, facts in tensors.items()}))
    (path / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], **config}))
    return path


def test_a_config_in_a_part_of_the_config_goes_with_the_codes(tmp_path):
    part = {"hidden_size": 4, "quantization_config": {"quant_method": "fp8"}, "dtype": "float32"}
    path = folder(tmp_path / "m", LAYOUTS["fp8_weight_scale"][1], {"text_config": part})
    weighbridge("convert", path, f"{tmp_path}/dense/", "--dequantize")
    assert json.loads((tmp_path / "dense/config.json").read_text())["text_config"] == {"hidden_size": 4, "dtype": "float32"}


@pytest.mark.parametrize("config,why", [({"quant_method": "quark"}, '"quark" are not decoded'),
                                        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "symmetric": False}}}}, "no zero points")])
def test_a_layer_that_its_config_makes_another_is_refused(config, why, tmp_path):
    path = folder(tmp_path / "m", LAYOUTS["int8"][1], {"quantization_config": config})
    assert why in weighbridge("convert", path, f"{tmp_path}/dense/", "--dequantize", status=3).stdout
    assert "no numbers to digest" in weighbridge("hash", "--values", path, status=3).stderr


UNKNOWN = {"model.layers.0.q.weight": ("U8", [4, 8]), "model.layers.0.q.lut": ("F16", [16]), "model.norm.weight": ("F32", [4])}


@pytest.mark.parametrize("where", [lambda c: {"quantization_config": c}, lambda c: {"text_config": {"quantization_config": c}}, lambda c: {"compression_config": c}])
def test_a_quant_method_that_nobody_knows_is_refused_by_its_name(where, tmp_path):
    path = folder(tmp_path / "m", UNKNOWN, where({"quant_method": "Fancy9", "bits": 4}))
    out = json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]
    assert out["schemes"] == [{"id": "other", "name": "quant_method fancy9", "codes": 1, "companions": 1}] and out["parameters"] == 4 * 8 * 2 + 4
    assert "fancy9" in weighbridge("convert", path, tmp_path / "o.safetensors", "--cast", "f32", status=3).stdout
    weighbridge("convert", path, f"{tmp_path}/copy/")
    assert (tmp_path / "copy/config.json").read_text().find("ancy9") > 0


def test_unsetting_the_config_lifts_nothing(tmp_path):
    path = folder(tmp_path / "m", UNKNOWN, {"quantization_config": {"quant_method": "fancy9"}})
    assert "fancy9" in weighbridge("convert", path, tmp_path / "o.safetensors", "--cast", "f32", "--unset", "hf.quantization_config", status=3).stdout
    done = weighbridge("convert", path, tmp_path / "o.safetensors", "--unset", "hf.quantization_config", status=1)
    assert "fancy9" in done.stdout and "--allow layout" in done.stderr


def test_a_config_completes_codes_whose_scales_are_not_there(tmp_path):
    path = folder(tmp_path / "m", {"x.weight": ("F8_E4M3", [4, 4]), "y.qweight": ("I32", [4, 4])}, {"quantization_config": {"quant_method": "fp8"}})
    out = json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]
    assert out["schemes"][0]["name"] == "FP8 with scales" and out["schemes"][0]["codes"] == 2
    weighbridge("convert", path, tmp_path / "o.safetensors", "--cast", "f32", status=3)


def test_a_config_of_a_model_whose_tensors_are_values_forbids_nothing(tmp_path):
    for name, config in {"fp8": {"quant_method": "fp8"}, "empty": {}, "null": None, "none": {"quant_method": "none"}}.items():
        path = folder(tmp_path / name, {"x.weight": ("F32", [4, 4]), "ids": ("I32", [4])}, {"quantization_config": config})
        weighbridge("convert", path, tmp_path / (name + ".safetensors"), "--cast", "f16")


def test_bitnet_has_four_weights_in_a_byte(tmp_path):
    path = folder(tmp_path / "m", {"x.weight": ("U8", [4, 8]), "x.weight_scale": ("BF16", [1])}, {"quantization_config": {"quant_method": "bitnet"}})
    out = json.loads(weighbridge("inspect", "--json", path).stdout)["files"][0]
    assert out["schemes"][0]["name"] == "BitNet" and out["parameters"] == 4 * 8 * 4


def test_a_config_names_the_library_too(tmp_path):
    path = folder(tmp_path / "m", LAYOUTS["fp8_weight_scale"][1], {"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized"}})
    assert "quantized: FP8 with scales (compressed-tensors), 1 tensor of codes" in weighbridge("inspect", "--stored", path).stdout


def test_a_quantized_model_does_not_run(tmp_path):
    for name in "fp8_scale_weight", "torchao", "bitsandbytes_no_state":
        path = folder(tmp_path / name, {**LAYOUTS[name][1], **PLAIN}, {"hidden_size": 4, "num_hidden_layers": 1})
        assert LAYOUTS[name][0] in weighbridge("generate", path, "-p", "x", status=3).stderr
        path = folder(tmp_path / (name + "_bert"), {**LAYOUTS[name][1], "embeddings.word_embeddings.weight": ("F32", [8, 4])}, {"model_type": "bert", "hidden_size": 4, "vocab_size": 8, "num_attention_heads": 1, "intermediate_size": 4,
                        "max_position_embeddings": 8, "layer_norm_eps": 1e-12, "type_vocab_size": 2, "num_hidden_layers": 1})
        assert LAYOUTS[name][0] in weighbridge("embed", path, "x", status=3).stderr


@pytest.mark.skipif(not (TEST_DATA / "tiny_bert").is_dir(), reason="tiny_bert/ is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
def test_an_encoder_of_int8_layers_embeds_by_its_numbers(tmp_path):
    tensors = {}
    for name, (dtype, shape, data) in tensors_of(TEST_DATA / "tiny_bert/model.safetensors").items():
        if len(shape) < 2 or "embeddings" in name:
            tensors[name] = dtype.upper(), shape, data
            continue
        rows = [struct.unpack_from(f"<{shape[1]}f", data, 4 * shape[1] * row) for row in range(shape[0])]
        scales = [max(map(abs, row)) / 127 for row in rows]
        tensors[name] = "I8", shape, b"".join(struct.pack("<b", round(value / scale)) for row, scale in zip(rows, scales) for value in row)
        tensors[name + "_scale"] = "F32", [shape[0], 1], floats(*scales)
    shutil.copytree(TEST_DATA / "tiny_bert", tmp_path / "int8")
    (tmp_path / "int8/model.safetensors").write_bytes(safetensors(tensors))
    weighbridge("convert", tmp_path / "int8", f"{tmp_path}/dense/", "--dequantize")
    one, two = (weighbridge("embed", tmp_path / name, "some words").stdout for name in ("int8", "dense"))
    assert one == two and json.loads(one)["embedding"]


def test_dequantizing_what_is_not_quantized_writes_nothing(sample, tmp_path):
    done = weighbridge("convert", sample, tmp_path / "o.safetensors", "--dequantize", "f16", status=1)
    assert "nothing to dequantize" in done.stderr and not (tmp_path / "o.safetensors").exists()
    assert '"rule":"convert/nothing-quantized"' in weighbridge("convert", sample, tmp_path / "o.safetensors", "--dequantize", "f16", "--json", status=1).stdout


def test_a_byte_of_codes_is_no_number(tmp_path):
    path = tmp_path / "one.safetensors"
    path.write_bytes(safetensors({"x.weight": ("F8_E4M3", [2, 2], b"\x40" * 4), "x.weight_scale": ("F32", [], floats(0.5))}))
    out = weighbridge("explain", path, "x.weight[0, 1]").stdout
    assert "code 0x40" in out and "FP8 with scales" in out


def logical(path):
    """The layers that the library decoded."""
    expected = json.loads((path.parent / "expected.json").read_text())["expected"]
    return {name: arrays for name, arrays in expected.items() if not name.endswith(".row_major")}


CASES = sorted((TEST_DATA / "quantized").glob("*/model.safetensors"))


def array(path):
    """The bytes of a .npy, and its shape; of bf16 its bits."""
    data = path.read_bytes()
    header = ast.literal_eval(data[10:10 + int.from_bytes(data[8:10], "little")].decode())
    return data[10 + int.from_bytes(data[8:10], "little"):], list(header["shape"])


def without_nan(dtype, data):
    """NaN is NaN, whatever its bits."""
    if dtype == "f32":
        return [0x7fc00000 if bits & 0x7fffffff > 0x7f800000 else bits for bits, in struct.iter_unpack("<I", data)]
    most = 0x7c00 if dtype == "f16" else 0x7f80
    return [most + 1 if bits & 0x7fff > most else bits for bits, in struct.iter_unpack("<H", data)]


@pytest.mark.skipif(not CASES, reason="quantized/ is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
@pytest.mark.parametrize("path", [case.parent for case in CASES], ids=lambda path: path.name)
def test_the_numbers_are_those_of_the_library_that_made_the_folder(path, tmp_path):
    expected = logical(path / "model.safetensors")
    if path.name == "awq_gemv_fast_g64":
        assert "gemv_fast" in weighbridge("convert", path, tmp_path / "o.safetensors", "--dequantize", status=3).stdout
        return
    found = {}
    for name, flags in {"own": [], "f32": ["f32"]}.items():
        # Infinity is what the libraries compute, too.
        said = ["--scheme", "quanto:columns=256"] if path.name in ("quanto_qint2", "quanto_qint4") else []
        weighbridge("convert", path, f"{tmp_path}/{name}/", "--allow", "overflow", "--dequantize", *flags, *said)
        for name, (dtype, shape, data) in tensors_of(tmp_path / name / "model.safetensors").items():
            found[name, dtype] = shape, data
    config = json.loads((tmp_path / "own/config.json").read_text())
    assert not {"quantization_config", "quantization"} & set(config) and not list((tmp_path / "own").glob("quantize_config.json"))
    compared = 0
    for name, arrays in expected.items():
        for each in arrays:
            dtype = each["file"].rsplit(".", 2)[1] if "file" in each else each["dtype"]
            if (name, dtype) not in found:
                continue
            data, shape = array(path / "expected" / f"{name}.{dtype}.npy")
            assert found[name, dtype][0] == shape
            assert without_nan(dtype, found[name, dtype][1]) == without_nan(dtype, data), (name, dtype)
            compared += 1
    assert compared >= len(expected)


@pytest.mark.skipif(not CASES, reason="quantized/ is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
def test_parameters_of_folders_that_libraries_wrote_are_the_numbers_of_their_layers():
    for path in CASES:
        expected = logical(path)
        for given in path, path.parent:
            out = json.loads(weighbridge("inspect", "--json", given).stdout)["files"][0]
            if "schemes" in out:  # something is left open
                assert given == path or given.name in ("awq_gemv_fast_g64", "quanto_qint2", "quanto_qint4"), given
                continue
            assert out["parameters"] == sum(math.prod(each["shape"]) for each in out["tensors"] if each["dtype"] in ("f32", "f16", "bf16")), path
            assert {each["name"] for each in out["tensors"] if "stored" in each} >= {*expected}


def test_fp8_in_one_shard_of_several_is_not_taken_for_numbers(tmp_path):
    """Its scales may be in another shard, as --max-shard-size itself divides them."""
    names = [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    weight, scale = tensor("F8_E4M3", [64, 32]), tensor("F32", [])
    (tmp_path / names[0]).write_bytes(safetensors({f"{L}.weight": weight}))
    (tmp_path / names[1]).write_bytes(safetensors({f"{L}.weight_scale": scale}))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {f"{L}.weight": names[0], f"{L}.weight_scale": names[1]}}))
    alone, out = tmp_path / names[0], tmp_path / "out.safetensors"
    assert "FP8 whose scales may be in another file" in weighbridge("inspect", alone).stdout
    weighbridge("convert", alone, out, "--cast", "f32", "--allow", "part", status=3)
    weighbridge("extract", alone, f"{L}.weight", "--dense", "f32", "-o", tmp_path / "x.npy", status=3)
    weighbridge("convert", alone, out, "--allow", "part", "--allow", "layout")
    assert "FP8 with scales" in weighbridge("inspect", "--stored", tmp_path / "model.safetensors.index.json").stdout


@pytest.mark.parametrize("name", ["aqlm", "quanto_int4"])
def test_codes_that_are_not_read_meet_no_promise_about_numbers(name, tmp_path):
    """verify and check ended with 0, and "meets strict": nothing said that no code had been looked at."""
    _, tensors, _ = LAYOUTS[name]
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({key: tensor(*each) for key, each in tensors.items()}))
    done = weighbridge("verify", path, status=3)
    assert "were not examined: " in done.stdout and "(unsupported/scheme in tensor " in done.stdout and ": ok (" in done.stdout
    assert validated(weighbridge("verify", path, "--json", status=3).stdout, "verify")["files"][0]["valid"] is True
    weighbridge("check", path, status=3)
    weighbridge("check", path, "--policy", "publish", status=3)
    assert "does NOT meet strict" in weighbridge("check", path, "--policy", "strict", status=1).stdout
    (tmp_path / "policy.json").write_text('{"warnings": ["unsupported/scheme"], "max_nan": 0}')
    weighbridge("check", path, "--policy", tmp_path / "policy.json", status=3)
    weighbridge("doctor", path, status=3)
