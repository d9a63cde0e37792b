# SPDX-License-Identifier: Apache-2.0
"""convert --merge-lora against numpy in float64: adapters as peft, kohya's scripts, mlx-lm and llama.cpp write them, for each dtype of a base."""
import json
import pathlib
import resource
import subprocess

import pytest

from interop_tools import COMMAND, NUMPY_OF, np, weighbridge

save_file = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment").save_file
load_file = pytest.importorskip("safetensors.numpy").load_file

DTYPES = ["f32", "f16", "bf16"]


def numbers(shape, kind="f32", seed=0, size=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * size).astype(NUMPY_OF[kind])


def ordered(array):
    """Numbers that count the values of a floating-point type in their order."""
    width = array.dtype.itemsize
    bits = array.view({2: np.int16, 4: np.int32}[width]).astype(np.int64)
    return np.where(bits < 0, -(bits & ((1 << (8 * width - 1)) - 1)), bits)


def assert_close(found, wanted):
    """At most one step of the dtype apart: the order of a sum in f64 is numpy's own."""
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.abs(ordered(found) - ordered(wanted)).max() <= 1
    assert (found.view(np.uint8) == wanted.view(np.uint8)).mean() > 0.99


def wide(array):
    return array.astype(np.float64)


def peft(folder, tensors, **config):
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    said = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "use_rslora": False, "use_dora": False, "fan_in_fan_out": False, "bias": "none",
            "rank_pattern": {}, "alpha_pattern": {}, "modules_to_save": None, "init_lora_weights": True, **config}
    (folder / "adapter_config.json").write_text(json.dumps(said))
    return folder


def merged(tmp_path, base, *adapters, flags=(), status=0):
    save_file(base, tmp_path / "base.safetensors")
    out = tmp_path / "out.safetensors"
    given = [word for adapter in adapters for word in ("--merge-lora", adapter)]
    command = [COMMAND, "convert", tmp_path / "base.safetensors", out, "--force", *given, *flags]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return load_file(out) if status == 0 else done.stderr


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("factor", ["f32", "bf16"])
def test_peft(tmp_path, kind, factor):
    base = {"model.layers.0.q.weight": numbers((48, 33), kind), "model.layers.0.k.weight": numbers((16, 33), kind, 1),
            "model.norm.weight": numbers((33,), kind, 2)}
    a, b = numbers((8, 33), factor, 3), numbers((48, 8), factor, 4, 0.1)
    folder = peft(tmp_path / "adapter", {"base_model.model.model.layers.0.q.lora_A.weight": a, "base_model.model.model.layers.0.q.lora_B.weight": b})
    out = merged(tmp_path, base, folder)
    assert_close(out["model.layers.0.q.weight"], (wide(base["model.layers.0.q.weight"]) + 2 * (wide(b) @ wide(a))).astype(NUMPY_OF[kind]))
    for name in ("model.layers.0.k.weight", "model.norm.weight"):
        assert out[name].tobytes() == base[name].tobytes()
    half = merged(tmp_path, base, f"{folder}=0.5")
    assert_close(half["model.layers.0.q.weight"], (wide(base["model.layers.0.q.weight"]) + wide(b) @ wide(a)).astype(NUMPY_OF[kind]))


def test_peft_patterns_rslora_and_whole_tensors(tmp_path):
    base = {"model.a.q.weight": numbers((20, 12)), "model.b.q.weight": numbers((20, 12), seed=1), "head.weight": numbers((5, 12), seed=2),
            "model.a.q.bias": numbers((20,), seed=3)}
    p = "base_model.model."
    a0, b0, a1, b1 = numbers((4, 12), seed=4), numbers((20, 4), seed=5), numbers((8, 12), seed=6), numbers((20, 8), seed=7)
    head, bias = numbers((5, 12), seed=8), numbers((20,), seed=9)
    folder = peft(tmp_path / "adapter", {p + "model.a.q.lora_A.weight": a0, p + "model.a.q.lora_B.weight": b0, p + "model.b.q.lora_A.weight": a1,
                                         p + "model.b.q.lora_B.weight": b1, p + "head.weight": head, p + "model.a.q.bias": bias},
                  rank_pattern={"a.q": 4}, alpha_pattern={"^model.a.q": 6}, use_rslora=True, modules_to_save=["head"], bias="lora_only")
    out = merged(tmp_path, base, folder)
    assert_close(out["model.a.q.weight"], (wide(base["model.a.q.weight"]) + 6 / 2 * (wide(b0) @ wide(a0))).astype(np.float32))
    assert_close(out["model.b.q.weight"], (wide(base["model.b.q.weight"]) + 16 / np.sqrt(8) * (wide(b1) @ wide(a1))).astype(np.float32))
    assert out["head.weight"].tobytes() == head.tobytes() and out["model.a.q.bias"].tobytes() == bias.tobytes()


def test_transposed_layers_and_embeddings(tmp_path):
    base = {"h.0.c_attn.weight": numbers((12, 36)), "wte.weight": numbers((50, 12), seed=1)}
    a, b = numbers((8, 12), seed=2), numbers((36, 8), seed=3)
    ea, eb = numbers((8, 50), seed=4), numbers((12, 8), seed=5)
    folder = peft(tmp_path / "adapter", {"base_model.model.transformer.h.0.c_attn.lora_A.weight": a, "base_model.model.transformer.h.0.c_attn.lora_B.weight": b,
                                         "base_model.model.transformer.wte.lora_embedding_A": ea, "base_model.model.transformer.wte.lora_embedding_B": eb},
                  fan_in_fan_out=True)
    out = merged(tmp_path, base, folder)
    assert_close(out["h.0.c_attn.weight"], (wide(base["h.0.c_attn.weight"]) + 2 * (wide(b) @ wide(a)).T).astype(np.float32))
    assert_close(out["wte.weight"], (wide(base["wte.weight"]) + 2 * (wide(eb) @ wide(ea)).T).astype(np.float32))


@pytest.mark.parametrize("kind", DTYPES)
def test_kohya(tmp_path, kind):
    base = {"down_blocks.0.attentions.0.proj_in.weight": numbers((10, 6, 1, 1), kind), "down_blocks.0.attentions.0.to_q.weight": numbers((10, 6), kind, 1),
            "mid.conv.weight": numbers((10, 6, 3, 3), kind, 2)}
    t = {"lora_unet_down_blocks_0_attentions_0_proj_in.lora_down.weight": numbers((4, 6, 1, 1), "f16", 3),
         "lora_unet_down_blocks_0_attentions_0_proj_in.lora_up.weight": numbers((10, 4, 1, 1), "f16", 4),
         "lora_unet_down_blocks_0_attentions_0_proj_in.alpha": np.array(2.0, np.float16),
         "lora_unet_down_blocks_0_attentions_0_to_q.lora_down.weight": numbers((4, 6), "f16", 5),
         "lora_unet_down_blocks_0_attentions_0_to_q.lora_up.weight": numbers((10, 4), "f16", 6),
         "lora_unet_mid_conv.lora_down.weight": numbers((4, 6, 3, 3), "f16", 7),
         "lora_unet_mid_conv.lora_up.weight": numbers((10, 4, 1, 1), "f16", 8),
         "lora_unet_mid_conv.alpha": np.array(1.0, np.float16)}
    save_file(t, tmp_path / "kohya.safetensors")
    out = merged(tmp_path, base, f"{tmp_path / 'kohya.safetensors'}=-2")
    for name, stem, alpha in (("down_blocks.0.attentions.0.proj_in", "down_blocks_0_attentions_0_proj_in", 2),
                              ("down_blocks.0.attentions.0.to_q", "down_blocks_0_attentions_0_to_q", 4), ("mid.conv", "mid_conv", 1)):
        weight = base[name + ".weight"]
        down, up = (wide(t[f"lora_unet_{stem}.lora_{side}.weight"]) for side in ("down", "up"))
        change = up.reshape(10, 4) @ down.reshape(4, -1)
        assert_close(out[name + ".weight"], (wide(weight) - 2 * alpha / 4 * change.reshape(weight.shape)).astype(NUMPY_OF[kind]))


# (name in the checkpoint, name of the module in an adapter), as sd-scripts' own functions convert the one to the other:
# convert_unet_state_dict_to_sd, make_unet_conversion_map, convert_sdxl_text_encoder_2_checkpoint. With all modules of SD 1.5 and SDXL
# the two agree; these are one for each row of the table, and the borders of its arithmetic.
UNET, CLIP, OPEN_CLIP = "model.diffusion_model.", "text_model.encoder.layers.0.", "conditioner.embedders.1.model.transformer.resblocks.31."
SINGLE_FILE = [
    (UNET + "input_blocks.0.0", "unet_conv_in"), (UNET + "input_blocks.1.0.in_layers.2", "unet_down_blocks_0_resnets_0_conv1"),
    (UNET + "input_blocks.2.1.transformer_blocks.0.attn1.to_out.0", "unet_down_blocks_0_attentions_1_transformer_blocks_0_attn1_to_out_0"),
    (UNET + "input_blocks.3.0.op", "unet_down_blocks_0_downsamplers_0_conv"), (UNET + "input_blocks.4.0.skip_connection", "unet_down_blocks_1_resnets_0_conv_shortcut"),
    (UNET + "input_blocks.11.0.emb_layers.1", "unet_down_blocks_3_resnets_1_time_emb_proj"), (UNET + "middle_block.0.out_layers.3", "unet_mid_block_resnets_0_conv2"),
    (UNET + "middle_block.1.proj_in", "unet_mid_block_attentions_0_proj_in"), (UNET + "middle_block.2.in_layers.2", "unet_mid_block_resnets_1_conv1"),
    (UNET + "output_blocks.2.1.conv", "unet_up_blocks_0_upsamplers_0_conv"), (UNET + "output_blocks.5.2.conv", "unet_up_blocks_1_upsamplers_0_conv"),
    (UNET + "output_blocks.8.0.out_layers.3", "unet_up_blocks_2_resnets_2_conv2"), (UNET + "output_blocks.3.1.proj_out", "unet_up_blocks_1_attentions_0_proj_out"),
    (UNET + "time_embed.0", "unet_time_embedding_linear_1"), (UNET + "time_embed.2", "unet_time_embedding_linear_2"), (UNET + "out.2", "unet_conv_out"),
    (UNET + "label_emb.0.0", "unet_add_embedding_linear_1"), (UNET + "label_emb.0.2", "unet_add_embedding_linear_2"),
    (UNET + "input_blocks.7.1.proj_in", "unet_input_blocks_7_1_proj_in"),  # the names of sd-scripts' own SDXL
    ("conditioner.embedders.0.transformer." + CLIP + "self_attn.q_proj", "te1_text_model_encoder_layers_0_self_attn_q_proj"),
    (OPEN_CLIP + "attn.out_proj", "te2_text_model_encoder_layers_31_self_attn_out_proj"), (OPEN_CLIP + "mlp.c_fc", "te2_text_model_encoder_layers_31_mlp_fc1"),
    (OPEN_CLIP + "mlp.c_proj", "te2_text_model_encoder_layers_31_mlp_fc2")]


def test_kohyas_names_against_checkpoints_of_one_file(tmp_path):
    base, adapter, change = {}, {}, {}
    for i, (name, module) in enumerate(SINGLE_FILE):
        base[name + ".weight"] = numbers((4, 6), seed=i)
        adapter[f"lora_{module}.lora_down.weight"], adapter[f"lora_{module}.lora_up.weight"] = a, b = numbers((2, 6), seed=100 + i), numbers((4, 2), seed=200 + i)
        change[name + ".weight"] = wide(b) @ wide(a)
    joined = OPEN_CLIP + "attn.in_proj_weight"  # OpenCLIP keeps three matrices in one
    base[joined], change[joined] = numbers((12, 6)), np.zeros((12, 6))
    for part, module in ((0, "q_proj"), (2, "v_proj")):
        a, b = numbers((2, 6), seed=300 + part), numbers((4, 2), seed=301 + part)
        change[joined][4 * part:4 * part + 4] = wide(b) @ wide(a)
        stem = f"lora_te2_text_model_encoder_layers_31_self_attn_{module}"
        adapter[stem + ".lora_down.weight"], adapter[stem + ".lora_up.weight"] = a, b
    save_file(adapter, tmp_path / "kohya.safetensors")
    out = merged(tmp_path, base, tmp_path / "kohya.safetensors")
    for name, weight in base.items():
        assert_close(out[name], (wide(weight) + change[name]).astype(np.float32))


def test_a_change_of_the_second_text_encoder_is_not_merged_into_the_first(tmp_path):
    base = {"conditioner.embedders.0.transformer." + CLIP + "mlp.fc1.weight": numbers((4, 6)), OPEN_CLIP + "mlp.c_fc.weight": numbers((4, 6))}
    stem = "lora_te2_text_model_encoder_layers_0_mlp_fc1"
    save_file({stem + ".lora_down.weight": numbers((2, 6)), stem + ".lora_up.weight": numbers((4, 2))}, tmp_path / "kohya.safetensors")
    assert "the model has no tensor for a change" in merged(tmp_path, base, tmp_path / "kohya.safetensors", status=2)


def test_names_of_diffusers_against_a_checkpoint_of_one_file(tmp_path):
    base = {UNET + "input_blocks.1.1.proj_in.weight": numbers((4, 6, 1, 1))}
    a, b = numbers((2, 6), seed=1), numbers((4, 2), seed=2)
    save_file({"unet.down_blocks.0.attentions.0.proj_in.lora_A.weight": a, "unet.down_blocks.0.attentions.0.proj_in.lora_B.weight": b}, tmp_path / "a.safetensors")
    out = merged(tmp_path, base, tmp_path / "a.safetensors")[UNET + "input_blocks.1.1.proj_in.weight"]
    assert_close(out, (wide(base[UNET + "input_blocks.1.1.proj_in.weight"]) + (wide(b) @ wide(a))[:, :, None, None]).astype(np.float32))


def mlx(folder, tensors, parameters={"rank": 4, "scale": 3.0, "dropout": 0.0}, **config):
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / "adapters.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"fine_tune_type": "lora", "num_layers": 1, "lora_parameters": parameters, **config}))
    return folder


def mlx_pair(name, inner, outer, seed=0):
    return {name + ".lora_a": numbers((inner, 4), seed=seed), name + ".lora_b": numbers((4, outer), seed=seed + 1)}


def test_mlx_lm(tmp_path):
    """As mlx_lm.fuse merges them: LoRALinear.fuse() and LoRAEmbedding.fuse()."""
    base = {"model.layers.0.q.weight": numbers((40, 24)), "model.layers.0.o.weight": numbers((24, 24), seed=1), "model.embed_tokens.weight": numbers((24, 24), seed=2)}
    t = {**mlx_pair("model.layers.0.q", 24, 40), **mlx_pair("model.layers.0.o", 24, 24, 5), **mlx_pair("model.embed_tokens", 24, 24, 9)}
    out = merged(tmp_path, base, mlx(tmp_path / "adapter", t))
    for name, weight in base.items():
        a, b = (wide(t[name.replace("weight", side)]) for side in ("lora_a", "lora_b"))
        assert_close(out[name], (wide(weight) + 3 * (a @ b if "embed" in name else (a @ b).T)).astype(np.float32))


@pytest.mark.parametrize("parameters, config, said", [
    ({"rank": 8, "scale": 3.0}, {}, "gives the inner rank 8"),
    ({"rank": 4}, {}, "no scale in lora_parameters"),
    ({"rank": 4, "alpha": 16, "scale": 10.0}, {}, "mlx-lm up to 0.14.1 (May 2024) multiplies to scale * alpha / rank"),
    ({"rank": 4, "scale": 3.0}, {"fine_tune_type": "dora"}, "DoRA"),
])
def test_what_an_adapter_of_mlx_lm_leaves_open_is_refused(tmp_path, parameters, config, said):
    folder = mlx(tmp_path / "adapter", mlx_pair("q", 12, 20), parameters, **config)
    assert said in merged(tmp_path, {"q.weight": numbers((20, 12))}, folder, status=2)
    (folder / "adapter_config.json").unlink()
    assert "an adapter of mlx-lm needs its adapter_config.json" in merged(tmp_path, {"q.weight": numbers((20, 12))}, folder, status=2)


PEFT = pathlib.Path(__file__).parent / "data/peft"


def with_peft(tmp_path, name, *flags, status=0):
    base = PEFT / ("base-tied" if name.startswith("tied") else "base")
    out = tmp_path / "out"
    done = subprocess.run([COMMAND, "convert", base, out, "--to", "hf", "--merge-lora", PEFT / name, *flags], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    return (load_file(out / "model.safetensors"), json.loads((out / "config.json").read_text()), done.stdout) if status == 0 else done.stderr


@pytest.mark.parametrize("name", ["grown", "saved", "targets", "targets-same", "tokens", "tokens-same", "tied-grown", "tied-tokens"])
def test_embeddings_that_peft_saved_take_the_place_of_the_models(tmp_path, name):
    """Against peft's own merge, which sums in f32. A tied head that peft leaves out is that of the input embedding."""
    found, config, _ = with_peft(tmp_path, name, *([] if name.endswith("same") else ["--resize-vocab"]))
    wanted, said = load_file(PEFT / name / "merged.safetensors"), json.loads((PEFT / name / "merged.json").read_text())
    if name.startswith("tied"):
        wanted.setdefault("lm_head.weight", wanted["model.embed_tokens.weight"])
        found.setdefault("lm_head.weight", found["model.embed_tokens.weight"])
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key].shape == value.shape, key
        np.testing.assert_allclose(found[key], value, rtol=1e-6, atol=1e-7, err_msg=key)
    rows = found["model.embed_tokens.weight"].shape[0]
    assert config["vocab_size"] == rows == (10 if name.endswith("same") else 13)
    assert name.startswith("tied") or config["vocab_size"] == said["vocab_size"]


@pytest.mark.parametrize("name", ["grown", "saved", "targets", "tokens", "tied-grown", "head-only"])
def test_more_rows_than_the_model_has_are_refused_with_both_numbers(tmp_path, name):
    said = with_peft(tmp_path, name, status=2)
    assert "has 13 rows, and the model's" in said and "has 10; try --resize-vocab" in said and said.count("\n") == 1


def test_an_adapter_without_one_of_two_resized_embeddings_is_refused(tmp_path):
    said = with_peft(tmp_path, "head-only", "--resize-vocab", status=2)
    assert "'model.embed_tokens.weight' has 10 rows and" in said.replace('"', "'") and "has 13" in said


def test_the_plan_says_how_many_rows_there_are(tmp_path):
    _, _, plan = with_peft(tmp_path, "grown", "--resize-vocab")
    assert "13 rows in place of 10" in plan and "vocab_size" in plan


def test_a_pair_of_more_rows_than_the_model_has_is_refused(tmp_path):
    base = {"model.embed_tokens.weight": numbers((20, 6)), "lm_head.weight": numbers((20, 6), seed=1)}
    folder = peft(tmp_path / "adapter", {"base_model.model.lm_head.lora_A.weight": numbers((2, 6)), "base_model.model.lm_head.lora_B.weight": numbers((23, 2))},
                  r=2)
    said = merged(tmp_path, base, folder, flags=["--resize-vocab"], status=2)
    assert "changes 23 rows" in said and "has 20" in said and "neither has the other rows" in said


def test_resize_vocab_without_an_adapter_has_no_effect(tmp_path):
    assert "--resize-vocab has no effect without --merge-lora" in merged(tmp_path, {"a": numbers((2, 2))}, flags=["--resize-vocab"], status=2)


def test_gguf(tmp_path):
    gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
    base = {"blk.0.attn_q.weight": numbers((32, 64)), "token_embd.weight": numbers((100, 64), seed=1)}
    a, b, ta, tb = numbers((4, 64), seed=2), numbers((32, 4), seed=3), numbers((100, 4), seed=4), numbers((64, 4), seed=5)
    writer = gguf.GGUFWriter(tmp_path / "adapter.gguf", "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", 8.0)
    for name, array in (("blk.0.attn_q.weight.lora_a", a), ("blk.0.attn_q.weight.lora_b", b), ("token_embd.weight.lora_a", ta), ("token_embd.weight.lora_b", tb)):
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    out = merged(tmp_path, base, tmp_path / "adapter.gguf")
    assert_close(out["blk.0.attn_q.weight"], (wide(base["blk.0.attn_q.weight"]) + 2 * (wide(b) @ wide(a))).astype(np.float32))
    assert_close(out["token_embd.weight"], (wide(base["token_embd.weight"]) + 2 * (wide(ta) @ wide(tb).T)).astype(np.float32))


def test_two_adapters_are_one_sum(tmp_path):
    base = {"q.weight": numbers((20, 12), "bf16")}
    folders, change = [], 0
    for i in range(2):
        a, b = numbers((8, 12), seed=2 * i + 1), numbers((20, 8), seed=2 * i + 2)
        folders.append(peft(tmp_path / f"adapter{i}", {"base_model.model.q.lora_A.weight": a, "base_model.model.q.lora_B.weight": b}))
        change = change + 2 * (wide(b) @ wide(a))
    assert_close(merged(tmp_path, base, *folders)["q.weight"], (wide(base["q.weight"]) + change).astype(NUMPY_OF["bf16"]))


def test_memory_does_not_grow_with_the_base(tmp_path):
    """A tensor of 256 MiB within 100 MiB of memory besides the program's own."""
    rows, columns = 16384, 4096
    base = {"q.weight": np.zeros((rows, columns), np.float32)}
    a, b = numbers((4, columns)), numbers((rows, 4), seed=1)
    save_file(base, tmp_path / "base.safetensors")
    folder = peft(tmp_path / "adapter", {"base_model.model.q.lora_A.weight": a, "base_model.model.q.lora_B.weight": b}, r=4)
    command = [COMMAND, "convert", str(tmp_path / "base.safetensors"), str(tmp_path / "out.safetensors"), "--merge-lora", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=120,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (100 << 20, 100 << 20)))
    out = np.memmap(tmp_path / "out.safetensors", np.float32, offset=(tmp_path / "out.safetensors").stat().st_size - rows * columns * 4)
    assert_close(np.array(out[-columns:]), (4 * (wide(b[-1:]) @ wide(a)))[0].astype(np.float32))


def lora_pair(name="q", rank=8, a=None, b=None):
    return {f"base_model.model.{name}.lora_A.weight": numbers((rank, 12)) if a is None else a,
            f"base_model.model.{name}.lora_B.weight": numbers((20, rank)) if b is None else b}


@pytest.mark.parametrize("tensors, config, said", [
    (lora_pair("k"), {}, 'no tensor for a change of the adapter: "k.weight" (the nearest is "q.weight")'),
    (lora_pair(a=numbers((8, 13))), {}, "the shapes disagree"),
    (lora_pair(b=numbers((21, 8))), {}, "the shapes disagree"),
    (lora_pair(b=numbers((20, 7))), {}, "the shapes disagree"),
    (lora_pair(rank=33), {"r": 33}, "more than the 32 rows and columns"),
    (lora_pair(rank=4), {}, "gives the inner rank 8"),
    (lora_pair(a=np.full((8, 12), np.nan, np.float32)), {}, "values that are not finite"),
    (lora_pair(a=np.full((8, 12), 3e38, np.float32), b=np.full((20, 8), 3e38, np.float32)), {}, "too large for f32"),
    ({"base_model.model.q.lora_A.weight": numbers((8, 12))}, {}, "only one factor"),
    ({**lora_pair(), "base_model.model.q.lora_magnitude_vector": numbers((20,))}, {}, "DoRA"),
    ({**lora_pair(), "base_model.model.q.lora_B.bias": numbers((20,))}, {}, "LoRA with biases"),
    (lora_pair(), {"use_dora": True}, "DoRA"),
    (lora_pair(), {"peft_type": "LOHA"}, "only LORA"),
    (lora_pair(), {"init_lora_weights": "pissa_niter_4"}, "also changes the base"),
    (lora_pair(), {"lora_alpha": None}, "lora_alpha null, which is not a number"),
    (lora_pair(), {"rank_pattern": {"q|k": 8}}, "a regular expression"),
    ({"lora_unet_q.hada_w1_a": numbers((2, 2))}, {}, "LoHa"),
    ({"q.weight": numbers((20, 12))}, {"r": 8}, None),
])
def test_what_cannot_be_merged_is_refused(tmp_path, tensors, config, said):
    folder = peft(tmp_path / "adapter", tensors, **config)
    base = {"q.weight": numbers((20, 12))}
    if said is None:  # a whole tensor, and nothing of low rank: peft's modules_to_save alone
        assert merged(tmp_path, base, folder)["q.weight"].tobytes() == tensors["q.weight"].tobytes()
        return
    assert said in merged(tmp_path, base, folder, status=2)
    assert not (tmp_path / "out.safetensors").exists()


def test_what_is_asked_in_a_wrong_way_is_refused(tmp_path):
    base = {"q.weight": numbers((20, 12)), "k.weight": numbers((64, 64))}
    folder = peft(tmp_path / "adapter", lora_pair())
    assert "finite number" in merged(tmp_path, base, f"{folder}=nan", status=2)
    assert "number" in merged(tmp_path, base, f"{folder}=1e999", status=2)
    (folder / "adapter_config.json").unlink()
    assert "needs its adapter_config.json" in merged(tmp_path, base, folder, status=2)
    (tmp_path / "empty").mkdir()
    assert "it is not an adapter of peft" in merged(tmp_path, base, tmp_path / "empty", status=2)
    save_file({"x": numbers((2, 2))}, tmp_path / "no.safetensors")
    assert "this is not an adapter" in merged(tmp_path, base, tmp_path / "no.safetensors", status=2)
    save_file(lora_pair(), tmp_path / "lora.safetensors")
    done = subprocess.run([COMMAND, "convert", tmp_path / "base.safetensors", tmp_path / "lora.safetensors", "--force", "--merge-lora",
                           tmp_path / "lora.safetensors"], capture_output=True, text=True)
    assert done.returncode == 2 and "same file as an adapter" in done.stderr


def test_a_quantized_base_is_refused_unless_it_is_made_dense(tmp_path):
    base = {"q.weight": numbers((64, 64))}
    save_file(base, tmp_path / "base.safetensors")
    weighbridge("convert", tmp_path / "base.safetensors", tmp_path / "base.gguf", "--quantize", "q8_0", "--allow", "attribute")
    a, b = numbers((8, 64), seed=1), numbers((64, 8), seed=2)
    folder = peft(tmp_path / "adapter", {"base_model.model.q.lora_A.weight": a, "base_model.model.q.lora_B.weight": b})
    command = [COMMAND, "convert", tmp_path / "base.gguf", tmp_path / "out.safetensors", "--merge-lora", folder, "--allow", "attribute,attribute-type"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "q8_0" in done.stderr and "try --dequantize" in done.stderr, done.stderr
    weighbridge(*command[1:], "--dequantize", "f16")
    weighbridge("convert", tmp_path / "base.gguf", tmp_path / "dense.safetensors", "--dequantize", "f32", "--allow", "attribute,attribute-type")
    dense = load_file(tmp_path / "dense.safetensors")["q.weight"]
    assert_close(load_file(tmp_path / "out.safetensors")["q.weight"], (wide(dense) + 2 * (wide(b) @ wide(a))).astype(np.float16))


def test_an_alr1_package_gives_the_bits_of_slm_adapt(tmp_path):
    weighbridge("slm", "fixture", "tiny", "-o", tmp_path / "base.slm")
    rng = np.random.default_rng(3)
    deltas = {"layers.0.wq.weight.lora_a": rng.standard_normal((8, 3)).astype(np.float32),
              "layers.0.wq.weight.lora_b": rng.standard_normal((3, 8)).astype(np.float32)}
    save_file(deltas, tmp_path / "deltas.safetensors")
    weighbridge("slm", "adapter", tmp_path / "base.slm", tmp_path / "deltas.safetensors", "--kind", "alr1", "-o", tmp_path / "a.alr1")
    weighbridge("slm", "adapt", tmp_path / "base.slm", tmp_path / "a.alr1", "-o", tmp_path / "adapted.slm")
    weighbridge("convert", tmp_path / "base.slm", tmp_path / "merged.slm", "--merge-lora", tmp_path / "a.alr1")
    assert (tmp_path / "adapted.slm").read_bytes() == (tmp_path / "merged.slm").read_bytes()
