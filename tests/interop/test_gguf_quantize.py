# SPDX-License-Identifier: Apache-2.0
"""Quantized files beside llama_model_quantize of llama.cpp: the same bytes, header and all, and verify --derived-from says of its files
what they were made from. tests/cli/test_derivation.py has the files that were tampered with."""
import ctypes
import importlib.util
import itertools
import json

import pytest

from ggml_library import contracted, quantizer   # noqa: F401: a fixture
from interop_tools import np, weighbridge

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")
pytestmark = pytest.mark.skipif(importlib.util.find_spec("llama_cpp") is None,
                                reason="llama-cpp-python is missing: make interop PEER=llama installs it")
TYPES = {"f16": 1, "q4_0": 2, "q4_1": 3, "q8_0": 7, "q5_0": 8, "q5_1": 9, "q2_k": 10, "q3_k_s": 11, "q3_k_m": 12, "q3_k_l": 13,
         "q4_k_s": 14, "q4_k_m": 15, "q5_k_s": 16, "q5_k_m": 17, "q6_k": 18, "iq2_xxs": 19, "iq2_xs": 20, "q2_k_s": 21, "iq3_xs": 22,
         "iq3_xxs": 23, "iq4_nl": 25, "iq3_s": 26, "iq3_m": 27, "iq2_s": 28, "iq2_m": 29, "iq4_xs": 30, "bf16": 32, "tq1_0": 36,
         "tq2_0": 37}
NEEDS_MATRIX = {"iq2_xxs", "iq2_xs", "q2_k_s", "iq3_xs", "iq3_xxs", "iq2_s", "iq2_m"}
HIDDEN, FFN = 512, 768


def write_model(path, *, kind="bf16", seed=0, hidden=HIDDEN, zeros=False):
    rng = np.random.default_rng(seed)
    out = gguf.GGUFWriter(path, "llama")
    for add, value in ((out.add_block_count, 2), (out.add_context_length, 64), (out.add_embedding_length, hidden), (out.add_feed_forward_length, FFN),
                       (out.add_head_count, 8), (out.add_head_count_kv, 2), (out.add_layer_norm_rms_eps, 1e-5), (out.add_vocab_size, 32),
                       (out.add_file_type, 32 if kind == "bf16" else 0)):
        add(value)
    out.add_tokenizer_model("none")
    shapes = {"token_embd": (32, hidden), "output_norm": (hidden,), "output": (32, hidden)}
    for layer in range(2):
        for name, shape in {"attn_norm": (hidden,), "ffn_norm": (hidden,), "attn_q": (hidden, hidden), "attn_k": (hidden // 4, hidden),
                            "attn_v": (hidden // 4, hidden), "attn_output": (hidden, hidden), "ffn_gate": (FFN, hidden),
                            "ffn_up": (FFN, hidden), "ffn_down": (hidden, FFN)}.items():
            shapes[f"blk.{layer}.{name}"] = shape
    for name, shape in shapes.items():
        values = (rng.standard_normal(shape) * 0.02).astype(np.float32)
        if zeros and len(shape) > 1:
            values[:, 32:64] = 0
        if kind == "f32" or len(shape) == 1:
            out.add_tensor(name + ".weight", values)
        else:
            halves = (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(shape[0], 2 * shape[1])
            out.add_tensor(name + ".weight", halves, raw_dtype=gguf.GGMLQuantizationType.BF16)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return shapes


def write_matrix(path, shapes):
    rng = np.random.default_rng(7)
    out = gguf.GGUFWriter(path, "imatrix")
    out.add_type("imatrix")
    out.add_uint32("imatrix.chunk_count", 4)
    out.add_uint32("imatrix.chunk_size", 512)
    out.add_array("imatrix.datasets", ["a text"])
    weights = {}
    for name, shape in shapes.items():
        if len(shape) == 2:
            weights[name + ".weight"] = np.exp(rng.standard_normal(shape[1])).astype(np.float32)
            out.add_tensor(name + ".weight.in_sum2", weights[name + ".weight"].reshape(1, -1))
            out.add_tensor(name + ".weight.counts", np.ones((1, 1), np.float32))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return weights


def by_llama_cpp(source, out, kind, *, matrix=None, pure=False):
    import llama_cpp
    asked = llama_cpp.llama_model_quantize_default_params()
    asked.ftype, asked.nthread, asked.pure = TYPES[kind], 2, pure
    kept = []
    if matrix:
        entries = (llama_cpp.llama_cpp.llama_model_imatrix_data * (len(matrix) + 1))()
        for entry, (name, values) in zip(entries, matrix.items()):
            kept.append(values)
            entry.name, entry.data, entry.size = name.encode(), values.ctypes.data_as(ctypes.POINTER(ctypes.c_float)), len(values)
        asked.imatrix = entries
    assert llama_cpp.llama_model_quantize(str(source).encode(), str(out).encode(), ctypes.byref(asked)) == 0, kind


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    shapes = [write_model(folder / f"{kind}.gguf", kind=kind) for kind in ("bf16", "f32")][0]
    write_model(folder / "odd.gguf", hidden=480)     # rows that do not divide into blocks of 256
    write_model(folder / "zeros.gguf", zeros=True)
    write_model(folder / "other.gguf", seed=1)
    matrix = write_matrix(folder / "matrix.gguf", shapes)
    return folder, matrix


def verdict(path, source, *flags, status=0):
    return json.loads(weighbridge("verify", path, "--derived-from", source, "--json", *flags, status=status))["files"][0]


@pytest.mark.parametrize("kind", TYPES)
def test_files_are_those_of_llama_cpp(models, tmp_path, kind):
    folder, matrix = models
    for name, (how, flags) in itertools.product(("bf16", "f32", "odd"), {"plain": [], "pure": ["--pure"], "matrix": ["--imatrix", folder / "matrix.gguf"]}.items()):
        if (kind in NEEDS_MATRIX and how != "matrix") or (how == "matrix" and name == "odd"):
            continue
        theirs, ours = tmp_path / "theirs.gguf", tmp_path / "ours.gguf"
        by_llama_cpp(folder / f"{name}.gguf", theirs, kind, matrix=matrix if how == "matrix" else None, pure=how == "pure")
        weighbridge("convert", folder / f"{name}.gguf", ours, "--quantize", kind, "--overwrite", *flags)
        if how == "matrix":      # ours also says which matrix
            a, b = gguf.GGUFReader(theirs), gguf.GGUFReader(ours)
            assert [(each.name, each.tensor_type, bytes(each.data)) for each in a.tensors] == [(each.name, each.tensor_type, bytes(each.data)) for each in b.tensors], name
        else:
            assert theirs.read_bytes() == ours.read_bytes(), (name, how)
        found = verdict(theirs, folder / f"{name}.gguf", *(flags if how == "matrix" else []))
        assert found["verdict"] == "equal" and found["header"] == (how != "matrix"), (name, how)


def test_a_file_of_another_base_is_not_from_this_source(models, tmp_path):
    folder, _ = models
    by_llama_cpp(folder / "other.gguf", tmp_path / "out.gguf", "q4_k_m")
    found = verdict(tmp_path / "out.gguf", folder / "bf16.gguf", status=1)
    assert found["verdict"] == "not from this source" and found["unlike"] == found["tensors"]


def test_empty_groups_of_iq3_s_are_known_as_ggml_writes_them(models, tmp_path):
    folder, _ = models
    by_llama_cpp(folder / "zeros.gguf", tmp_path / "theirs.gguf", "iq3_s")
    weighbridge("convert", folder / "zeros.gguf", tmp_path / "ours.gguf", "--quantize", "iq3_s")
    weighbridge("convert", folder / "zeros.gguf", tmp_path / "as.gguf", "--quantize", "iq3_s", "--as-ggml")
    assert (tmp_path / "theirs.gguf").read_bytes() == (tmp_path / "as.gguf").read_bytes() != (tmp_path / "ours.gguf").read_bytes()
    for name, is_theirs in {"theirs": True, "ours": False}.items():
        found = verdict(tmp_path / f"{name}.gguf", folder / "zeros.gguf")
        assert found["verdict"] == "equal" and (found["as_ggml"] > 0) == is_theirs


@pytest.mark.parametrize("kind, matrix", [("q4_k_m", False), ("q4_k_m", True), ("q5_0", False), ("iq3_s", False), ("q2_k", True)])
def test_files_of_a_ggml_compiled_for_processors_with_fma_are_rebuilt_with_contraction(models, tmp_path, contracted, kind, matrix):
    folder, weights = models
    source, flags = folder / "zeros.gguf", ["--imatrix", folder / "matrix.gguf"] if matrix else []
    weighbridge("convert", source, tmp_path / "theirs.gguf", "--quantize", kind, *flags)
    values = {each.name: each.data for each in gguf.GGUFReader(source).tensors}
    found, content = gguf.GGUFReader(tmp_path / "theirs.gguf"), bytearray((tmp_path / "theirs.gguf").read_bytes())
    unlike, blocks = 0, {}
    for each in found.tensors:
        name = each.tensor_type.name.lower()
        if name in ("f32", "bf16"):
            continue
        rows = np.ascontiguousarray((values[each.name].view(np.uint16).astype(np.uint32) << 16).view(np.float32))
        blocks[each.name] = theirs = np.empty(each.n_bytes, np.uint8)
        importance = weights[each.name].ctypes.data if matrix and each.name in weights else None
        quantizer(contracted, name)(rows.ctypes.data, theirs.ctypes.data, *rows.shape, importance)
        size = gguf.GGML_QUANT_SIZES[each.tensor_type][1]
        unlike += int((theirs != each.data.ravel()).reshape(-1, size).any(1).sum())
        content[each.data_offset:each.data_offset + each.n_bytes] = theirs.tobytes()
    (tmp_path / "theirs.gguf").write_bytes(content)
    assert unlike > 0
    said = verdict(tmp_path / "theirs.gguf", source, *flags)
    assert said["verdict"] == "rebuilt with contraction" and said["unlike"] == 0 and 0 < said["contracted"] <= unlike
    if kind != "iq3_s":     # whose groups without values GGML moves
        assert said["contracted"] == unlike
    at = next(each for each in found.tensors if each.name in blocks)
    content[at.data_offset + 9 * gguf.GGML_QUANT_SIZES[at.tensor_type][1] + 4] ^= 1
    (tmp_path / "tampered.gguf").write_bytes(content)
    said = verdict(tmp_path / "tampered.gguf", source, *flags, status=1)
    assert said["verdict"] == "not from this source" and [(each["name"], each["unlike"], each["first"]) for each in said["differences"]] == [(at.name, 1, 9)]
