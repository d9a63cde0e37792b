# SPDX-License-Identifier: Apache-2.0
# Tests conversions of Llama models into .slm: llama2.c checkpoints, their tokenizer files, and folders.
import importlib.util
import json
import shutil

import pytest

from conftest import ROOT, floats, safetensors, tensors_of, validated, weighbridge

np = pytest.importorskip("numpy")

spec = importlib.util.spec_from_file_location("witness_llama2c", ROOT / "tests/support/llama2c.py")
llama2c = importlib.util.module_from_spec(spec)
spec.loader.exec_module(llama2c)

CONFIG = {"dim": 8, "hidden_dim": 6, "n_layers": 2, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 262, "seq_len": 16}


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "small.bin"
    path.write_bytes(llama2c.write(CONFIG, llama2c.random_blocks(CONFIG)))
    return path


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tok262.bin"
    path.write_bytes(llama2c.write_tokenizer(llama2c.byte_pieces() + [(-1.0, b"ab"), (-2.0, b"a"), (-3.0, b"b")]))
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "llama"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(llama2c.hugging_face_config(CONFIG)))
    tensors = llama2c.hugging_face_tensors(CONFIG, llama2c.random_blocks(CONFIG))
    (path / "model.safetensors").write_bytes(safetensors(
        {name: ("F32", list(array.shape), np.ascontiguousarray(array, "<f4").tobytes()) for name, array in tensors.items()}))
    vocabulary = {raw.decode().strip(): i for i, (_, raw) in enumerate(llama2c.byte_pieces())} | {"ab": 259, "a": 260, "b": 261}
    (path / "tokenizer.json").write_text(json.dumps({
        "added_tokens": [{"id": i, "content": text, "special": True} for i, text in enumerate(["<unk>", "<s>", "</s>"])],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "\u2581"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
        "pre_tokenizer": None,
        "model": {"type": "BPE", "byte_fallback": True, "unk_token": "<unk>", "vocab": vocabulary, "merges": ["a b"]}}))
    return path


WIDE = {"dim": 64, "hidden_dim": 64, "n_layers": 1, "n_heads": 4, "n_kv_heads": 2, "vocab_size": 64, "seq_len": 16}


@pytest.fixture
def wide(tmp_path):
    """A folder whose rows divide into blocks, in f16, which its config.json says as transformers 5 does."""
    path = tmp_path / "wide"
    path.mkdir()
    config = llama2c.hugging_face_config(WIDE)
    config.pop("torch_dtype", None)
    (path / "config.json").write_text(json.dumps(config | {"architectures": ["LlamaForCausalLM"], "dtype": "float16"}))
    tensors = llama2c.hugging_face_tensors(WIDE, llama2c.random_blocks(WIDE))
    (path / "model.safetensors").write_bytes(safetensors(
        {name: ("F16", list(array.shape), np.ascontiguousarray(array, "<f2").tobytes()) for name, array in tensors.items()}))
    return path


def config_and_matrices(folder):
    dtypes = {dtype for dtype, shape, _ in tensors_of(folder / "model.safetensors").values() if len(shape) == 2}
    config = json.loads((folder / "config.json").read_text())
    return {key: config[key] for key in ("dtype", "torch_dtype") if key in config}, dtypes


@pytest.mark.parametrize("flags, stated, dtypes", [
    (["--dequantize", "bf16"], "bfloat16", {"bf16"}), (["--dequantize", "f16"], "float16", {"f16"}),
    (["--dequantize", "f32"], "float32", {"f32"}), (["--dequantize", "f32", "--cast", "bf16"], "float32", {"f32"}),
    (["--dequantize", "bf16", "--cast", "bf16"], "bfloat16", {"bf16"})])
def test_a_folder_from_blocks_has_the_dtype_asked_for_in_every_matrix_and_in_config_json(wide, tmp_path, flags, stated, dtypes):
    """The matrices whose rows change their order (q and k) stayed f32, and config.json said two dtypes."""
    weighbridge("convert", wide, tmp_path / "q.gguf", "--quantize", "q8_0")
    weighbridge("convert", tmp_path / "q.gguf", f"{tmp_path}/back/", *flags)
    assert config_and_matrices(tmp_path / "back") == ({"dtype": stated}, dtypes)


def test_a_quantized_gguf_keeps_what_config_json_said_of_the_dtype(wide, tmp_path):
    """It became the dtype of the few tensors that are not quantized, the norms."""
    said = weighbridge("convert", wide, tmp_path / "q.gguf", "--quantize", "q8_0").stdout
    assert "hf.dtype" not in said
    told = json.loads(weighbridge("inspect", tmp_path / "q.gguf", "--json").stdout)["files"][0]
    assert told["attributes"]["hf.dtype"] == "float16"
    # A cast states the new one.
    weighbridge("convert", wide, tmp_path / "bf16.gguf", "--cast", "bf16")
    assert json.loads(weighbridge("inspect", tmp_path / "bf16.gguf", "--json").stdout)["files"][0]["attributes"]["hf.dtype"] == "bfloat16"


def test_typed_metadata_of_a_gguf_reads_back_from_a_folder(wide, tmp_path):
    """It was compared with its text, so that --allow attribute-type led to an error of the read-back, with status 4."""
    weighbridge("convert", wide, tmp_path / "a.gguf")
    weighbridge("edit", tmp_path / "a.gguf", "--set", "own.number:u32=5", "-o", tmp_path / "b.gguf")
    assert "attribute-type" in weighbridge("convert", tmp_path / "b.gguf", f"{tmp_path}/back/", status=1).stderr
    weighbridge("convert", tmp_path / "b.gguf", f"{tmp_path}/back/", "--allow", "attribute-type")


def test_a_gguf_whose_names_no_folder_has_is_refused_by_the_plan(wide, tmp_path):
    weighbridge("convert", wide, tmp_path / "a.gguf")
    for flags, why in ((["--set", "general.architecture=bert"], "only decoders"), (["--only", "blk.*"], "token_embd.weight"),
                       (["--set", 'hf.architectures=["MistralForCausalLM"]', "--set", "general.architecture=qwen2"], "another architecture")):
        for more in ([], ["--allow", "attribute-type,attribute,part"]):
            done = weighbridge("convert", tmp_path / "a.gguf", f"{tmp_path}/back/", *flags, *more, status=3)
            assert 'attributes["general.architecture"]' in done.stderr and why in done.stdout and not (tmp_path / "back").exists()


def test_without_a_tokenizer_it_names_the_flag(tmp_path, checkpoint):
    done = weighbridge("convert", checkpoint, tmp_path / "out.slm", status=1)
    assert "--tokenizer" in done.stderr and "tokenizer" in done.stderr and not (tmp_path / "out.slm").exists()
    told = validated(weighbridge("convert", "--json", checkpoint, tmp_path / "out.slm", status=1).stdout, "convert")
    assert [item["subject"] for item in told["blockers"]] == ["tokenizer"]
    weighbridge("convert", "--allow", "tokenizer", checkpoint, tmp_path / "out.slm", status=1)


def test_with_one_it_is_written(tmp_path, checkpoint, tokens):
    told = validated(weighbridge("convert", "--json", checkpoint, tmp_path / "out.slm", "--tokenizer", tokens).stdout, "convert")
    assert told["written"] and told["losses"] == []
    assert {item["subject"] for item in told["changes"]} == {
        'attributes["slm.kv_head_count"]', 'tensors["freq_cis_real"]', 'tensors["freq_cis_imag"]'}
    shown = validated(weighbridge("inspect", "--json", tmp_path / "out.slm").stdout, "inspect")["files"][0]
    assert shown["attributes"]["slm.head_count"] == 4 and len(shown["tensors"]) == 20


def test_the_file_beside_it_is_found(tmp_path, checkpoint, tokens):
    shutil.copy(tokens, tmp_path / "small.tokenizer")
    weighbridge("convert", checkpoint, tmp_path / "out.slm")
    (tmp_path / "small.tokenizer").write_bytes(tokens.read_bytes()[:-1])
    done = weighbridge("verify", checkpoint, status=1)
    assert "llama2c/tokenizer-short" in done.stdout


@pytest.mark.parametrize("change,rule", [
    (lambda data: data[:-1], "tokenizer-short"), (lambda data: data + b"x", "tokenizer-trailing"),
    (lambda data: data[:4] + floats(float("nan")) + data[8:], "token-score"),
    (lambda data: bytes(4) + data[4:], "token-length"), (lambda data: data.replace(b"<0x41>", b"<0x4a>"), "tokenizer-bytes")])
def test_a_tokenizer_that_does_not_fit(tmp_path, checkpoint, tokens, change, rule):
    tokens.write_bytes(change(tokens.read_bytes()))
    done = weighbridge("convert", checkpoint, tmp_path / "out.slm", "--tokenizer", tokens, status=1)
    assert f"llama2c/{rule}" in done.stderr and not (tmp_path / "out.slm").exists()


def test_the_flag_is_for_containers_without_a_tokenizer(tmp_path, checkpoint, tokens, folder, sample):
    weighbridge("convert", checkpoint, tmp_path / "out.slm", "--tokenizer", tokens)
    for source in (tmp_path / "out.slm", folder):
        done = weighbridge("convert", source, tmp_path / "other.zt", "--tokenizer", tokens, status=2)
        assert "tokenizer" in done.stderr, source
    # A safetensors has none, and takes a WordPiece vocabulary, which these bytes are not.
    done = weighbridge("convert", sample, tmp_path / "other.zt", "--tokenizer", tokens, status=1)
    assert "tokenizer/utf8" in done.stderr
    weighbridge("convert", checkpoint, tmp_path / "no.slm", "--tokenizer", tmp_path / "absent", status=4)
    # The tokenizer file is an input too.
    before = tokens.read_bytes()
    weighbridge("convert", checkpoint, tokens, "--to", "slm", "--force", "--tokenizer", tokens, status=2)
    assert tokens.read_bytes() == before


def test_no_checkpoint_is_written(tmp_path, sample):
    assert "does not show the output format" in weighbridge("convert", sample, tmp_path / "out.bin", status=2).stderr
    weighbridge("convert", sample, tmp_path / "out", "--to", "llama2c", status=2)
    listed = {each["name"]: each for each in json.loads(weighbridge("formats", "--json").stdout)["formats"]}
    assert listed["llama2c"]["reads"] and not listed["llama2c"]["writes"]


@pytest.mark.parametrize("change,rule", [
    (lambda data: data[:-4], "length"), (lambda data: data + bytes(4), "length"), (lambda data: data[:20], "too-short"),
    (lambda data: b"24ka\x01\0\0\0" + data[8:], "version"), (lambda data: data[:12] + b"\x08\0\0\0" + data[16:], "heads"),
    (lambda data: data[:-4] + floats(float("inf")), "not-finite")])
def test_broken_checkpoints(checkpoint, change, rule):
    checkpoint.write_bytes(change(checkpoint.read_bytes()))
    told = validated(weighbridge("verify", "--json", checkpoint, status=1).stdout, "verify")["files"][0]
    assert told["format"] == "llama2c" and [f["rule"] for f in told["findings"]] == ["llama2c/" + rule]


def test_detection_does_not_need_the_extension(tmp_path, checkpoint):
    other = checkpoint.rename(tmp_path / "model.dat")
    assert json.loads(weighbridge("inspect", "--json", other).stdout)["files"][0]["format"] == "llama2c"
    other.write_bytes(other.read_bytes()[:-1])
    assert "llama2c" not in weighbridge("verify", other, status=1).stdout


def test_a_folder_becomes_an_slm(tmp_path, folder):
    told = validated(weighbridge("convert", "--json", folder, tmp_path / "out.slm", "--quantize", "q8_0").stdout, "convert")
    assert told["written"] and {loss["kind"] for loss in told["losses"]} == {"precision", "file"}
    weighbridge("verify", "--quiet", tmp_path / "out.slm")
    # The folder itself keeps its names and its order of rows.
    shown = json.loads(weighbridge("inspect", "--json", folder).stdout)["files"][0]
    assert "model.layers.1.self_attn.k_proj.weight" in {tensor["name"] for tensor in shown["tensors"]}


def test_a_file_of_weights_that_is_named_like_a_pickle_says_so(tmp_path, folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    done = weighbridge("convert", folder, tmp_path / "out.slm", status=1)
    assert "pytorch_model.bin" in done.stderr and "hf/weights-format" in done.stderr


def test_a_tokenizer_that_splits_texts_is_a_loss(tmp_path, folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "\\s+"}, "behavior": "Isolated", "invert": False}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    done = weighbridge("convert", folder, tmp_path / "out.slm", status=1)
    assert "--allow tokenizer" in done.stderr and "regular expression" in done.stdout
    weighbridge("convert", folder, tmp_path / "out.slm", "--allow", "tokenizer")
    weighbridge("verify", "--quiet", tmp_path / "out.slm")
