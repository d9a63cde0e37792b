# SPDX-License-Identifier: Apache-2.0
"""GPTQ's layers as quantized_group and back (convert --gptq): the numbers against an independent dequantization with numpy, written
from how AutoGPTQ and GPTQModel unpack, and the tensors bit for bit after the way back."""
import itertools
import json

import pytest

from interop_tools import inspected, np, weighbridge

safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment")

FORMATS = {"v1": ("gptq", 1), "v2": ("gptq_v2", 0)}


def layer(bits, rows, columns, groups, seed=0, scales="float16", g_idx=True):
    """Random codes and scales; every zero that qzeros can store."""
    random = np.random.default_rng(seed)
    words = lambda shape: random.integers(0, 2**32, shape, dtype=np.uint32).view(np.int32)
    n = 32 // bits
    out = {"qweight": words((rows // n, columns)), "qzeros": words((groups, columns // n)),
           "scales": (random.random((groups, columns)) / 64).astype(scales)}
    if g_idx:
        out["g_idx"] = (np.arange(rows) // (rows // groups)).astype(np.int32)
    return out


def unpack(words, bits, axis):
    """One element a code: along `axis` each word has 32 / bits, the least significant first."""
    codes = np.stack([words.view(np.uint32) >> np.uint32(at) & np.uint32(2**bits - 1) for at in range(0, 32, bits)], axis=axis + 1)
    shape = list(words.shape)
    shape[axis] *= 32 // bits
    return codes.reshape(shape)


def dequantized(tensors, bits, added):
    codes = unpack(tensors["qweight"], bits, 0).astype(np.float64)
    zeros = (unpack(tensors["qzeros"], bits, 1).astype(np.float64) + added) % 2**bits  # all ones in v1 come from 0
    group = np.arange(len(codes)) // (len(codes) // len(zeros)) if "g_idx" not in tensors else tensors["g_idx"]
    return ((codes - zeros[group]) * tensors["scales"].astype(np.float64)[group]).astype(np.float32)


def named(layers):
    return {f"{name}.{role}": array for name, tensors in layers.items() for role, array in tensors.items()}


def saved(path, layers, others=None):
    safetensors.save_file({**named(layers), **(others or {})}, path, metadata={"format": "pt"})
    return path


def same_bytes(before, after):
    assert set(before) == set(after)
    for name, array in before.items():
        assert array.dtype == after[name].dtype and array.shape == after[name].shape, name
        assert array.tobytes() == after[name].tobytes(), name


@pytest.mark.parametrize("bits,zeros", list(itertools.product([2, 4, 8], FORMATS)))
def test_numbers_are_those_of_an_independent_dequantization(tmp_path, bits, zeros):
    layers = {"a.q_proj": layer(bits, 128, 64, 4), "a.k_proj": layer(bits, 64, 96, 1, seed=1, g_idx=False),
              "b.q_proj": layer(bits, 96, 32, 3, seed=2, scales="float32")}
    there = tmp_path / "there.zt"
    weighbridge("convert", saved(tmp_path / "in.safetensors", layers), there, "--scheme", f"gptq:zeros={zeros}")
    weighbridge("verify", there)
    listed = inspected(there)
    for name, tensors in layers.items():
        assert listed[name]["layout"] == "quantized_group"
        out = tmp_path / "out.npy"
        weighbridge("extract", there, name, "--dense", "-o", out, "--force")
        values = np.load(out)
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values, dequantized(tensors, bits, FORMATS[zeros][1]))


@pytest.mark.parametrize("encoding", [[], ["--encoding", "zstd", "--digest", "sha256"], ["--canonical"]])
@pytest.mark.parametrize("bits,zeros", list(itertools.product([2, 4, 8], FORMATS)))
def test_the_way_back_gives_the_same_tensors(tmp_path, bits, zeros, encoding):
    layers = {"x": layer(bits, 256, 128, 2), "y": layer(bits, 64, 64, 2, seed=3, g_idx=False)}
    others = {"x.bias": np.arange(128, dtype=np.float16), "norm": np.ones(3, np.float32)}
    there, back = tmp_path / "there.zt", tmp_path / "back.safetensors"
    before = saved(tmp_path / "in.safetensors", layers, others)
    weighbridge("convert", before, there, "--scheme", f"gptq:zeros={zeros}", *encoding)
    weighbridge("convert", there, back, "--scheme", "gptq:zeros=auto")
    same_bytes({**named(layers), **others}, safetensors.load_file(back))
    weighbridge("convert", before, tmp_path / "plain.safetensors", "--canonical")
    assert (tmp_path / "plain.safetensors").read_bytes() == back.read_bytes()


def test_a_large_layer_goes_in_pieces(tmp_path):
    """More zeros and rows than one piece of 4 MiB, and than one batch, hold."""
    layers = {"x": layer(8, 4 * 17000, 1280, 1000)}
    there, back = tmp_path / "there.zt", tmp_path / "back.safetensors"
    layers["x"]["g_idx"] = (np.arange(68000) // 68).astype(np.int32)
    weighbridge("convert", saved(tmp_path / "in.safetensors", layers), there, "--scheme", "gptq:zeros=v1", "--encoding", "zstd", "--level", "1")
    weighbridge("convert", there, back, "--scheme", "gptq:zeros=auto")
    same_bytes(named(layers), safetensors.load_file(back))


@pytest.fixture
def folder(tmp_path):
    """A folder as GPTQModel writes it, but for its other tensors."""
    def make(**quantization):
        path = tmp_path / "model"
        path.mkdir()
        config = {"model_type": "other", "quantization_config": {"bits": 4, "group_size": 32, "desc_act": False, "sym": True,
                                                                  "quant_method": "gptq", **quantization}}
        (path / "config.json").write_text(json.dumps(config))
        saved(path / "model.safetensors", {"x": layer(4, 64, 64, 2)})
        return path
    return make


@pytest.mark.parametrize("said,added", [({}, 1), ({"checkpoint_format": "gptq"}, 1), ({"checkpoint_format": "gptq_v2"}, 0)])
def test_the_config_says_how_zeros_are_stored(folder, tmp_path, said, added):
    path, there = folder(**said), tmp_path / "there.zt"
    weighbridge("convert", path, there, "--scheme", "gptq:zeros=auto")
    weighbridge("extract", there, "x", "--dense", "-o", tmp_path / "x.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), dequantized(layer(4, 64, 64, 2), 4, added))
    weighbridge("convert", there, f"{tmp_path}/back/", "--scheme", "gptq:zeros=auto")
    assert json.loads((tmp_path / "back/config.json").read_text()) == json.loads((path / "config.json").read_text())
    same_bytes(safetensors.load_file(path / "model.safetensors"), safetensors.load_file(tmp_path / "back/model.safetensors"))


def test_quantize_config_says_it_too(folder, tmp_path):
    path = folder()
    (path / "config.json").write_text('{"model_type": "other"}')
    weighbridge("convert", path, tmp_path / "there.zt", "--scheme", "gptq:zeros=auto", status=2)
    (path / "quantize_config.json").write_text('{"bits": 4, "group_size": 32, "desc_act": false}')
    assert b"minus one (v1)" in weighbridge("convert", path, tmp_path / "there.zt", "--scheme", "gptq:zeros=auto")
