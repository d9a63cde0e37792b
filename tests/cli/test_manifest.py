# SPDX-License-Identifier: Apache-2.0
"""manifest and verify --manifest: what a person signs, checks and sees, and the vectors of the specification."""
import base64
import json
import os
import shutil
import subprocess
import time

import pytest

from conftest import TEST_DATA, safetensors, validated, weighbridge

OPENSSL = shutil.which("openssl")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Nothing is remembered in the cache of who runs the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "sub/notes.txt").write_text("hello")
    (folder / "model.safetensors").write_bytes(safetensors({"a": ("U8", [50000], b"\x01" * 50000), "b": ("U8", [50000], b"\x02" * 50000)}))
    return folder


@pytest.fixture
def keys(tmp_path):
    if OPENSSL is None:
        pytest.skip("the program openssl, which makes keys, is not installed")
    for curve in ("prime256v1", "secp384r1", "secp521r1"):
        subprocess.run([OPENSSL, "ecparam", "-name", curve, "-genkey", "-noout", "-out", tmp_path / f"{curve}.pem"], check=True)
        subprocess.run([OPENSSL, "pkey", "-in", tmp_path / f"{curve}.pem", "-pubout", "-out", tmp_path / f"{curve}.pub"], check=True)
    return tmp_path


def statement(path):
    return json.loads(base64.b64decode(json.loads(path.read_text())["dsseEnvelope"]["payload"]))


def test_these_are_the_files_that_i_published(model, keys):
    for curve in ("prime256v1", "secp384r1", "secp521r1"):
        sig = keys / f"{curve}.sig"
        out = weighbridge("manifest", model, "-o", sig, "--key", keys / f"{curve}.pem").stdout
        assert out == f"{model} -> {sig}: 3 files, 97.8 KiB, signed with a key\n"
        out = weighbridge("verify", model, "--manifest", sig, "--public-key", keys / f"{curve}.pub").stdout
        assert out == f"{model}: ok (3 files, 97.8 KiB), signed with the key\n"
        other = "secp384r1" if curve != "secp384r1" else "secp521r1"
        out = weighbridge("verify", model, "--manifest", sig, "--public-key", keys / f"{other}.pub", status=1).stdout
        assert "signed with another key" in out and "no file was compared" in out
    # The layout of the specification: names in order, the root over their digests, the ignored paths.
    found = statement(sig)
    assert [each["name"] for each in found["predicate"]["resources"]] == ["config.json", "model.safetensors", "sub/notes.txt"]
    assert found["predicate"]["serialization"] == {"method": "files", "hash_type": "sha256", "allow_symlinks": False,
                                                   "ignore_paths": [".git", ".gitattributes", ".github", ".gitignore"]}
    # OpenSSL itself accepts the signature over DSSE's encoding.
    envelope = json.loads(sig.read_text())["dsseEnvelope"]
    payload = base64.b64decode(envelope["payload"])
    (keys / "pae").write_bytes(b"DSSEv1 28 application/vnd.in-toto+json %d " % len(payload) + payload)
    (keys / "der").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    subprocess.run([OPENSSL, "dgst", "-sha512", "-verify", keys / "secp521r1.pub", "-signature", keys / "der", keys / "pae"], check=True,
                   capture_output=True)


def test_each_difference_is_named(model, keys):
    sig = keys / "model.sig"
    weighbridge("manifest", model, "-o", sig, "--per-tensor", "--key", keys / "prime256v1.pem")
    content = bytearray((model / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (model / "model.safetensors").write_bytes(content)
    (model / "config.json").unlink()
    (model / "sub/new").write_text("x")
    check = ["verify", model, "--manifest", sig, "--public-key", keys / "prime256v1.pub"]
    lines = weighbridge(*check, status=1).stdout.splitlines()
    assert lines[0] == f"{model}/config.json: error: the manifest lists this file, and it is not there (manifest/missing)"
    assert lines[1].startswith(f"{model}/model.safetensors: error: the file is not the one in the manifest: expected the SHA-256 ")
    assert lines[2] == f"{model}/model.safetensors: error: this tensor is not the one in the manifest (manifest/tensor in tensor 'b')"
    assert lines[3] == f"{model}/sub/new: error: the manifest does not list this file (manifest/additional)"
    assert lines[4].startswith(f"{model}: NOT what the manifest lists (2 files")
    found = validated(weighbridge(*check, "--json", status=1).stdout, "verify_manifest")["files"][0]
    assert [(each["what"], each["file"], each["tensors"]) for each in found["differences"]] == [
        ("missing", "config.json", None), ("changed", "model.safetensors", ["b"]), ("additional", "sub/new", None)]
    assert weighbridge(*check, "--quiet", status=1).stdout == ""
    weighbridge(*check, "--only", "sub/notes.txt")
    (model / "config.json").write_text("{}")
    content[-1] ^= 1
    (model / "model.safetensors").write_bytes(content)
    weighbridge(*check, status=1)
    weighbridge(*check, "--ignore-unsigned-files")
    weighbridge(*check, "--ignore", "sub/n*w")


def test_an_empty_key_is_not_taken_for_none(model, keys, tmp_path):
    sig, empty = tmp_path / "model.sig", tmp_path / "empty.pem"
    empty.write_text("")
    weighbridge("manifest", model, "-o", sig, "--key", keys / "prime256v1.pem")
    for flag in "--key", "--roots":
        assert "empty.pem: the file is empty, so it is not a key or certificate" in weighbridge("verify", model, "--manifest", sig, flag, empty, status=2).stderr
    weighbridge("manifest", model, "-o", tmp_path / "other.sig", "--key", empty, status=2)
    assert not (tmp_path / "other.sig").exists()


def test_what_no_signature_proves(model, tmp_path):
    sig = tmp_path / "model.sig"
    out = weighbridge("manifest", model, "-o", sig).stdout
    assert "not signed\n  without a signature it shows that the files did not change after it was made, not who published them" in out
    assert "without" not in weighbridge("manifest", model, "-o", sig, "--force", "--no-sign").stdout
    out = weighbridge("verify", model, "--manifest", sig).stdout
    assert "not who made it (manifest/unsigned)" in out and out.endswith("not signed\n")
    assert validated(weighbridge("manifest", model, "-o", sig, "--force", "--json").stdout, "manifest")["method"] == "none"
    weighbridge("manifest", model, "-o", sig, "--key", sig, "--no-sign", status=2)


def test_a_signature_that_nobody_checked_is_status_3(model, keys):
    sig = keys / "model.sig"
    weighbridge("manifest", model, "-o", sig, "--key", keys / "prime256v1.pem")
    assert "signature NOT CHECKED: no public key was given" in weighbridge("verify", model, "--manifest", sig, status=3).stdout
    assert validated(weighbridge("verify", model, "--manifest", sig, "--json", status=3).stdout, "verify_manifest")["files"][0]["signature"] == "unchecked"
    # Whoever gives a key expects a signature, so a list without one is an error.
    weighbridge("manifest", model, "-o", sig, "--force", "--no-sign")
    assert "(manifest/unsigned)" in weighbridge("verify", model, "--manifest", sig, "--public-key", keys / "prime256v1.pub", status=1).stdout


def test_the_manifest_beside_the_weights_leaves_itself_out(model, keys):
    for name in ("model.sig", "sub/model.sig"):
        weighbridge("manifest", model, "-o", model / name, "--key", keys / "prime256v1.pem")
        assert statement(model / name)["predicate"]["serialization"]["ignore_paths"].count(name) == 1
        weighbridge("verify", model, "--manifest", model / name, "--key", keys / "prime256v1.pub")
        (model / name).unlink()


def test_force_replaces_manifests_only(model, keys):
    before = (model / "model.safetensors").read_bytes()
    assert "is not a manifest" in weighbridge("manifest", model, "-o", model / "model.safetensors", "--force", status=2).stderr
    assert "is not a manifest" in weighbridge("manifest", model, "-o", keys / "prime256v1.pem", "--force", status=2).stderr
    assert (model / "model.safetensors").read_bytes() == before
    weighbridge("manifest", model, "-o", keys / "a.sig")
    weighbridge("manifest", model, "-o", keys / "a.sig", status=2)
    weighbridge("manifest", model, "-o", keys / "a.sig", "--force")


def test_ranges_are_checked_one_by_one(model, keys):
    sig = keys / "model.sig"
    out = weighbridge("manifest", model, "-o", sig, "--shard-size", 30000, "--key", keys / "prime256v1.pem").stdout
    assert "3 files in 6 ranges" in out
    names = [each["name"] for each in statement(sig)["predicate"]["resources"]]
    assert "model.safetensors:90000:100" in "".join(names) and names == sorted(names)
    with open(model / "model.safetensors", "r+b") as file:
        file.seek(65000)
        file.write(b"x")
    check = ["verify", model, "--manifest", sig, "--public-key", keys / "prime256v1.pub"]
    assert "these ranges differ: model.safetensors:60000:90000" in weighbridge(*check, status=1).stdout
    weighbridge(*check, "--only", "model.safetensors:0:*")
    weighbridge(*check, "--only", "model.safetensors:6*", status=1)
    weighbridge("manifest", model, "-o", sig, "--force", "--shard-size", 0, status=2)


@pytest.mark.skipif(OPENSSL is None, reason="the program openssl, which makes certificates, is not installed")
def test_certificates(model, tmp_path):
    def openssl(*arguments):
        subprocess.run([OPENSSL, *arguments], check=True, cwd=tmp_path, capture_output=True)

    def extensions(text):
        (tmp_path / "ext").write_text(text)
        return "ext"

    for name in ("root", "other", "signer"):
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.pem")
    for name in ("root", "other"):
        openssl("req", "-x509", "-new", "-key", f"{name}.pem", "-subj", f"/CN={name}", "-days", "30", "-out", f"{name}.crt",
                "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", "-new", "-key", "signer.pem", "-subj", "/CN=Someone\x1b[31m", "-out", "signer.csr", "-utf8")

    def issue(text):
        openssl("x509", "-req", "-in", "signer.csr", "-CA", "root.crt", "-CAkey", "root.pem", "-CAcreateserial", "-days", "10", "-out",
                "signer.crt", "-extfile", extensions(text))

    sign = ["manifest", model, "-o", tmp_path / "model.sig", "--force", "--certificate", tmp_path / "signer.crt", "--key", tmp_path / "signer.pem"]
    check = ["verify", model, "--manifest", tmp_path / "model.sig", "--roots"]
    issue("keyUsage=critical,digitalSignature\nextendedKeyUsage=codeSigning\n")
    assert "signed with a certificate" in weighbridge(*sign).stdout
    out = weighbridge(*check, tmp_path / "root.crt").stdout
    assert "signed by CN=Someone" in out and "\x1b" not in out
    assert "does not lead to the roots" in weighbridge(*check, tmp_path / "other.crt", status=1).stdout
    assert "no root certificates were given" in weighbridge(*check[:-1], status=3).stdout
    assert "has no certificate" in weighbridge(*check, tmp_path / "signer.pem", status=2).stderr
    issue("extendedKeyUsage=serverAuth\n")
    assert "is not for signing" in weighbridge(*sign, status=2).stderr
    weighbridge(*sign, "--key", tmp_path / "root.pem", status=2)


def test_keys_that_cannot_sign(model, keys):
    def refused(*arguments):
        return weighbridge("manifest", model, "-o", keys / "x.sig", *arguments, status=2).stderr

    subprocess.run([OPENSSL, "genrsa", "-out", keys / "rsa.pem", "2048"], check=True, capture_output=True)
    subprocess.run([OPENSSL, "pkey", "-in", keys / "prime256v1.pem", "-aes256", "-passout", "pass:x", "-out", keys / "locked.pem"], check=True)
    assert f"{keys}/rsa.pem: this is a key of type RSA" in refused("--key", keys / "rsa.pem")
    assert f"{keys}/locked.pem: the private key is encrypted" in refused("--key", keys / "locked.pem")
    assert "is a public key" in refused("--key", keys / "prime256v1.pub")
    assert "not a private key in PEM form" in refused("--key", model / "config.json")
    assert not (keys / "x.sig").exists()


def test_an_unchanged_file_is_not_read_again(model, keys, cache):
    sig, state = keys / "model.sig", keys / "state.json"
    weighbridge("manifest", model, "-o", sig, "--no-sign")
    check = ["verify", model, "--manifest", sig, "--json"]

    def remembered(*arguments):
        return json.loads(weighbridge(*check, *arguments).stdout)["files"][0]["remembered"]

    time.sleep(3.1)  # what has just changed is not remembered, and no call sets the time of a change
    kept = f"--cache={state}"
    assert (remembered(kept), remembered(kept), remembered()) == (0, 3, 0)
    assert not cache.exists()
    assert (remembered("--cache"), remembered("--cache"), remembered(), remembered("--cache")) == (0, 3, 0, 3)
    assert len(list((cache / "weighbridge").iterdir())) == 1
    # The word after --cache is the model.
    weighbridge("verify", "--manifest", sig, "--cache", model)
    before = (model / "config.json").stat()
    (model / "config.json").write_text("[]")  # the same size, and the old time
    os.utime(model / "config.json", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "config.json: error: the file is not the one" in weighbridge(*check[:-1], "--cache", status=1).stdout
    out = weighbridge("verify", model, "--manifest", sig, "--only-file", "sub/*", "--cache").stdout
    assert "not read again, unchanged since the last check: 1 file (without --cache all are read)" in out


def test_usage(model, tmp_path):
    sig = tmp_path / "model.sig"
    weighbridge("manifest", model, status=2)
    weighbridge("manifest", tmp_path / "absent", "-o", sig, status=4)
    (tmp_path / "empty").mkdir()
    assert "no file to list" in weighbridge("manifest", tmp_path / "empty", "-o", sig, status=2).stderr
    assert not sig.exists()
    weighbridge("manifest", model, "-o", sig, "--no-sign")
    weighbridge("verify", model, model, "--manifest", sig, status=2)
    weighbridge("verify", model, "--manifest", tmp_path / "absent", status=4)
    weighbridge("verify", tmp_path / "absent", "--manifest", sig, status=4)
    assert "not checked" in weighbridge("verify", model, "--manifest", model / "config.json", status=1).stdout
    validated(weighbridge("verify", model, "--manifest", model / "config.json", "--json", status=1).stdout, "verify_manifest")["files"][0]
    assert "--allow-symlinks" in _with_link(model, sig)


def _with_link(model, sig):
    (model / "link").symlink_to("config.json")
    said = weighbridge("manifest", model, "-o", sig, "--force", status=2).stderr
    weighbridge("manifest", model, "-o", sig, "--force", "--allow-symlinks")
    weighbridge("verify", model, "--manifest", sig)
    return said


VECTORS = TEST_DATA / "model-signing-spec/test-vectors/v1.0"
REFERENCE = TEST_DATA / "model-transparency/scripts/tests"
needs_vectors = pytest.mark.skipif(not VECTORS.is_dir(), reason="WEIGHBRIDGE_TEST_DATA has no checkout of ossf/model-signing-spec")
needs_reference = pytest.mark.skipif(not REFERENCE.is_dir(), reason="WEIGHBRIDGE_TEST_DATA has no checkout of sigstore/model-transparency")


@needs_vectors
def test_the_specifications_own_vectors(model):
    def findings(path):
        found = json.loads(weighbridge("verify", model, "--manifest", path, "--json", status=1).stdout)["files"][0]
        return found, {each["rule"] for each in found["findings"]}

    valid = sorted((VECTORS / "valid").glob("*.json"))
    assert len(valid) == 3
    for path in valid:  # of other files than ours: read, and compared
        found, rules = findings(path)
        assert rules == {"manifest/missing", "manifest/additional"} and found["files"] == 2
        assert (found["method"], found["signature"]) == (path.name.split(".")[0], "unchecked")
    invalid = sorted((VECTORS / "invalid").glob("*.json"))
    assert len(invalid) == 4
    for path in invalid:
        assert findings(path)[1] == {"manifest/bundle"}
    for path in sorted((VECTORS / "invalid-payload").glob("*.json")):
        assert findings(path)[1] == {"manifest/statement"}


@needs_reference
@pytest.mark.parametrize("version", ["v0.2.0", "v0.3.1", "v1.0.0", "v1.0.1", "v1.1.0"])
def test_bundles_of_every_version_of_the_reference(version, tmp_path):
    keys = REFERENCE / "keys/certificate"
    for method, trust, status in (("certificate", ["--roots", keys / "ca-cert.pem"], 0),
                                  ("elliptic-key", ["--key", keys / "signing-key-pub.pem"], 0), ("sigstore", [], 3)):
        source = REFERENCE / f"{version}-{method}"
        if not source.is_dir():
            assert version == "v0.2.0" or (version, method) == ("v0.3.1", "none")
            continue
        folder = tmp_path / method
        shutil.copytree(source, folder)
        given = folder / "signme-1" if method == "elliptic-key" and version in ("v0.3.1", "v1.0.0") else folder
        more = ["--ignore", "ignore-me"] if version == "v1.0.1" else []
        check = ["verify", given, "--manifest", folder / "model.sig", *more]
        weighbridge(*check, *trust, status=status)
        weighbridge(*check, status=3)
        if method == "certificate":  # the leaf is not a root
            weighbridge(*check, "--roots", keys / "signing-key-cert.pem", status=1)
        with open(folder / "signme-1", "ab") as file:
            file.write(b"!")
        assert "signme-1: error: the file is not the one in the manifest" in weighbridge(*check, *trust, status=1).stdout
        bundle = json.loads((folder / "model.sig").read_text())
        payload = base64.b64decode(bundle["dsseEnvelope"]["payload"]).replace(b"signme-1", b"signme-3")
        bundle["dsseEnvelope"]["payload"] = base64.b64encode(payload).decode()
        (folder / "model.sig").write_text(json.dumps(bundle))
        signed = json.loads(weighbridge(*check, *trust, "--json", status=1).stdout)["files"][0]
        assert signed["signature"] == "invalid" and signed["compared"] == 0


def test_an_output_that_cannot_be_looked_at_is_no_internal_error(model, tmp_path):
    """With --force, a loop of links was said to be a fault of the program."""
    (tmp_path / "loop").symlink_to("loop")
    said = weighbridge("manifest", model, "-o", tmp_path / "loop", "--no-sign", "--force", status=4).stderr
    assert said.startswith(f"weighbridge: {tmp_path / 'loop'}: ") and "internal error" not in said
