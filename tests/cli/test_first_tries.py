# SPDX-License-Identifier: Apache-2.0
"""What people type first works, or the message says the way, and the way leads to a right result."""
import hashlib
import json
import os
import re
import shlex
import struct
import zipfile

import pytest

from conftest import floats, safetensors, weighbridge


@pytest.mark.parametrize("verb, way", [
    ("merge", "convert BASE --merge-lora"), ("lora", "convert BASE --merge-lora"), ("quantize", "convert MODEL --quantize q8_0"),
    ("scan", "check FILE"), ("stats", "inspect --stats FILE"), ("dequantize", "convert MODEL --dequantize f32"), ("tree", "inspect --tree FILE")])
def test_a_job_that_is_a_flag_here_is_named(verb, way):
    refused = weighbridge(verb, "x", status=2)
    assert f"there is no verb '{verb}'; try 'weighbridge {way}" in refused.stderr
    named = weighbridge(shlex.split(way)[0], "--help").stdout
    for flag in re.findall(r"--[a-z-]+", way):
        assert flag in named


@pytest.mark.parametrize("name, dtype", [("bfloat16", "BF16"), ("fp16", "F16"), ("half", "F16"), ("float16", "F16"), ("float", "F32"), ("float64", "F64"),
                                         ("float8_e4m3fn", "F8_E4M3")])
def test_names_that_other_programs_have_for_a_dtype(tmp_path, name, dtype):
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [2], floats(1, 2))}))
    weighbridge("convert", path, tmp_path / "b.safetensors", "--cast", name)
    assert f'"dtype":"{dtype}"'.encode() in (tmp_path / "b.safetensors").read_bytes()


@pytest.fixture
def raw(tmp_path):
    """A .npz with bf16 as NumPy saves it, without its type, column by column."""
    def npy(descr, order, shape, data):
        header = f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}, }}".ljust(117) + "\n"
        return b"\x93NUMPY\1\0" + struct.pack("<H", 118) + header.encode() + data

    path = tmp_path / "raw.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w.npy", npy("<V2", True, "(2, 2)", struct.pack("<4H", 0x3F80, 0x4000, 0x3F00, 0xC040)))
        archive.writestr("n.npy", npy("<f4", False, "(2,)", floats(1, 2)))
    return path


@pytest.mark.parametrize("name", ["bf16", "bfloat16", "torch.bfloat16"])
def test_every_verb_that_reads_takes_the_type_of_raw_elements(raw, tmp_path, name):
    """edit, doctor, khlnary and slm did not know --as, and --as did not know the names that --cast knows."""
    given = "--as", f"w={name}"
    assert "1 unsupported" in weighbridge("doctor", raw, status=3).stdout
    assert "nothing is wrong" in weighbridge("doctor", raw, *given).stdout
    weighbridge("doctor", raw, *given, "--salvage", tmp_path / "saved.safetensors")
    said = weighbridge("edit", raw, *given, "--rename", "n=m", "-o", tmp_path / "edited.npz").stdout
    assert 'tensors["w"]: as stored -> bf16' in said and 'tensors["n"]: n -> m' in said
    assert "give its name" in weighbridge("edit", raw, *given, "-i", status=2).stderr
    weighbridge("khlnary", "pack", raw, *given, "--cast", "f32", "-o", tmp_path / "module")
    weighbridge("slm", "fixture", "tiny", "-o", tmp_path / "base.slm")
    refused = weighbridge("slm", "adapter", tmp_path / "base.slm", raw, *given, "--kind", "adp1", "-o", tmp_path / "a", status=2).stderr
    assert "cannot be read" not in refused and "no tensor matches" not in refused
    weighbridge("convert", raw, tmp_path / "u16.safetensors", "--as", "w=uint16")
    weighbridge("edit", tmp_path / "u16.safetensors", *given, "-o", tmp_path / "retyped.safetensors")
    for file in "saved.safetensors", "edited.npz", "retyped.safetensors":
        weighbridge("extract", tmp_path / file, "w", "--dense", "f32", "-o", tmp_path / "w.bin", "-f")
        assert struct.unpack("<4f", (tmp_path / "w.bin").read_bytes()) == (1, 0.5, 2, -3), file


def test_a_type_of_metadata_by_its_long_name(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [2], floats(1, 2))}))
    weighbridge("convert", path, tmp_path / "a.gguf")
    weighbridge("edit", tmp_path / "a.gguf", "--set", "k:int64=5", "-o", tmp_path / "b.gguf")
    assert json.loads(weighbridge("inspect", "--json", tmp_path / "b.gguf").stdout)["files"][0]["attributes"]["k"] == 5


def test_an_overflow_suggests_a_dtype_that_holds_the_values(tmp_path):
    """--allow overflow, which writes infinities, was the only hint."""
    path = tmp_path / "large.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [2], floats(1e5, 2))}))
    refused = weighbridge("convert", path, tmp_path / "b.safetensors", "--cast", "f16", status=1).stderr
    assert "try --cast bf16" in refused and "--allow overflow would write infinities" in refused
    weighbridge("convert", path, tmp_path / "b.safetensors", "--cast", "bf16")


def test_a_cast_that_keeps_every_value_is_no_loss(tmp_path):
    """`loss precision: ..., every value kept` was printed for casts that lost nothing."""
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [2], floats(1, 2)), "h": ("BF16", [1], b"\0\0")}))
    said = weighbridge("convert", path, tmp_path / "b.safetensors", "--cast", "f16").stdout
    assert "loss" not in said and said.count("change precision: ") == 2 and said.count("every value kept") == 2


@pytest.mark.parametrize("prefix", ["", "sha256:", "SHA256:", "0x", " "])
def test_a_digest_as_other_programs_print_it(tmp_path, prefix):
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [1], floats(1))}))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert "structure and SHA-256" in weighbridge("verify", "--sha256", prefix + digest, path).stdout
    weighbridge("verify", "--sha256", prefix + digest[::-1], path, status=1)


def test_the_hash_of_the_tensor_data(tmp_path):
    data = floats(*range(8))
    path = tmp_path / "lora.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [8], data)}, {"ss_network_dim": "4"}))
    assert weighbridge("hash", "--autov3", path).stdout.split()[0] == hashlib.sha256(data).hexdigest()
    assert json.loads(weighbridge("hash", "--autov3", "--json", path).stdout)["files"][0]["of"] == "data-sha256"
    weighbridge("convert", path, tmp_path / "a.zt")
    assert "that of one safetensors file" in weighbridge("hash", "--autov3", tmp_path / "a.zt", status=2).stderr


def folder(tmp_path, template=None, **settings):
    out = tmp_path / "model"
    out.mkdir()
    (out / "model.safetensors").write_bytes(safetensors({"w": ("F32", [2], floats(1, 2))}))
    (out / "config.json").write_text(json.dumps({"model_type": "tiny", "hidden_size": 8, "tied": False, **settings}, indent=2) + "\n")
    if template is not None:
        (out / "chat_template.jinja").write_text(template)
    return out


def test_an_output_without_extension_is_a_folder_if_the_input_is_one(tmp_path):
    weighbridge("convert", folder(tmp_path), tmp_path / "copy")
    assert json.loads((tmp_path / "copy/config.json").read_text())["hidden_size"] == 8
    weighbridge("convert", tmp_path / "model/model.safetensors", tmp_path / "other", status=2)


def test_a_folder_is_edited_by_the_keys_of_its_config(tmp_path):
    model = folder(tmp_path)
    before = (model / "config.json").read_text()
    said = weighbridge("edit", model, "-i", "--set", "hf.hidden_size=16", "--set", "tied=true", "--set", "name=x", "--unset", "model_type").stdout
    assert "config.json changed" in said and 'change attributes["hf.hidden_size"]: 8 -> 16' in said
    after = (model / "config.json").read_text()
    assert json.loads(after) == {"hidden_size": 16, "tied": True, "name": "x"} and after.startswith("{\n  ") and after.endswith("}\n")
    (model / "config.json").write_text(before)
    for wrong, why in (("hidden_size=x", "is not a value of the type i64"), ("a.b=1", "has no key"), ("tied=maybe", "type bool")):
        assert why in weighbridge("edit", model, "-i", "--set", wrong, status=2).stderr
    assert (model / "config.json").read_text() == before
    weighbridge("edit", model, "--dry-run", "--set", "hidden_size=16")
    assert (model / "config.json").read_text() == before


def test_a_chat_template_is_set_from_a_file_and_never_run(tmp_path):
    model = folder(tmp_path, "old")
    (tmp_path / "new.jinja").write_text("{% for m in messages %}{{ m['content'] }}{% endfor %}")
    weighbridge("edit", model, "-i", "--set", f"tokenizer.chat_template=@{tmp_path / 'new.jinja'}")
    assert (model / "chat_template.jinja").read_bytes() == (tmp_path / "new.jinja").read_bytes()
    (tmp_path / "bad.jinja").write_text("{{ ''.__class__ }}")
    assert "leaves its sandbox" in weighbridge("edit", model, "-i", "--set", f"tokenizer.chat_template=@{tmp_path / 'bad.jinja'}", status=2).stderr


def test_templates_that_leave_their_sandbox_are_errors_and_others_no_finding(tmp_path):
    """Each template of a folder, good or bad, got the same warning, and one of a GGUF none."""
    model = folder(tmp_path, "{{ messages[0]['content'] }}")
    assert "warning" not in weighbridge("verify", model).stdout
    (model / "chat_template.jinja").write_text("{{ ''.__class__.__mro__ }}")
    assert "(found __class__ at byte 6 of it) (template/escape)" in weighbridge("verify", model, status=1).stdout
    (model / "chat_template.jinja").write_text("{% if x")
    assert "template/syntax" in weighbridge("verify", model).stdout
    key, text = b"tokenizer.chat_template", b"{{ x|attr('y') }}"
    gguf = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, len(text)) + text
    (tmp_path / "a.gguf").write_bytes(gguf)
    assert "template/escape" in weighbridge("verify", tmp_path / "a.gguf", status=1).stdout


def test_strict_counts_what_other_programs_run(tmp_path):
    model = folder(tmp_path)
    weighbridge("verify", "--strict", model)
    (model / "modeling.py").write_text("print()")
    assert weighbridge("verify", model).stdout.splitlines()[-1].endswith("; 1 finding about code that other programs may run")
    weighbridge("verify", "--strict", model, status=1)
    assert json.loads(weighbridge("verify", "--json", model).stdout)["files"][0]["about_code"] == 1


def test_inspect_says_first_what_people_ask(tmp_path):
    path = folder(tmp_path, "{{ x }}", max_position_embeddings=2048, license="apache-2.0", **{f"k{i}": i for i in range(30)})
    lines = weighbridge("inspect", path).stdout.splitlines()
    assert lines[2] == "context of 2,048 tokens, chat template, license apache-2.0"
    assert any("more: " in line and "of hf.*; --metadata shows them all, --attribute KEY one" in line for line in lines)
    assert weighbridge("inspect", path, "--attribute", "hf.k29").stdout == "29\n"
    assert weighbridge("inspect", path, "--attribute", "hf.k2*").stdout.splitlines()[:2] == ["hf.k2 = 2", "hf.k20 = 20"]
    assert "has no key 'zz'" in weighbridge("inspect", path, "--attribute", "zz", status=2).stderr


def test_what_a_downloader_leaves_is_not_part_of_a_model(tmp_path):
    """A manifest listed the notes of the downloader, and a snapshot of its cache failed for its links."""
    model = folder(tmp_path)
    weighbridge("manifest", model, "-o", tmp_path / "m.sig", "--no-sign")
    notes = model / ".cache/huggingface/download"
    notes.mkdir(parents=True)
    (notes / "model.safetensors.lock").write_text("")
    assert ": ok (2 files" in weighbridge("verify", model, "--manifest", tmp_path / "m.sig").stdout
    repository = tmp_path / "hub/models--a--b"
    snapshot = repository / "snapshots/c0ffee"
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    for name in ("model.safetensors", "config.json"):
        (repository / "blobs" / name).write_bytes((model / name).read_bytes())
        (snapshot / name).symlink_to(f"../../blobs/{name}")
    assert ": ok (2 files" in weighbridge("verify", snapshot, "--manifest", tmp_path / "m.sig").stdout
    (repository / "blobs/config.json").write_text("{}")
    weighbridge("verify", snapshot, "--manifest", tmp_path / "m.sig", status=1)
    os.remove(snapshot / "config.json")
    (snapshot / "config.json").symlink_to(model / "config.json")
    assert "manifest/link" in weighbridge("verify", snapshot, "--manifest", tmp_path / "m.sig", status=1).stdout


def test_messages_cut_long_names(tmp_path):
    path = tmp_path / "long.safetensors"
    path.write_bytes(safetensors({"x" * 5000: ("E9", [2], b"\0" * 8), "y" * 5000: ("F32", [2], b"\0" * 8)}, {"k" * 5000: "v"}))
    said = [weighbridge("verify", path, status=3).stdout, weighbridge("convert", path, tmp_path / "x.npz", status=1), weighbridge(
        "edit", path, "--dry-run", "--unset", "k" * 5000).stdout]
    for text in [said[0], said[1].stdout, said[1].stderr, said[2]]:
        assert max(map(len, text.splitlines())) < 700
