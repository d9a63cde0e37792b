# SPDX-License-Identifier: Apache-2.0
"""verify --derived-from and convert --statement: what was made from a model, and what was not. tests/interop/test_gguf_quantize.py has
the files of llama.cpp."""
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess

import pytest

from conftest import COMMAND, TEST_DATA, safetensors, validated, weighbridge

CODE_BLOCKS = pathlib.Path(os.environ.get("WEIGHBRIDGE_CODE_BLOCKS") or pathlib.Path(COMMAND).parent / "tests/programs/code_blocks")
COLUMNS, BLOCK = 512, 144   # bytes of q4_k for 256 values


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(path, tensors, keys=()):
    """bf16 and f32 tensors of a model whose names are llama.cpp's."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 2 + len(keys))
    head += text("general.architecture") + struct.pack("<I", 8) + text("llama")
    head += text("llama.block_count") + struct.pack("<II", 4, 2)
    for key, value in keys:
        head += text(key) + struct.pack("<I", 8) + text(value)
    data = b""
    for name, (rows, values) in tensors.items():
        head += text(name) + (struct.pack("<IQI", 1, len(values) // 4, 0) if rows == 0 else struct.pack("<IQQI", 2, COLUMNS, rows, 30))
        head += struct.pack("<Q", len(data))
        data += values + b"\0" * (-len(values) % 32)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)


def matrix_of(path, names):
    out = struct.pack("<i", len(names))
    for name in names:
        out += struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 1, COLUMNS) + struct.pack(f"<{COLUMNS}f", *range(1, COLUMNS + 1))
    path.write_bytes(out)


NAMES = ["blk.0.attn_q.weight", "blk.0.attn_v.weight", "blk.1.attn_q.weight", "blk.1.attn_v.weight"]


def model(path, seed=0):
    rng = random.Random(seed)
    def rows(n):
        return n, b"".join(struct.pack("<f", rng.gauss(0, 0.02))[2:] for _ in range(n * COLUMNS))
    gguf(path, {name: rows(8) for name in NAMES} | {"output_norm.weight": (0, struct.pack("<8f", *range(8)))})


@pytest.fixture
def made(tmp_path):
    model(tmp_path / "base.gguf")
    weighbridge("convert", tmp_path / "base.gguf", tmp_path / "out.gguf", "--quantize", "q4_k_s")
    return tmp_path


def check(folder, *flags, status=0, name="out.gguf", base="base.gguf"):
    done = weighbridge("verify", folder / name, "--derived-from", folder / base, "--json", *flags, status=status)
    return validated(done.stdout, "verify_derivation")["files"][0]


def place(path, name):
    found = json.loads(weighbridge("inspect", path, "--json").stdout)["files"][0]
    part = next(each for each in found["tensors"] if each["name"] == name)["parts"][0]
    return part["offset"], part["length"]


def test_a_quantized_file_is_made_from_its_source(made):
    found = check(made)
    assert found["verdict"] == "equal" and found["quantize"] == "q4_k_s" and found["tensors"] == 5 and found["header"] is True
    assert "every byte of 5 tensors is equal, and so is the header" in weighbridge("verify", made / "out.gguf", "--derived-from", made / "base.gguf").stdout
    assert check(made, "--threads", "1") == check(made, "--threads", "2") == found


@pytest.mark.parametrize("flags, chosen", [(["--quantize", "q4_k_m", "--pure"], 0), (["--quantize", "q4_k_m", "--tensor-type", "attn_q=q8_0"], 2),
                                           (["--quantize", "q5_0"], 0), (["--quantize", "f16"], 0), ([], 0)], ids=str)
def test_mix_and_types_are_read_from_the_file(made, flags, chosen):
    weighbridge("convert", made / "base.gguf", made / "other.gguf", *flags)
    found = check(made, name="other.gguf")
    assert found["verdict"] == "equal" and found["chosen"] == chosen and found["pure"] == ("--pure" in flags)


@pytest.mark.parametrize("at", [0, 5, BLOCK - 1], ids=["a scale", "a packed scale", "a level"])
def test_one_changed_byte_is_not_from_this_source(made, at):
    offset, length = place(made / "out.gguf", NAMES[2])
    content = bytearray((made / "out.gguf").read_bytes())
    content[offset + 3 * BLOCK + at] ^= 1
    (made / "out.gguf").write_bytes(content)
    found = check(made, "--report", status=1)
    only, = found["differences"]
    assert found["verdict"] == "not from this source" and found["unlike"] == 1
    assert (only["what"], only["name"], only["unlike"], only["first"], only["blocks"]) == ("bytes", NAMES[2], 1, 3, length // BLOCK)
    assert only["values"]["max_abs"] > 0
    shown = weighbridge("verify", made / "out.gguf", "--derived-from", made / "base.gguf", status=1).stdout
    assert "NOT from" in shown and "1 of 16 blocks differs, the first is 3" in shown


@pytest.mark.skipif(not CODE_BLOCKS.exists(), reason=f"{CODE_BLOCKS} is missing: builds with tests make it")
def test_blocks_of_a_contracted_ggml_are_rebuilt_and_no_other(made):
    """tests/interop/test_gguf_quantize.py has the blocks of GGML itself."""
    source, content, unlike = (made / "base.gguf").read_bytes(), bytearray((made / "out.gguf").read_bytes()), 0
    for name in NAMES:
        if "attn_v" in name:    # of another type
            continue
        (at, length), (there, size) = place(made / "out.gguf", name), place(made / "base.gguf", name)
        values = b"".join(b"\0\0" + source[i:i + 2] for i in range(there, there + size, 2))
        blocks = subprocess.run([CODE_BLOCKS, "contract", "ggml.q4_k"], input=values, capture_output=True, check=True, timeout=60).stdout
        unlike += sum(blocks[i:i + BLOCK] != content[at + i:at + i + BLOCK] for i in range(0, length, BLOCK))
        content[at:at + length] = blocks
    assert unlike > 0
    (made / "c.gguf").write_bytes(content)
    found = check(made, name="c.gguf")
    assert (found["verdict"], found["contracted"], found["unlike"]) == ("rebuilt with contraction", unlike, 0)
    shown = weighbridge("verify", made / "c.gguf", "--derived-from", made / "base.gguf").stdout
    assert f"rebuilt, with contraction in {unlike} block" in shown
    content[place(made / "out.gguf", NAMES[2])[0] + 5 * BLOCK + 20] ^= 1
    (made / "c.gguf").write_bytes(content)
    only, = check(made, name="c.gguf", status=1)["differences"]
    assert (only["name"], only["unlike"], only["first"]) == (NAMES[2], 1, 5)


def test_swapped_tensors_are_not_from_this_source(made):
    (a, length), (b, _) = place(made / "out.gguf", NAMES[0]), place(made / "out.gguf", NAMES[2])
    content = bytearray((made / "out.gguf").read_bytes())
    content[a:a + length], content[b:b + length] = content[b:b + length], content[a:a + length]
    (made / "out.gguf").write_bytes(content)
    assert [each["name"] for each in check(made, status=1)["differences"]] == [NAMES[0], NAMES[2]]


def test_another_base_is_not_the_source(made):
    model(made / "another.gguf", seed=1)
    found = check(made, base="another.gguf", status=1)
    assert found["unlike"] == 4 and {each["what"] for each in found["differences"]} == {"bytes"}    # the norm is the same


def test_tensors_that_are_missing_or_added_are_named(made):
    for name, base, what in (("less", "base", "missing"), ("out", "less", "additional")):
        if name == "less":
            weighbridge("convert", made / "base.gguf", made / "less.gguf", "--without", NAMES[3], "--quantize", "q4_k_s")
        else:
            weighbridge("convert", made / "base.gguf", made / "less.gguf", "--without", NAMES[3], "--overwrite")
        found = check(made, name=f"{name}.gguf", base=f"{base}.gguf", status=1)
        assert [(each["what"], each["name"]) for each in found["differences"] if each["what"] == what] == [(what, NAMES[3])]


def test_without_the_matrix_nothing_is_claimed(made):
    matrix_of(made / "m.dat", NAMES)
    weighbridge("convert", made / "base.gguf", made / "out.gguf", "--quantize", "q4_k_s", "--imatrix", made / "m.dat", "--overwrite")
    found = check(made, status=3)
    assert found["verdict"] == "not claimed" and found["unclaimed"] == "made with an importance matrix that is not given" and found["differences"] == []
    assert check(made, "--imatrix", made / "m.dat")["verdict"] == "equal"
    matrix_of(made / "other.dat", NAMES[:1])
    assert check(made, "--imatrix", made / "other.dat", status=1)["verdict"] == "not from this source"


def test_of_a_file_without_a_file_type_the_blocks_count(tmp_path):
    """Rows that do not divide into blocks stay bf16, and may be most of the bytes."""
    def matrix(rows, columns):
        return ("BF16", [rows, columns], bytes(b for i in range(64) for b in (i, 0x3C)) * (rows * columns // 64))
    (tmp_path / "base.safetensors").write_bytes(safetensors({"odd": matrix(64, 40), "even": matrix(8, 64), "norm": ("F32", [4], b"\0\0\x80?" * 4)}))
    weighbridge("convert", tmp_path / "base.safetensors", tmp_path / "out.gguf", "--quantize", "q4_0")
    found = check(tmp_path, base="base.safetensors")
    assert (found["verdict"], found["quantize"], found["chosen"]) == ("equal", "q4_0", 0)


# They were made again as if they had been quantized to their dtype, which places metadata otherwise and makes vectors f32.
def test_a_file_that_was_not_quantized_is_made_from_its_source(tmp_path):
    tensors = {"w": ("BF16", [8, 4], b"\x01\x3f" * 32), "norm": ("BF16", [8], b"\x01\x3f" * 8), "ids": ("I32", [3], bytes(12))}
    (tmp_path / "m.safetensors").write_bytes(safetensors(tensors))
    weighbridge("convert", tmp_path / "m.safetensors", tmp_path / "m.gguf")
    out = weighbridge("verify", tmp_path / "m.gguf", "--derived-from", tmp_path / "m.safetensors").stdout
    assert "(not quantized): every byte of 3 tensors is equal, and so is the header" in out
    value = json.loads(weighbridge("verify", tmp_path / "m.gguf", "--derived-from", tmp_path / "m.safetensors", "--json").stdout)
    assert value["files"][0]["quantize"] is None and value["files"][0]["header"]
    # With `--quantize bf16` it is another file.
    model(tmp_path / "base.gguf")
    for name, flags, how in (("plain", [], "not quantized"), ("bf16", ["--quantize", "bf16"], "bf16")):
        weighbridge("convert", tmp_path / "base.gguf", tmp_path / f"{name}.gguf", *flags)
        out = weighbridge("verify", tmp_path / f"{name}.gguf", "--derived-from", tmp_path / "base.gguf").stdout
        assert f"({how}): every byte of 5 tensors is equal, and so is the header" in out


@pytest.mark.parametrize("folder", ["llama", "bert"])
def test_a_folder_as_gguf_is_made_from_its_folder(folder, tmp_path):
    source = TEST_DATA / "gguf/folders" / folder
    if not source.exists():
        pytest.skip(f"{source} is not there")
    weighbridge("convert", source, tmp_path / "m.gguf")
    out = weighbridge("verify", tmp_path / "m.gguf", "--derived-from", source).stdout
    assert "made from" in out and "(not quantized)" in out and "and so is the header" in out


def test_a_statement_says_how_a_file_was_made(made):
    matrix_of(made / "m.dat", NAMES)
    weighbridge("convert", made / "base.gguf", made / "s.gguf", "--quantize", "Q4_K_M", "--imatrix", made / "m.dat", "--tensor-type", "attn_q=q6_k",
                "--without", NAMES[1], "--statement", made / "s.json")
    said = json.loads((made / "s.json").read_text())
    build = said["predicate"]["buildDefinition"]
    assert said["_type"] == "https://in-toto.io/Statement/v1" and said["predicateType"] == "https://slsa.dev/provenance/v1"
    assert said["subject"][0]["name"] == "s.gguf"
    assert said["subject"][0]["digest"]["sha256"] == weighbridge("hash", "--sha256", made / "s.gguf").stdout.split()[0]
    assert [each["name"] for each in build["externalParameters"]["options"]] == ["without", "quantize", "tensor-type", "imatrix"]
    assert [each["name"] for each in build["resolvedDependencies"]] == ["source", "imatrix"]
    flags = ["--statement", made / "s.json", "--imatrix", made / "m.dat"]
    assert check(made, *flags, name="s.gguf")["verdict"] == "equal"
    assert check(made, *flags[:2], name="s.gguf", status=3)["verdict"] == "not claimed"
    # Of another file, another source, with another matrix.
    shutil.copy(made / "base.gguf", made / "copy.gguf")
    for arguments, rule in (((made / "out.gguf", made / "base.gguf", made / "m.dat"), "statement/subject"),
                            ((made / "s.gguf", made / "out.gguf", made / "m.dat"), "statement/source"),
                            ((made / "s.gguf", made / "copy.gguf", made / "base.gguf"), "statement/imatrix")):
        done = weighbridge("verify", arguments[0], "--derived-from", arguments[1], "--statement", made / "s.json", "--imatrix", arguments[2], status=1)
        assert rule in done.stderr, rule


def test_a_statement_has_the_digests_of_merged_adapters(tmp_path):
    (tmp_path / "adapter").mkdir()
    (tmp_path / "base.safetensors").write_bytes(safetensors({"a.weight": ("F32", [8, 32], bytes(1024))}))
    (tmp_path / "adapter/adapter_model.safetensors").write_bytes(safetensors({
        "base_model.model.a.lora_A.weight": ("F32", [2, 32], bytes(256)), "base_model.model.a.lora_B.weight": ("F32", [8, 2], bytes(64))}))
    (tmp_path / "adapter/adapter_config.json").write_text('{"peft_type": "LORA", "r": 2, "lora_alpha": 4}')
    weighbridge("convert", tmp_path / "base.safetensors", tmp_path / "o.gguf", "--quantize", "q8_0", "--merge-lora", f"{tmp_path / 'adapter'}=0.5",
                "--statement", tmp_path / "s.json")
    dependencies = json.loads((tmp_path / "s.json").read_text())["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert [each["name"] for each in dependencies] == ["source", "merge-lora", "merge-lora"]
    assert [each["digest"]["sha256"] for each in dependencies[1:]] == [
        weighbridge("hash", "--file", tmp_path / "adapter" / name).stdout.split()[0] for name in ("adapter_model.safetensors", "adapter_config.json")]
    done = weighbridge("verify", tmp_path / "o.gguf", "--derived-from", tmp_path / "base.safetensors", "--statement", tmp_path / "s.json", status=3)
    assert "merge-lora" in done.stderr


@pytest.mark.parametrize("change", [lambda s: "", lambda s: s[:-1], lambda s: s.replace("in-toto", "else"), lambda s: s.replace("slsa", "else"),
                                    lambda s: s.replace("sha256", "md5"), lambda s: s.replace('"source"', '"other"'),
                                    lambda s: s.replace("convert/v1", "convert/v9")], ids=range(7))
def test_a_broken_statement_is_refused(made, change):
    weighbridge("convert", made / "base.gguf", made / "s.gguf", "--quantize", "q4_k_s", "--statement", made / "s.json")
    (made / "s.json").write_text(change((made / "s.json").read_text()))
    done = weighbridge("verify", made / "s.gguf", "--derived-from", made / "base.gguf", "--statement", made / "s.json", status=1)
    assert "manifest/statement" in done.stderr


def test_what_cannot_be_derived_is_refused(made):
    done = weighbridge("verify", made / "out.gguf", made / "out.gguf", "--derived-from", made / "base.gguf", status=2)
    assert "checks one FILE" in done.stderr
    weighbridge("convert", made / "base.gguf", made / "x.zt")
    assert "only a GGUF" in weighbridge("verify", made / "x.zt", "--derived-from", made / "base.gguf", status=2).stderr
    weighbridge("verify", made / "out.gguf", "--derived-from", made / "none", status=4)
    assert not (made / "again.json").exists()
    weighbridge("convert", made / "base.gguf", made / "y.gguf", "--statement", made / "out.gguf", status=2)   # which exists
    assert not (made / "y.gguf").exists()
