# SPDX-License-Identifier: Apache-2.0
"""-r: every model beneath a folder, each once, and what else verify reads, forces and says."""
import json
import os
import socket
import struct
import subprocess
import sys

import pytest

from conftest import COMMAND, cbor, floats, safetensors, validated, weighbridge


def small(value=1.0):
    return safetensors({"w": ("F32", [2], floats(value, value))})


@pytest.fixture
def tree(tmp_path):
    """A file, an index with its shards, a folder of Hugging Face, files that are no models, and a link to a folder."""
    root = tmp_path / "models"
    (root / "b/hf").mkdir(parents=True)
    (root / "c").mkdir()
    (root / "a.safetensors").write_bytes(small())
    for number, name in enumerate("xy", 1):
        (root / f"b/model-0000{number}-of-00002.safetensors").write_bytes(safetensors({name: ("F32", [1], floats(number))}))
    (root / "b/model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {}, "weight_map": {"x": "model-00001-of-00002.safetensors", "y": "model-00002-of-00002.safetensors"}}))
    (root / "b/hf/config.json").write_text('{"model_type": "other"}')
    (root / "b/hf/model.safetensors").write_bytes(small(2))
    (root / "b/README.md").write_text("words")
    (root / "b/vocab.bin").write_bytes(b"no model at all")
    (root / "c/cut.gguf").write_bytes(b"GGUF")
    (root / "z").symlink_to(root / "b")
    return root


FOUND = ["a.safetensors", "b", "b/hf", "c/cut.gguf"]


def test_each_model_of_a_tree_is_taken_once_in_the_order_of_names(tree):
    found = validated(weighbridge("verify", "-r", tree, "--json", status=1).stdout, "verify")["files"]
    assert [os.path.relpath(each["path"], tree) for each in found] == FOUND
    assert [each["valid"] for each in found] == [True, True, True, False]
    lines = weighbridge("verify", "-r", tree, status=1).stdout.splitlines()
    assert [line.split(": ")[0] for line in lines] == [f"{tree}/{name}" for name in FOUND]
    (tree / "c/cut.gguf").unlink()
    digests = weighbridge("hash", "-r", tree).stdout.splitlines()
    assert [line.split("  ")[1] for line in digests] == [f"{tree}/{name}" for name in FOUND[:3]]
    assert [each["path"] for each in json.loads(weighbridge("inspect", "-r", tree, "--json").stdout)["files"]] == [f"{tree}/{name}" for name in FOUND[:3]]
    assert weighbridge("doctor", "-r", tree).stdout.count(f"{tree}/") >= 3
    # A file is taken as it is, and a folder without -r as before.
    assert weighbridge("verify", "-r", tree / "a.safetensors").stdout.startswith(f"{tree}/a.safetensors: ok")
    weighbridge("verify", tree, status=2)


def test_what_is_no_file_in_a_tree_is_named_and_not_opened(tree):
    os.mkfifo(tree / "a.gguf")
    (tree / "c/gone.zt").symlink_to("nothing")
    (tree / "c/distutils-precedence.pth").write_text("import os; var = 'SETUPTOOLS_USE_DISTUTILS'\n")
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.getcwd()
        os.chdir(tree)  # the name of a socket is short
        try:
            bound.bind("s")
        finally:
            os.chdir(here)
        done = weighbridge("verify", "-r", tree, status=1)
    assert [line.split(": ")[0] for line in done.stdout.splitlines()] == [f"{tree}/{name}" for name in FOUND]
    assert sorted(done.stderr.splitlines()) == [
        f"{tree}/a.gguf: skipped: a FIFO", f"{tree}/c/distutils-precedence.pth: skipped: a path file of Python",
        f"{tree}/c/gone.zt: skipped: a link to nothing", f"{tree}/s: skipped: a socket"]
    assert "skipped" not in weighbridge("verify", "-r", tree, "--quiet", status=1).stderr
    said = weighbridge("inspect", tree / "c/distutils-precedence.pth", status=1).stderr
    assert "lists folders and imports, not a model (file/python-path" in said


def test_a_folder_of_folders_names_the_flag(tree):
    for verb in ("check", "verify", "inspect", "hash"):
        said = weighbridge(verb, tree, status=2).stderr
        assert said.endswith("; -r takes every model in it and beneath it\n"), said
    assert "-r takes" not in weighbridge("convert", tree, tree / "o.zt", status=2).stderr


def test_a_folder_of_another_format_in_a_tree_is_named(tree):
    """A distributed checkpoint was passed over without a word, and its error proposed -r, which finds nothing in it."""
    (tree / "checkpoint").mkdir()
    for name in (".metadata", "__0_0.distcp"):
        (tree / "checkpoint" / name).write_bytes(b"PK\3\4")
    for verb in ("check", "verify"):
        done = weighbridge(verb, "-r", tree, status=1)
        assert f"{tree}/checkpoint: skipped: a distributed checkpoint of PyTorch" in done.stderr and "checkpoint" not in done.stdout
        assert "-r takes" not in weighbridge(verb, tree / "checkpoint", status=2).stderr


def test_a_tree_without_a_model_is_said(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    assert "no model is in this folder or beneath it" in weighbridge("verify", "-r", tmp_path, status=2).stderr


def peak(*arguments):
    """The most memory that a run of the command took, in bytes."""
    run = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)")
    return int(subprocess.run([sys.executable, "-c", run, COMMAND, *map(str, arguments)], capture_output=True, check=True).stdout)


def test_a_thousand_files_take_the_memory_of_the_largest(tmp_path):
    """At most that of the largest file times the number of threads, and 16 MiB."""
    large = safetensors({f"layers.{i}.weight": ("F32", [1], floats(i)) for i in range(20_000)})
    for folder in range(10):
        (tmp_path / f"models/{folder}").mkdir(parents=True)
        for number in range(100):
            (tmp_path / f"models/{folder}/{number:03}.safetensors").write_bytes(small(number))
    for number in range(5):
        (tmp_path / f"models/{number}/large.safetensors").write_bytes(large)
    one = peak("verify", "--threads", 2, tmp_path / "models/0/large.safetensors")
    assert peak("verify", "--threads", 2, "-r", tmp_path / "models") <= 2 * one + (16 << 20)


def test_every_byte_is_read_if_asked_and_nan_is_said(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({"a": ("F32", [3], floats(1, float("nan"), float("nan"))), "b": ("F32", [1], floats(1))}))
    assert "NaN" not in weighbridge("verify", path).stdout
    out = weighbridge("verify", path, "--read-all").stdout
    assert "warning: 2 of 3 values are NaN (values/nan in tensor 'a')" in out and out.count("values/nan") == 1
    assert out.endswith("safetensors has no checksums; every byte was read\n")


def test_v_says_which_checks_ran(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(small())
    done = weighbridge("verify", "-v", path, "--read-all")
    assert done.stdout.count("\n") == 1
    assert done.stderr.startswith(f"{path}: structure ") and ", every byte and value " in done.stderr and done.stderr.endswith(" ms\n")
    done = weighbridge("check", "-v", path, path, "--policy", "strict")
    assert done.stderr.count(f"{path}: structure ") == 2 and done.stderr.count(", max_nan ") == 2 and done.stderr.count("\n") == 2
    weighbridge("manifest", path, "-o", tmp_path / "m.sig", "--no-sign")
    done = weighbridge("verify", "-v", path, "--manifest", tmp_path / "m.sig")
    assert done.stderr.startswith(f"{path}: signature and digests of the files ")


def test_the_reader_can_be_forced(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(small())
    assert "ok (safetensors" in weighbridge("verify", path, "--format", "safetensors").stdout
    assert "error: " in weighbridge("verify", path, "--format", "gguf", status=1).stdout
    assert "--format cannot be 'x': expected safetensors, gguf, " in weighbridge("inspect", path, "--format", "x", status=2).stderr
    weighbridge("convert", path, tmp_path / "o.zt", "--format", "gguf", status=1)
    assert "(safetensors, structure" in weighbridge("check", path, "--format", "safetensors").stdout
    assert "valid" in json.loads(weighbridge("check", path, "--format", "gguf", "--json", status=1).stdout)["files"][0]["breaches"][0]["demand"]
    forced = weighbridge("explain", path, "@8", "--format", "gguf", "--json").stdout
    assert json.loads(forced)["format"] == "gguf" and json.loads(weighbridge("explain", path, "@8", "--json").stdout)["format"] == "safetensors"
    assert weighbridge("explain", path, "w", "--format", "gguf", status=1).stderr != ""
    weighbridge("edit", path, "--set", "k=v", "--in-place", "--format", "gguf", status=1)
    weighbridge("edit", path, "--set", "k=v", "--in-place", "--format", "safetensors")
    assert "k = v" in weighbridge("inspect", path).stdout
    for words in (["embed", path, "x"], ["search", path, "x", "--corpus", path], ["similarity", path, "x", "y"]):
        assert "gguf" in weighbridge(*words, "--format", "gguf", status=1).stderr


def test_the_summary_is_in_the_json(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(safetensors({"a": ("F16", [2, 2], bytes(8))}, {
        "hf.architectures": '["Tiny"]', "hf.max_position_embeddings": "128", "hf.vocab_size": "7", "license": "mit", "tokenizer.chat_template": "x"}))
    found = validated(weighbridge("inspect", path, "--json").stdout, "inspect")["files"][0]
    assert [found[key] for key in ("architecture", "parameters", "dtype", "quantization", "context_length", "vocabulary", "chat_template",
                                   "license")] == ["Tiny", 4, "f16", None, 128, 7, True, "mit"]


def test_tied_tensors_count_once(tmp_path):
    manifest = {"version": "1.1.0", "objects": {name: {"shape": [1], "format": "dense", "components": {
        "data": {"dtype": "f32", "offset": 64, "length": 4}}} for name in ["head", "embedding"]}}
    text = cbor(manifest)
    (tmp_path / "tied.zt").write_bytes(b"ZTEN1000" + bytes(56) + floats(1) + text + struct.pack("<Q", len(text)) + b"ZTEN1000")
    assert validated(weighbridge("inspect", tmp_path / "tied.zt", "--json").stdout, "inspect")["files"][0]["parameters"] == 1
