# SPDX-License-Identifier: Apache-2.0
"""Which type each tensor of a quantized GGUF gets, beside the choices of llama.cpp: 693 files of eleven models in the test data. And
importance matrices in both of their forms."""
import json
import os
import pathlib
import struct
import subprocess

import pytest

from interop_tools import COMMAND, np

gguf = pytest.importorskip("gguf", reason="gguf is missing: tools/python-environments.sh makes the environment")

GOLDEN = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA") or pathlib.Path(__file__).parents[3] / "shared/data") / "gguf/mix_golden.json"


def weighbridge(*arguments, status=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
    assert done.returncode == status, (arguments, done.stdout[-2000:], done.stderr[-2000:])
    return done


def written(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def matrix_writer(path):
    out = gguf.GGUFWriter(path, "imatrix")
    out.add_type("imatrix")
    out.add_uint32("imatrix.chunk_count", 10)
    out.add_uint32("imatrix.chunk_size", 512)
    out.add_array("imatrix.datasets", ["a text"])
    return out


def write_model(model, path, matrix):
    out = gguf.GGUFWriter(path, model["arch"])
    out.add_block_count(model["block_count"])
    out.add_head_count(model["head_count"])
    out.add_head_count_kv(model["head_count_kv"])
    if model["expert_count"]:
        out.add_expert_count(model["expert_count"])
    importance = matrix_writer(matrix)
    for name, sizes, kind in (each.split(" ") if isinstance(each, str) else each for each in model["tensors"]):
        shape = [int(size) for size in sizes.split("x")][::-1]
        if kind == "BF16":
            out.add_tensor(name, np.zeros(shape[:-1] + [2 * shape[-1]], np.uint8), raw_dtype=gguf.GGMLQuantizationType.BF16)
        else:
            out.add_tensor(name, np.zeros(shape, np.float32))
        if len(shape) > 1:
            experts = int(np.prod(shape[:-2]))
            importance.add_tensor(name + ".in_sum2", np.ones((experts, shape[-1]), np.float32))
            importance.add_tensor(name + ".counts", np.ones((experts, 1), np.float32))
    written(out)
    written(importance)


def models():
    return json.loads(GOLDEN.read_text())["models"] if GOLDEN.exists() else [{"model": "none"}]


@pytest.mark.skipif(not GOLDEN.exists(), reason="the choices of llama.cpp are in the test data: WEIGHBRIDGE_TEST_DATA names no gguf/mix_golden.json")
@pytest.mark.parametrize("model", models(), ids=lambda model: model["model"])
def test_every_tensor_gets_the_type_that_llama_cpp_gives_it(model, tmp_path):
    letters = json.loads(GOLDEN.read_text())["types"]
    source, matrix, out = tmp_path / "in.gguf", tmp_path / "matrix.gguf", tmp_path / "out.gguf"
    write_model(model, source, matrix)
    names = [(each.split(" ") if isinstance(each, str) else each)[0] for each in model["tensors"]]
    for key, expected in model["files"].items():
        kind, *modes = key.split("+")
        options = ["--imatrix", matrix] * ("imatrix" in modes) + ["--pure"] * ("pure" in modes)
        refused = 2 if "IQ1" in kind else 1 if expected == "refused" else 0
        done = weighbridge("convert", source, out, "--quantize", kind, "--force", "--quiet", *options, status=refused)
        if refused:
            assert "IQ1" in kind or "needs an importance matrix" in done.stderr + done.stdout, key
            continue
        tensors = gguf.GGUFReader(out).tensors
        assert [each.name for each in tensors] == names, key
        assert [each.tensor_type.name for each in tensors] == [letters[letter] for letter in expected], key


def small(path):
    out = gguf.GGUFWriter(path, "llama")
    out.add_block_count(1)
    out.add_head_count(4)
    out.add_head_count_kv(4)
    rng = np.random.default_rng(1)
    for name in ("token_embd", "blk.0.attn_q", "blk.0.ffn_down"):
        out.add_tensor(name + ".weight", rng.standard_normal((8, 256)).astype(np.float32))
    written(out)


def older(entries, chunks=10, dataset=b"a text"):
    out = struct.pack("<i", len(entries))
    for name, calls, values in entries:
        out += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", calls, len(values)) + values.astype("<f4").tobytes()
    return out + struct.pack("<ii", chunks, len(dataset)) + dataset


def tensors_of(path):
    return {each.name: bytes(each.data) for each in gguf.GGUFReader(path).tensors}


def test_both_forms_of_an_importance_matrix_give_the_same_file(tmp_path):
    small(tmp_path / "in.gguf")
    sums = {name: np.random.default_rng(len(name)).random(256).astype(np.float32) for name in ("blk.0.attn_q.weight", "blk.0.ffn_down.weight")}
    new = matrix_writer(tmp_path / "new.gguf")
    for name, values in sums.items():
        new.add_tensor(name + ".in_sum2", values.reshape(1, 256))
        new.add_tensor(name + ".counts", np.full((1, 1), 4, np.float32))
    written(new)
    (tmp_path / "old.dat").write_bytes(older([(name, 4, values) for name, values in sums.items()]))
    for name, options in {"plain": [], "new": ["--imatrix", tmp_path / "new.gguf"], "old": ["--imatrix", tmp_path / "old.dat"]}.items():
        weighbridge("convert", tmp_path / "in.gguf", tmp_path / f"{name}.out.gguf", "--quantize", "q4_k_s", *options)
    plain, first, second = (tensors_of(tmp_path / f"{name}.out.gguf") for name in ("plain", "new", "old"))
    assert first == second and first != plain
    assert first["token_embd.weight"] == plain["token_embd.weight"]   # the matrix has no entry for it
    fields = gguf.GGUFReader(tmp_path / "old.out.gguf").fields
    assert fields["general.file_type"].contents() == 14 and fields["quantize.imatrix.entries_count"].contents() == 2
    assert fields["quantize.imatrix.file"].contents() == "old.dat" and fields["quantize.imatrix.dataset"].contents() == "a text"


@pytest.mark.parametrize("what, rule", [
    (b"", "imatrix/length"), (struct.pack("<i", -1), "imatrix/length"), (struct.pack("<i", 1 << 30), "imatrix/length"),
    (older([("blk.0.attn_q.weight", 1, np.full(256, np.nan))]), "imatrix/not-finite"),
    (older([("a", 1, np.ones(1))] * 2), "imatrix/entries"), (older([("blk.0.attn_q.weight", 1, np.ones(256))])[:200], "imatrix/length")])
def test_a_broken_importance_matrix_is_refused(what, rule, tmp_path):
    small(tmp_path / "in.gguf")
    (tmp_path / "matrix.dat").write_bytes(what)
    done = weighbridge("convert", tmp_path / "in.gguf", tmp_path / "out.gguf", "--quantize", "q4_k", "--imatrix", tmp_path / "matrix.dat", status=1)
    assert rule in done.stderr and not (tmp_path / "out.gguf").exists()


def test_an_importance_matrix_of_another_model_is_refused(tmp_path):
    small(tmp_path / "in.gguf")
    (tmp_path / "matrix.dat").write_bytes(older([("blk.0.attn_q.weight", 1, np.ones(512))]))
    done = weighbridge("convert", tmp_path / "in.gguf", tmp_path / "out.gguf", "--quantize", "q4_k", "--imatrix", tmp_path / "matrix.dat", status=1)
    assert "has 512 weights for it" in done.stderr + done.stdout


@pytest.mark.parametrize("value, says", [(np.nan, "is nan"), (1e20, "can hold"), (1e8, "can hold")])
def test_a_value_that_a_type_cannot_hold_is_refused_by_tensor_and_element(value, says, tmp_path):
    """GGML aborts, or writes zeros."""
    weights = np.zeros((4, 256), np.float32)
    weights[2, 77] = value
    out = gguf.GGUFWriter(tmp_path / "in.gguf", "llama")
    out.add_tensor("blk.0.ffn_up.weight", weights)
    written(out)
    done = weighbridge("convert", tmp_path / "in.gguf", tmp_path / "out.gguf", "--quantize", "q4_k", status=1)
    assert 'element 77 of row 2 of tensor "blk.0.ffn_up.weight"' in done.stderr and says in done.stderr
    assert not (tmp_path / "out.gguf").exists()


def test_types_of_single_tensors_are_chosen(tmp_path):
    small(tmp_path / "in.gguf")
    weighbridge("convert", tmp_path / "in.gguf", tmp_path / "out.gguf", "--quantize", "q4_k", "--tensor-type", "attn_[qk]=q8_0",
                "--tensor-type", "attn=q2_k", "--token-embedding-type", "bf16")
    kinds = {each.name: each.tensor_type.name for each in gguf.GGUFReader(tmp_path / "out.gguf").tensors}
    assert kinds == {"token_embd.weight": "BF16", "blk.0.attn_q.weight": "Q8_0", "blk.0.ffn_down.weight": "Q6_K"}
    again = weighbridge("convert", tmp_path / "out.gguf", tmp_path / "again.gguf", "--quantize", "q4_0", status=1)
    assert "requantize" in again.stderr + again.stdout
    weighbridge("convert", tmp_path / "out.gguf", tmp_path / "again.gguf", "--quantize", "q4_0", "--allow", "requantize")
    weighbridge("convert", tmp_path / "in.gguf", tmp_path / "x.gguf", "--quantize", "q4_k", "--tensor-type", "attn=q9", status=2)
