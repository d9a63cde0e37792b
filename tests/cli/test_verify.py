# SPDX-License-Identifier: Apache-2.0
import hashlib

from conftest import safetensors, validated, weighbridge


def test_good_file(sample):
    out = weighbridge("verify", sample).stdout
    assert out == f"{sample}: ok (safetensors, 4 tensors, {sample.stat().st_size} bytes)\n".replace(
        str(sample.stat().st_size), f"{sample.stat().st_size:,}")


def test_broken_file_names_its_findings(broken):
    out = weighbridge("verify", broken, status=1).stdout
    assert out.startswith(f"{broken}: error: ") and "safetensors/" in out


def test_several_files_give_the_worst_status(sample, broken, tmp_path):
    out = weighbridge("verify", sample, broken, status=1).stdout
    assert "ok (" in out and "error" in out
    assert "ok (" in weighbridge("verify", tmp_path / "absent", broken, sample, status=4).stdout


def test_json(sample, broken, tmp_path):
    good = validated(weighbridge("verify", sample, "--json").stdout, "verify")
    assert good["valid"] is True and good["findings"] == [] and good["format"] == "safetensors"
    both = validated(weighbridge("verify", sample, broken, "--json", status=1).stdout, "verify")
    assert [v["valid"] for v in both] == [True, False]
    assert both[1]["findings"][0]["severity"] == "error"
    gone = validated(weighbridge("verify", tmp_path / "absent", "--json", status=4).stdout, "verify")
    assert gone["valid"] is False and gone["format"] is None and gone["findings"][0]["kind"] == "io"


def test_quiet_says_it_with_the_status(sample, broken):
    for path, status in ((sample, 0), (broken, 1)):
        done = weighbridge("verify", "--quiet", path, status=status)
        assert done.stdout == "" and done.stderr == ""


def test_published_digest(sample):
    digest = hashlib.sha256(sample.read_bytes()).hexdigest()
    weighbridge("verify", sample, "--sha256", digest)
    weighbridge("verify", sample, "--sha256", digest.upper())
    out = weighbridge("verify", sample, "--sha256", "0" * 64, status=1).stdout
    assert digest in out and "ok (" not in out
    weighbridge("verify", sample, "--sha256", "12", status=2)


def test_payload_is_checked(tmp_path):
    path = tmp_path / "bool.safetensors"
    path.write_bytes(safetensors({"mask": ("BOOL", [3], b"\x00\x01\x02")}))
    value = validated(weighbridge("verify", path, "--json").stdout, "verify")
    finding = value["findings"][0]
    assert value["valid"] is True and finding["severity"] == "warning"
    assert finding["tensor"] == "mask" and finding["offset"] == path.stat().st_size - 1


def test_what_is_no_tensor_file_is_named(tmp_path):
    for content, word in ((b"", "empty"), (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "LFS"),
                          (b"<!DOCTYPE html><html></html>", "HTML"), (b"PK\x03\x04" + b"\0" * 40, "zip")):
        path = tmp_path / "model.safetensors"
        path.write_bytes(content)
        assert word.lower() in weighbridge("verify", path, status=1).stdout.lower()


def test_all_statuses_for_one_thread_too(sample):
    weighbridge("verify", sample, "--threads", "1")
    weighbridge("verify", sample, "--threads", "0", status=2)
    weighbridge("verify", sample, "--threads", "many", status=2)
