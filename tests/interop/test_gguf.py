# SPDX-License-Identifier: Apache-2.0
"""GGUF against the package gguf 0.19 and, where llama-cpp-python brings it, llama.cpp's own reader: files that the package writes read
here, files written here read there, quantization gives the same bytes, and splits are those that llama.cpp opens."""
import importlib.util
import json
import pathlib
import random
import struct
import subprocess

import pytest

from interop_tools import COMMAND, ROOT, content_digest, expect_equal, inspected, np, random_model, weighbridge

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
safetensors_numpy = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment")

SCALARS = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
QUANTIZATIONS = ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "mxfp4", "tq1_0", "tq2_0"]
NUMBERS = {"uint8": 200, "int8": -100, "uint16": 60000, "int16": -30000, "uint32": 4_000_000_000, "int32": -2_000_000_000,
           "uint64": 2**64 - 1, "int64": -2**63, "float32": 0.5, "float64": 0.1}


def metadata_of(path):
    return json.loads(weighbridge("inspect", "--json", path))["files"][0]["attributes"]


def write_with_package(path, tensors, endian="little", metadata=(), **options):
    writer = gguf.GGUFWriter(path, "llama", endianess=gguf.GGUFEndian.BIG if endian == "big" else gguf.GGUFEndian.LITTLE, **options)
    for kind, key, value in metadata:
        getattr(writer, f"add_{kind}")(key, value)
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_with_package(path):
    return {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}


def matrix(seed, rows=8, columns=512):
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, columns)) * rng.choice([1e-6, 1, 1e4], (rows, 1))).astype(np.float32)


@pytest.mark.parametrize("endian", ["little", "big"])
def test_tensors_and_metadata_of_the_package_read_here(tmp_path, endian):
    rng = np.random.default_rng(1)
    tensors = {name: rng.integers(-50, 50, (3, 1, 5)).astype(kind) for name, kind in SCALARS.items()}
    tensors |= {"vector": np.arange(7, dtype=np.float32), "four": np.zeros((2, 3, 4, 5), np.float16)}
    path = tmp_path / "a.gguf"
    metadata = [(kind, f"n.{kind}", value) for kind, value in NUMBERS.items()]
    metadata += [("bool", "b", True), ("string", "s", "é\n"), ("array", "texts", ["a", "", "ü"]), ("array", "ints", [1, -2, 3]),
                 ("array", "floats", [0.5, -1.5])]
    write_with_package(path, tensors, endian, metadata)
    weighbridge("verify", path)
    expect_equal(path, tensors)
    said = metadata_of(path)
    assert said["general.architecture"] == "llama" and said["b"] is True and said["s"] == "é\n"
    assert said["texts"] == ["a", "", "ü"] and said["ints"] == [1, -2, 3] and said["floats"] == [0.5, -1.5]
    for kind, value in NUMBERS.items():
        assert said[f"n.{kind}"] == value, kind


@pytest.mark.parametrize("alignment", [8, 32, 64, 4096])
def test_alignments_of_the_package_read_here_and_stay(tmp_path, alignment):
    path, out = tmp_path / "a.gguf", tmp_path / "b.gguf"
    tensors = {"a": np.arange(7, dtype=np.float32), "b": np.arange(5, dtype=np.int8)}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_custom_alignment(alignment)
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    expect_equal(path, tensors)
    weighbridge("convert", path, out)
    assert path.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("seed", range(6))
def test_a_file_of_the_package_is_written_back_byte_for_byte(tmp_path, seed):
    tensors = random_model(seed, list(SCALARS), tensors=12)
    tensors = {name: array for name, array in tensors.items() if array.ndim and array.ndim <= 4 and array.size}
    path, out = tmp_path / "a.gguf", tmp_path / "b.gguf"
    write_with_package(path, tensors, metadata=[("string", "general.name", "x"), ("uint32", "llama.block_count", 3),
                                                ("array", "tokenizer.ggml.tokens", ["a", "b"] * 50)])
    weighbridge("convert", path, out)
    assert path.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("seed", range(6))
def test_the_package_reads_what_is_written_here(tmp_path, seed):
    model = random_model(seed, list(SCALARS), tensors=12)
    model = {name: array for name, array in model.items() if array.ndim <= 4}
    path, out = tmp_path / "a.safetensors", tmp_path / "a.gguf"
    safetensors_numpy.save_file(model, path, {"k": "v"})
    weighbridge("convert", path, out)
    reader = gguf.GGUFReader(out)
    assert reader.fields["k"].contents() == "v"
    read = {tensor.name: tensor for tensor in reader.tensors}
    assert read.keys() == model.keys()
    for name, array in model.items():
        assert read[name].data.tobytes() == array.tobytes(), name
        assert [int(size) for size in reversed(read[name].shape)] == list(array.shape), name
    assert content_digest(path) == content_digest(out)


@pytest.mark.parametrize("word", QUANTIZATIONS)
def test_quantization_gives_the_bytes_of_the_package(tmp_path, word):
    model = {"a.weight": matrix(1), "b.weight": matrix(2).astype(np.float16), "norm": np.arange(8, dtype=np.float16),
             "odd": matrix(3, 4, 40)[:, :33].copy(), "ids": np.arange(6, dtype=np.int32).reshape(2, 3)}
    path, out = tmp_path / "a.safetensors", tmp_path / "a.gguf"
    safetensors_numpy.save_file(model, path)
    weighbridge("convert", path, out, "--quantize", word)
    kind = gguf.GGMLQuantizationType[word.upper()]
    read = read_with_package(out)
    for name in ("a.weight", "b.weight"):
        assert read[name].tensor_type == kind
        assert read[name].data.tobytes() == gguf.quants.quantize(model[name].astype(np.float32), kind).tobytes(), name
    assert read["norm"].tensor_type == gguf.GGMLQuantizationType.F32
    assert read["odd"].tensor_type == gguf.GGMLQuantizationType.F32
    assert read["ids"].tensor_type == gguf.GGMLQuantizationType.I32
    # And back: the blocks as they are in a .zt, or dense.
    kept, again, dense = tmp_path / "a.zt", tmp_path / "b.gguf", tmp_path / "b.safetensors"
    weighbridge("convert", out, kept)
    weighbridge("convert", kept, again)
    assert content_digest(out) == content_digest(kept) == content_digest(again)
    weighbridge("convert", out, dense, "--allow", "layout")
    back = safetensors_numpy.load_file(dense)
    assert back["a.weight"].tobytes() == gguf.quants.dequantize(read["a.weight"].data, kind).tobytes()


@pytest.mark.parametrize("word", ["f16", "bf16"])
def test_smaller_dtypes_are_for_matrices_and_vectors_are_f32(tmp_path, word):
    model = {"a.weight": matrix(1), "norm": np.arange(8, dtype=np.float16)}
    path, out = tmp_path / "a.safetensors", tmp_path / "a.gguf"
    safetensors_numpy.save_file(model, path)
    weighbridge("convert", path, out, "--quantize", word)
    read = read_with_package(out)
    kind = gguf.GGMLQuantizationType[word.upper()]
    assert read["a.weight"].tensor_type == kind and read["norm"].tensor_type == gguf.GGMLQuantizationType.F32
    assert read["a.weight"].data.tobytes() == gguf.quants.quantize(model["a.weight"], kind).tobytes()


def test_values_that_are_not_finite_are_not_quantized(tmp_path):
    path, out = tmp_path / "a.safetensors", tmp_path / "a.gguf"
    safetensors_numpy.save_file({"a": np.full((2, 32), np.inf, np.float32)}, path)
    weighbridge("convert", path, out, "--quantize", "q8_0", status=1)
    assert not out.exists()


@pytest.mark.parametrize("name", ["gguf_split", "package"])
def test_splits_of_the_package_open_by_their_first_file(tmp_path, name):
    rng = np.random.default_rng(5)
    tensors = {f"t{i}": rng.standard_normal((4, 25)).astype(np.float32) for i in range(10)}
    options = {"split_max_tensors": 3, "small_first_shard": name == "package"}
    write_with_package(tmp_path / "m.gguf", tensors, metadata=[("string", "general.name", "split")], **options)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert len(files) >= 4 and files[0].endswith(f"-00001-of-{len(files):05}.gguf")
    expect_equal(tmp_path / files[0], tensors)
    expect_equal(tmp_path, tensors)
    weighbridge("verify", tmp_path)
    said = metadata_of(tmp_path / files[0])
    assert said["general.name"] == "split" and not any(key.startswith("split.") for key in said)
    whole = tmp_path / "out" / "whole.gguf"
    whole.parent.mkdir()
    weighbridge("convert", tmp_path / files[0], whole)
    expect_equal(whole, tensors)
    assert read_with_package(whole).keys() == tensors.keys()


def llama():
    """llama.cpp's library, or nothing."""
    if importlib.util.find_spec("llama_cpp") is None:
        return None
    import llama_cpp
    return llama_cpp


# A model of the smallest sizes that llama.cpp opens, whose vocabulary is bytes.
def tiny_llama(path, seed=0):
    rng = np.random.default_rng(seed)
    hidden, ffn, vocabulary = 64, 96, 259
    tensors = {"token_embd.weight": (vocabulary, hidden), "output_norm.weight": (hidden,), "output.weight": (vocabulary, hidden)}
    for layer in range(2):
        at = f"blk.{layer}."
        tensors |= {at + "attn_norm.weight": (hidden,), at + "ffn_norm.weight": (hidden,), at + "attn_q.weight": (hidden, hidden),
                    at + "attn_k.weight": (hidden // 2, hidden), at + "attn_v.weight": (hidden // 2, hidden),
                    at + "attn_output.weight": (hidden, hidden), at + "ffn_gate.weight": (ffn, hidden),
                    at + "ffn_up.weight": (ffn, hidden), at + "ffn_down.weight": (hidden, ffn)}
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    write_with_package(path, {name: rng.standard_normal(shape).astype(np.float32) / 8 for name, shape in tensors.items()}, metadata=[
        ("uint32", "llama.block_count", 2), ("uint32", "llama.context_length", 64), ("uint32", "llama.embedding_length", hidden),
        ("uint32", "llama.feed_forward_length", ffn), ("uint32", "llama.attention.head_count", 4),
        ("uint32", "llama.attention.head_count_kv", 2), ("float32", "llama.attention.layer_norm_rms_epsilon", 1e-5),
        ("uint32", "llama.rope.dimension_count", hidden // 4), ("string", "tokenizer.ggml.model", "llama"),
        ("array", "tokenizer.ggml.tokens", tokens), ("array", "tokenizer.ggml.scores", [0.0] * vocabulary),
        ("array", "tokenizer.ggml.token_type", [2, 3, 3] + [6] * 256), ("uint32", "tokenizer.ggml.bos_token_id", 1),
        ("uint32", "tokenizer.ggml.eos_token_id", 2)])


def greedy(model, count=20):
    """Ids that llama.cpp continues with."""
    llama_cpp = llama()
    runner = llama_cpp.Llama(str(model), n_ctx=64, n_threads=1, verbose=False, seed=1)
    ids = [1, 70, 80, 90]
    out = []
    for token in runner.generate(ids, temp=0.0, top_k=1):
        out.append(int(token))
        if len(out) == count:
            break
    return out


@pytest.mark.skipif(llama() is None, reason="llama-cpp-python is missing: make interop PEER=llama installs it")
@pytest.mark.parametrize("how", [[], ["--max-shard-size", "20000"], ["--quantize", "f16"], ["--quantize", "q8_0"]], ids=" ".join)
def test_llama_cpp_runs_what_is_written_here(tmp_path, how):
    source, dense = tmp_path / "in.gguf", tmp_path / "in.zt"
    tiny_llama(source)
    weighbridge("convert", source, dense)
    if "--max-shard-size" in how:
        weighbridge("convert", dense, f"{tmp_path}/out/", "--to", "gguf", *how)
        files = sorted((tmp_path / "out").iterdir())
        assert len(files) > 3
        out = files[0]
    else:
        out = tmp_path / "out.gguf"
        weighbridge("convert", dense, out, *how)
    if how and "--quantize" in how:
        assert len(greedy(out)) == 20
    else:
        assert greedy(out) == greedy(source)


# ---------------------------------------------------------------------------------------------------------------- real files

def vocabularies():
    """Those that tools/fetch-vocabularies.sh fetched."""
    return sorted((ROOT / "build/demo/gguf").glob("ggml-vocab-*.gguf"))


@pytest.mark.skipif(not vocabularies(), reason="build/demo/gguf is missing: tools/fetch-vocabularies.sh fetches it")
def test_real_vocabularies_are_sound_and_written_back_as_they_are(tmp_path):
    for path in vocabularies():
        weighbridge("verify", path)
        weighbridge("convert", path, tmp_path / "out.gguf", "-f")
        # Version 2 differs from 3 in its number alone.
        assert (tmp_path / "out.gguf").read_bytes() == b"GGUF\3\0\0\0" + path.read_bytes()[8:], path.name
