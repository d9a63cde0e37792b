# SPDX-License-Identifier: Apache-2.0
"""Manifests beside model-signing, the reference of OpenSSF Model Signing: each checks what the other signs, and refuses what was changed."""
import base64
import json
import os
import pathlib
import shutil
import subprocess

import pytest

model_signing = pytest.importorskip("model_signing", reason="model_signing is missing: make interop PEER=model-signing makes the environment")
from model_signing import hashing, signing, verifying  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("WEIGHBRIDGE") or str(ROOT / "build/release/weighbridge")
CURVES = ["prime256v1", "secp384r1", "secp521r1"]


def weighbridge(*arguments, status=0):
    done = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == status, (arguments, done.returncode, done.stdout, done.stderr)
    return done.stdout


def openssl(*arguments):
    subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def model(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("the program openssl, which makes keys, is not installed")
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").mkdir()
    for name, content in {"config.json": b"{}", "weights.bin": bytes(range(256)) * 1000, "sub/a.txt": b"a", "sub-b": b"b", "\u00e9.txt": b"e",
                          ".git/HEAD": b"ref", ".gitattributes": b"*", "sub/.gitignore": b"x"}.items():
        (folder / name).write_bytes(content)
    for curve in CURVES:
        openssl("ecparam", "-name", curve, "-genkey", "-noout", "-out", tmp_path / f"{curve}.pem")
        openssl("pkey", "-in", tmp_path / f"{curve}.pem", "-pubout", "-out", tmp_path / f"{curve}.pub")
    return folder


def accepts(verifier, model, signature):
    try:
        verifier.verify(model, signature)
    except Exception:  # of several classes
        return False
    return True


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("flags", [[], ["--per-tensor"], ["--ignore", "sub*"]])
def test_the_package_checks_what_we_sign(model, tmp_path, curve, flags):
    signature = model / "model.sig"
    weighbridge("manifest", model, "-o", signature, "--key", tmp_path / f"{curve}.pem", *flags)
    verifier = verifying.Config().use_elliptic_key_verifier(public_key=tmp_path / f"{curve}.pub")
    verifier.verify(model, signature)
    other = CURVES[CURVES.index(curve) - 1]
    assert not accepts(verifying.Config().use_elliptic_key_verifier(public_key=tmp_path / f"{other}.pub"), model, signature)
    (model / "config.json").write_bytes(b"[]")
    assert not accepts(verifying.Config().use_elliptic_key_verifier(public_key=tmp_path / f"{curve}.pub"), model, signature)


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("form", ["files", "shards"])
def test_we_check_what_the_package_signs(model, tmp_path, curve, form):
    signature = model / "model.sig"
    how = hashing.Config().set_ignored_paths(paths=[signature], ignore_git_paths=True)
    if form == "shards":
        how = how.use_shard_serialization(shard_size=100000)
    signing.Config().use_elliptic_key_signer(private_key=tmp_path / f"{curve}.pem").set_hashing_config(how).sign(model, signature)
    check = ["verify", model, "--manifest", signature, "--key"]
    weighbridge(*check, tmp_path / f"{curve}.pub")
    weighbridge(*check, tmp_path / f"{CURVES[CURVES.index(curve) - 1]}.pub", status=1)
    (model / "weights.bin").write_bytes((model / "weights.bin").read_bytes()[:-1] + b"!")
    out = weighbridge(*check, tmp_path / f"{curve}.pub", status=1)
    assert "weights.bin: error: the file is not the one in the manifest" in out and out.count("error:") == 1


def test_ranges_are_those_of_the_package(model, tmp_path):
    """The package calls their digests "sha256-sharded-N", where section 6.3.2 wants "sha256", so it checks no other program's ranges."""
    signature = tmp_path / "model.sig"
    weighbridge("manifest", model, "-o", signature, "--shard-size", 1000)
    payload = json.loads(base64.b64decode(json.loads(signature.read_text())["dsseEnvelope"]["payload"]))
    ours = {each["name"]: (each["algorithm"], each["digest"]) for each in payload["predicate"]["resources"]}
    theirs = hashing.Config().use_shard_serialization(shard_size=1000).hash(model)
    assert ours == {each.identifier: (each.digest.algorithm.removesuffix("-sharded-1000"), each.digest.digest_hex)
                    for each in theirs.resource_descriptors()}


def test_one_file(model, tmp_path):
    signature, file = tmp_path / "model.sig", model / "weights.bin"
    signing.Config().use_elliptic_key_signer(private_key=tmp_path / "prime256v1.pem").sign(file, signature)
    weighbridge("verify", file, "--manifest", signature, "--key", tmp_path / "prime256v1.pub")
    weighbridge("verify", model / "config.json", "--manifest", signature, "--key", tmp_path / "prime256v1.pub", status=1)
    # The specification wants the name of the file, which the package accepts of a folder with only this file.
    weighbridge("manifest", file, "-o", signature, "--force", "--key", tmp_path / "prime256v1.pem")
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(file, alone)
    verifying.Config().use_elliptic_key_verifier(public_key=tmp_path / "prime256v1.pub").verify(alone, signature)


def test_certificates(model, tmp_path):
    (tmp_path / "ext").write_text("keyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\n")
    root, key, leaf = tmp_path / "root.crt", tmp_path / "secp384r1.pem", tmp_path / "leaf.crt"
    openssl("req", "-x509", "-new", "-key", tmp_path / "prime256v1.pem", "-subj", "/CN=root", "-days", "30", "-out", root)
    openssl("req", "-new", "-key", key, "-subj", "/CN=me", "-out", tmp_path / "csr")
    openssl("x509", "-req", "-in", tmp_path / "csr", "-CA", root, "-CAkey", tmp_path / "prime256v1.pem", "-CAcreateserial", "-days", "10",
            "-out", leaf, "-extfile", tmp_path / "ext")
    ours, theirs = tmp_path / "ours.sig", tmp_path / "theirs.sig"
    weighbridge("manifest", model, "-o", ours, "--certificate", leaf, "--key", key)
    verifying.Config().use_certificate_verifier(certificate_chain=[root]).verify(model, ours)
    signing.Config().use_certificate_signer(private_key=key, signing_certificate=leaf, certificate_chain=[root]).sign(model, theirs)
    assert "signed by CN=me" in weighbridge("verify", model, "--manifest", theirs, "--roots", root)
    weighbridge("verify", model, "--manifest", theirs, "--roots", leaf, status=1)
