# SPDX-License-Identifier: Apache-2.0
import hashlib
import json
import pathlib
import subprocess

from conftest import COMMAND, ROOT, safetensors, validated, weighbridge


def test_good_file(sample):
    out = weighbridge("verify", sample).stdout
    assert out == f"{sample}: ok (safetensors, 4 tensors, {sample.stat().st_size} bytes), structure only: safetensors has no checksums\n".replace(
        str(sample.stat().st_size), f"{sample.stat().st_size:,}")


def test_broken_file_names_its_findings(broken):
    out = weighbridge("verify", broken, status=1).stdout
    assert out.startswith(f"{broken}: error: ") and "safetensors/" in out


def test_several_files_give_the_worst_status(sample, broken, tmp_path):
    out = weighbridge("verify", sample, broken, status=1).stdout
    assert "ok (" in out and "error" in out
    assert "ok (" in weighbridge("verify", tmp_path / "absent", broken, sample, status=4).stdout


def test_json(sample, broken, tmp_path):
    good = validated(weighbridge("verify", sample, "--json").stdout, "verify")["files"][0]
    assert good["valid"] is True and good["findings"] == [] and good["format"] == "safetensors"
    both = validated(weighbridge("verify", sample, broken, "--json", status=1).stdout, "verify")["files"]
    assert [v["valid"] for v in both] == [True, False]
    assert both[1]["findings"][0]["severity"] == "error"
    gone = validated(weighbridge("verify", tmp_path / "absent", "--json", status=4).stdout, "verify")["files"][0]
    assert gone["valid"] is False and gone["format"] is None and gone["findings"][0]["kind"] == "io"


def test_digests_of_whole_files_are_told(tmp_path):
    """A root of zTensor 2 has the digests of its shards, which are compared. Once, the output said that there were
    none."""
    corpus = ROOT / "corpus/zt2"
    assert weighbridge("verify", corpus / "valid-shard-unused.zt").stdout.endswith(", structure and digests of 1 file\n")
    assert weighbridge("verify", corpus / "valid-shard-unused-missing.zt").stdout.endswith(", structure only: the file has no checksums\n")
    stored = validated(weighbridge("inspect", "--json", corpus / "valid-shard-unused.zt").stdout, "inspect")["files"][0]["checksums"]
    assert [(name, text[:5]) for name, text in stored.items()] == [("file valid-shard-unused-base.zt", "xxh3:")]


def test_what_was_checked_besides_the_sha256_is_told(sample, tmp_path):
    """Once, it was only "structure and SHA-256", whatever digests the file has."""
    out = tmp_path / "out.zt"
    weighbridge("convert", sample, out, "--digest", "sha256")
    for path, said in ((sample, "structure and SHA-256"), (out, "structure and digests, and SHA-256")):
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        assert weighbridge("verify", path, "--sha256", sha256).stdout.endswith(f", {said}\n")


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
    value = validated(weighbridge("verify", path, "--json").stdout, "verify")["files"][0]
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


def test_a_folder_among_several_files_ends_nothing(sample, broken, tmp_path):
    """The files after it are read, each is named, and the worst status is returned."""
    folder = tmp_path / "d"
    folder.mkdir()
    done = weighbridge("verify", folder, sample, broken, status=1)
    assert "ok (" in done.stdout and str(broken) in done.stdout and str(folder) in done.stderr
    done = weighbridge("verify", tmp_path / "nosuch", broken, folder, sample, status=4)
    assert "ok (" in done.stdout and "nosuch" in done.stderr and str(folder) in done.stderr
    assert len(weighbridge("hash", folder, sample, status=2).stdout.splitlines()) == 1


def test_standard_input_is_read_once(sample):
    done = weighbridge("verify", "-", "-", status=2, stdin=open(sample, "rb"))
    assert "once" in done.stderr and "ok (" in done.stdout


def test_a_pipe_by_its_name_is_told_of_the_dash(sample):
    done = subprocess.run(["sh", "-c", 'cat "$1" | "$0" verify /dev/stdin', COMMAND, sample], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 2 and b"give -" in done.stderr


def test_a_published_digest_may_have_a_blank_from_a_copy(sample):
    digest = hashlib.sha256(sample.read_bytes()).hexdigest()
    weighbridge("verify", sample, "--sha256", f" {digest.upper()}\n")
    assert "not 'abc', which has 3" in weighbridge("verify", sample, "--sha256", "abc", status=2).stderr


def test_a_sentence_has_the_path_of_the_file_at_fault_once(sample, tmp_path):
    for arguments, fault in ((["inspect", "nosuch"], "nosuch: cannot be opened: "), (["verify", "."], ".: this is a directory"),
                             (["inspect", ""], "the path is empty"), (["convert", sample, "nodir/out.zt"], "nodir: the folder cannot be opened: "),
                             (["extract", sample, "steps", "-o", "nodir/x.npy"], "nodir: the folder cannot be opened: ")):
        done = subprocess.run([COMMAND, *map(str, arguments)], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        assert done.stderr.decode().startswith(f"weighbridge: {fault}"), done.stderr


def test_an_offset_lies_in_the_file_that_the_finding_names():
    """For every file of the corpus, including sidecars and tokenizer files."""
    names = sorted(str(path) for path in (ROOT / "corpus").glob("*/*") if path.suffix not in {".json", ".md"})
    done = subprocess.run([COMMAND, "verify", "--json", *names], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    beside = 0
    for verdict in json.loads(done.stdout)["files"]:
        for finding in verdict["findings"]:
            file = pathlib.Path(finding["file"] or verdict["path"])
            assert (finding["offset"] or 0) <= file.stat().st_size, finding
            beside += finding["file"] is not None
    assert beside > 20


def test_a_finding_in_a_sidecar_names_the_sidecar():
    model = ROOT / "corpus/stb/sidecar-duplicate-function.stb"
    sidecar = model.with_suffix(".khm.json")
    [finding] = validated(weighbridge("verify", model, "--json", status=1).stdout, "verify")["files"][0]["findings"]
    assert finding["file"] == str(sidecar) and finding["offset"] == 99 <= sidecar.stat().st_size
    assert weighbridge("verify", model, status=1).stdout.startswith(f"{sidecar}: error: ")


def test_a_sidecar_that_does_not_fit_its_stb_says_which_file_it_means(tmp_path):
    source, stb, sidecar = tmp_path / "in.safetensors", tmp_path / "w.stb", tmp_path / "w.khm.json"
    source.write_bytes(safetensors({"w": ("F32", [1], b"1234")}))
    weighbridge("convert", source, stb, "--allow", "name")
    sidecar.write_text(json.dumps({"schema": 1, "files": [{"id": 0, "path": "w.stb", "size": 5}]}))
    size = stb.stat().st_size
    said = weighbridge("verify", stb, status=1).stdout
    assert f"{sidecar}: error: the .stb does not have the size that its sidecar states (expected 5 bytes, found {size} bytes" in said


def test_external_data_with_hard_links_are_what_onnx_refuses(tmp_path):
    for name in ("valid-external.onnx", "valid-external.data"):
        (tmp_path / name).write_bytes((ROOT / "corpus/onnx" / name).read_bytes())
    model = tmp_path / "valid-external.onnx"
    assert "onnx/external-hard-link" not in weighbridge("verify", "--strict", model).stdout
    (tmp_path / "another.data").hardlink_to(tmp_path / "valid-external.data")
    assert "found 2 names) (onnx/external-hard-link" in weighbridge("verify", model).stdout
    weighbridge("verify", "--strict", model, status=1)
    assert "onnx/external-hard-link" in weighbridge("inspect", model).stderr


def test_an_attribute_that_cannot_be_read_is_no_unsupported_tensor():
    assert "ok (hdf5, 0 tensors, " in weighbridge("verify", ROOT / "corpus/hdf5/heap-kind.h5", status=3).stdout
