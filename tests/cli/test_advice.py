# SPDX-License-Identifier: Apache-2.0
"""Advice that can be followed: what a message tells one to do works, and costs no file."""
import gzip
import json
import shlex
import shutil
import subprocess
import zipfile

import pytest

from conftest import COMMAND, ROOT, safetensors, validated, weighbridge

CORPUS = ROOT / "corpus"


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"a": ("U8", [4], b"abcd"), "b": ("U8", [2], b"ef")}))
    return path


def losses(source, out, *flags):
    done = validated(weighbridge("convert", "--json", source, out, *flags).stdout, "convert")
    return [(loss["kind"], loss["subject"], loss["from"]) for loss in done["losses"]]


def test_a_member_of_an_npz_that_is_no_array_vanished_from_the_losses(tmp_path):
    whole = tmp_path / "extra.npz"
    shutil.copy(CORPUS / "npz/array-valid-dtype-f32.npz", whole)
    with zipfile.ZipFile(whole, "a") as archive:
        archive.writestr("readme.txt", "where this came from")
    assert ("file", 'files["readme.txt"]', "a member that is not an array") in losses(whole, tmp_path / "out.zt", "--allow", "attribute")
    assert "readme.txt" in weighbridge("convert", whole, tmp_path / "again.zt").stdout


def test_what_is_left_behind_took_memory_without_bound(tmp_path):
    many = tmp_path / "many.npz"
    shutil.copy(CORPUS / "npz/array-valid-dtype-f32.npz", many)
    with zipfile.ZipFile(many, "a") as archive:
        for i in range(1500):
            archive.writestr(f"notes/{i}.txt", "x")
    found = losses(many, tmp_path / "out.zt", "--allow", "attribute")
    assert len(found) == 1001 and found[-1] == ("file", "others", "more than a thousand are not named")
    assert "and 977 more: left behind" in weighbridge("convert", many, tmp_path / "again.zt").stdout


def test_a_link_of_hdf5_vanished_from_the_losses(tmp_path):
    found = losses(CORPUS / "hdf5/link.h5", tmp_path / "out.zt")
    assert [(kind, was) for kind, subject, was in found if subject.startswith('links["')] and all(kind == "file" for kind, *_ in found), found


def test_what_pytorch_alone_can_read_vanished_from_the_losses(tmp_path):
    assert any(kind == "file" and subject.startswith('values["') for kind, subject, _ in losses(CORPUS / "pytorch/opaque.pt", tmp_path / "out.zt"))
    script = losses(CORPUS / "pytorch/valid-script.pt", tmp_path / "script.zt")
    assert any((kind, subject) == ("file", "code") for kind, subject, _ in script), script


def test_the_command_to_rename_replaced_another_file(model):
    wrong, other = model.with_suffix(".gguf"), model.with_name("kept.safetensors")
    model.rename(wrong)
    other.write_bytes(b"another model")
    (model.parent / "model.safetensors").write_bytes(b"another model")
    [line] = [line.strip() for line in weighbridge("doctor", wrong).stdout.splitlines() if line.strip().startswith("mv ")]
    subprocess.run(["sh", "-c", line], check=False)
    assert model.read_bytes() == b"another model"


def test_the_command_to_decompress_replaced_another_file(model):
    packed = model.with_name("model.safetensors.gz")
    packed.write_bytes(gzip.compress(model.read_bytes()))
    before = model.read_bytes()
    [line] = [line.strip() for line in weighbridge("doctor", packed, status=1).stdout.splitlines() if " > " in line]
    written = shlex.split(line.rpartition(" > ")[2])[0]
    assert written != str(model)
    subprocess.run(["sh", "-c", line], check=True)
    assert model.read_bytes() == before
    weighbridge("verify", written)


def test_a_pickle_that_can_run_code_was_to_be_downloaded_again(tmp_path):
    found = validated(weighbridge("doctor", "--json", CORPUS / "pytorch/dangerous-global.pt", status=1).stdout, "doctor")["files"][0]
    assert found["condition"] == "suspicious" and [each["what"] for each in found["advice"]][0] == "distrust"
    assert "download" not in weighbridge("doctor", CORPUS / "pytorch/dangerous-global.pt", status=1).stdout


def test_bytes_after_the_end_were_called_sound(tmp_path):
    longer = tmp_path / "longer.gguf"
    longer.write_bytes(sorted((CORPUS / "gguf").glob("valid*.gguf"))[0].read_bytes() + b"\1" * 5)
    found = json.loads(weighbridge("doctor", "--json", longer, status=1).stdout)["files"][0]
    assert found["condition"] != "sound"


def test_resume_from_had_no_json(model):
    model.write_bytes(model.read_bytes()[:-3])
    found = validated(weighbridge("doctor", model, "--resume-from", "--json").stdout, "doctor")["files"][0]
    assert [each["what"] for each in found["advice"]][0] == "fetch-rest"


def test_swapped_operands_got_the_advice_to_replace_the_only_model(model, tmp_path):
    said = weighbridge("convert", tmp_path / "new.gguf", model, status=4).stderr
    assert "--overwrite" not in said and "new.gguf" in said


def test_a_name_of_a_format_that_is_only_read(model, tmp_path):
    assert "can be read, not written" in weighbridge("convert", model, tmp_path / "out.h5", status=2).stderr
    assert "--to pytorch" in weighbridge("convert", model, tmp_path / "out.bin", status=2).stderr


def test_names_that_promise_another_kind_of_file(model, tmp_path):
    assert "end the name" in weighbridge("inspect", model, "--plot", tmp_path / "plot.png", status=2).stderr
    assert "end the name" in weighbridge("diff", model, model, "--plot", tmp_path / "plot.png", status=2).stderr
    assert not (tmp_path / "plot.png").exists()


def test_one_unit_meant_two_sizes(model):
    for size in ("1000", "1K", "1KB", "1KiB", "1.5k"):
        weighbridge("verify", model, "--limit", f"header={size}")
    assert "at most 10 bytes" in weighbridge("verify", model, "--limit", "header=0.01KiB", status=1).stdout
    assert "header is a size above 0 such as 5GB" in weighbridge("verify", model, "--limit", "header=2parsecs", status=2).stderr


def test_a_number_instead_of_an_offset(model):
    assert "@3" in weighbridge("explain", model, "3", status=2).stderr


def test_a_model_that_is_no_adapter(model, tmp_path):
    assert "this is not an adapter" in weighbridge("convert", model, tmp_path / "out.safetensors", "--merge-lora", model, status=2).stderr


def test_the_command_for_shards_without_a_config_failed(tmp_path):
    source, folder = tmp_path / "m.safetensors", tmp_path / "shards"
    source.write_bytes(safetensors({"a": ("U8", [4000], b"a" * 4000), "b": ("U8", [4000], b"b" * 4000)}))
    weighbridge("convert", source, f"{folder}/", "--to", "safetensors", "--max-shard-size", "5K")
    said = weighbridge("edit", folder, "--rename", "a=c", "-i", status=2).stderr
    line = said.partition("to do: ")[2].strip()
    words = [str(COMMAND) if word == "weighbridge" else word for word in shlex.split(line)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_manifest_of_files_counted_no_tensors(model, tmp_path):
    made = validated(weighbridge("manifest", model, "-o", tmp_path / "m.sig", "--json").stdout, "manifest")
    assert made["tensors"] is None
