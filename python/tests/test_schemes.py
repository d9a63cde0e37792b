# SPDX-License-Identifier: Apache-2.0
# Codes of a quantization scheme: returned as they are stored, and the numbers that they stand for; never codes as numbers.
import json
import struct

import pytest

np = pytest.importorskip("numpy")

import weighbridge as wb


def shard(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


@pytest.fixture
def quantized(tmp_path):
    return shard(tmp_path / "int8.safetensors", {
        "x.weight": ("I8", [2, 4], bytes(range(8))), "x.SCB": ("F32", [2], struct.pack("<2f", 0.5, 0.25)),
        "norm.weight": ("F32", [2], struct.pack("<2f", 1, 2))})


def test_codes_are_read_as_they_are_stored(quantized):
    with wb.open(quantized) as model:
        codes, scale = model["x.weight"], model["x.SCB"]
        assert codes.scheme == scale.scheme == "bitsandbytes int8" and codes.is_codes and not scale.is_codes
        assert model["norm.weight"].scheme is None and model.schemes == ["bitsandbytes int8"]
        assert codes.numpy().tolist() == codes.numpy(copy=True).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert model.numpy(copy=True)["x.weight"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert scale.numpy("f64").tolist() == [0.5, 0.25]


@pytest.fixture
def opaque(tmp_path):
    """A single-file FP8 checkpoint, whose scales are not decoded."""
    return shard(tmp_path / "opaque.safetensors", {
        "x.weight": ("F8_E4M3", [2, 4], bytes(range(8))), "x.scale_weight": ("F32", [1], struct.pack("<f", 0.5)),
        "norm.weight": ("F32", [2], struct.pack("<2f", 1, 2))})


def fp8(path):
    return shard(path, {"x.weight": ("F8_E4M3", [2, 2], b"\x38\x40\xb8\x48"), "x.weight_scale": ("BF16", [2, 1], struct.pack("<2H", 0x3f00, 0x4040)),
                        "y": ("F32", [1], struct.pack("<f", 7))})


def test_the_numbers_of_codes(tmp_path):
    with wb.open(fp8(tmp_path / "f8.safetensors")) as model:
        numbers = [[0.5, 1.0], [-3.0, 12.0]]
        assert model["x.weight"].numpy("f32").tolist() == numbers
        assert np.asarray(model["x.weight"], dtype="float32").tolist() == numbers
        logical = model.logical()
        assert list(logical) == ["x.weight", "y"] and logical["x.weight"].dtype == "bf16" and logical["x.weight"].scheme is None
        assert logical["x.weight"].numpy("f32").tolist() == numbers and logical["x.weight"].stats().max == 12
        assert logical["x.weight"].stored == wb.StoredWeight("fp8", "fp8 per row", ["x.weight", "x.weight_scale"], 8)
        assert logical["y"].stored is None and model["x.weight"].stored is None
        assert model.logical("f32")["x.weight"].dtype == "f32"
        wb.convert(model, tmp_path / "dense.safetensors", dequantize="auto")
        assert wb.open(tmp_path / "dense.safetensors")["x.weight"].dtype == "bf16"
        assert wb.diff(model, wb.open(tmp_path / "dense.safetensors")).equal


def test_what_a_file_leaves_open_is_said_when_it_is_opened(tmp_path):
    path = shard(tmp_path / "f8.safetensors", {"x.weight": ("F8_E4M3", [2, 2], b"\x38\x40\xb8\x48"), "x.weight_scale_inv": ("F32", [2, 1], struct.pack("<2f", 0.5, 3))})
    with pytest.raises(wb.UnsupportedError, match="states the size of its blocks"):
        wb.open(path)["x.weight"].numpy("f32")
    assert wb.open(path, scheme="fp8:block=1x2")["x.weight"].numpy("f32").tolist() == [[0.5, 1.0], [-3.0, 12.0]]
    for wrong in "fp8:block=2", "fp9", "gptq:zeros=v3":
        with pytest.raises(wb.UsageError):
            wb.open(path, scheme=wrong)
    with pytest.raises(wb.UsageError, match="no tensor of the model"):
        wb.open(path, scheme="awq").logical()


def test_codes_are_not_cast(opaque, quantized):
    with wb.open(opaque) as model:
        for read in (lambda: model["x.weight"].numpy("f32"), lambda: np.asarray(model["x.weight"], dtype="float32")):
            with pytest.raises(wb.UnsupportedError, match="FP8 with scales"):
                read()
    with wb.open(quantized) as model, pytest.raises(wb.UnsupportedError, match="bitsandbytes int8"):
        model.view(rename={"x.SCB": "y"})["x.weight"].numpy("f32")


def test_no_error_suggests_a_cast_of_codes(tmp_path, monkeypatch):
    import sys

    path = shard(tmp_path / "f8.safetensors", {"x.weight": ("F8_E4M3", [2, 2], bytes(4)), "x.weight_scale": ("F32", [], bytes(4)), "y": ("F8_E4M3", [1], b"@")})
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with wb.open(path) as model:
        with pytest.raises(ImportError, match="install ml_dtypes$"):
            model["x.weight"].numpy()
        with pytest.raises(ImportError, match="install ml_dtypes$"):
            model["y"].numpy()  # its scale may be in another file
    with wb.open(shard(tmp_path / "plain.safetensors", {"y": ("F8_E4M3", [1], b"@")})) as model:
        with pytest.raises(ImportError, match=r"Tensor.numpy\('f32'\) casts it"):
            model["y"].numpy()
        assert model["y"].numpy("f32").tolist() == [2.0]


@pytest.mark.parametrize("options", [{"cast": "f16"}, {"dequantize": "f32"}, {"sparse": "coo"}])
def test_codes_are_not_converted(opaque, tmp_path, options):
    with pytest.raises(wb.Error, match="FP8 with scales"):
        wb.convert(opaque, tmp_path / "o.zt", **options)
    assert not (tmp_path / "o.zt").exists()


def test_codes_are_compared_by_their_bytes(opaque, tmp_path):
    other = shard(tmp_path / "b.safetensors", {
        "x.weight": ("F8_E4M3", [2, 4], bytes(8)), "x.scale_weight": ("F32", [1], struct.pack("<f", 0.5)),
        "norm.weight": ("F32", [2], struct.pack("<2f", 1, 2))})
    found = wb.diff(opaque, other)
    assert found.codes == 1 and found.schemes == ["FP8 with scales"]
    assert [(t.scheme, t.values, t.changes) for t in found.tensors] == [("FP8 with scales", None, ["changed"])]
    assert wb.diff(other, other).equal and wb.diff(opaque, opaque).codes == 1
    assert wb.diff(tmp_path / "b.safetensors", wb.open(other).view(only="norm.weight")).codes == 0


@pytest.mark.parametrize("run", ["Embedder", "Generator"])
def test_a_quantized_model_does_not_run(tmp_path, run):
    folder = tmp_path / run
    folder.mkdir()
    ones = struct.pack("<16f", *[1] * 16)
    words = "embeddings.word_embeddings.weight" if run == "Embedder" else "model.embed_tokens.weight"
    shard(folder / "model.safetensors", {"x.weight": ("F8_E4M3", [4, 4], bytes(16)), "x.scale_weight": ("F32", [], ones[:4]), words: ("F32", [4, 4], ones)})
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert" if run == "Embedder" else "llama", "hidden_size": 4, "vocab_size": 4, "num_attention_heads": 1, "num_hidden_layers": 1,
        "intermediate_size": 4, "max_position_embeddings": 8, "layer_norm_eps": 1e-12, "type_vocab_size": 2, "rms_norm_eps": 1e-6}))
    with pytest.raises(wb.UnsupportedError, match="FP8 with scales"):
        getattr(wb, run)(folder)
