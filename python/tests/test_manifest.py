# SPDX-License-Identifier: Apache-2.0
"""wb.manifest, and wb.verify with a manifest. A wheel without OpenSSL lists and compares, and does not sign."""
import shutil
import subprocess

import pytest
import weighbridge as wb
from weighbridge import _core


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"a" * 5000)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_list_without_a_signature(model, tmp_path, monkeypatch):
    sig = tmp_path / "model.sig"
    made = wb.manifest(model, sig)
    assert made.files == 2 and made.method == "none" and made.range_size is None
    found = wb.verify(model, manifest=sig)
    assert found and found.signature == "none" and found.compared == 2 and not found.differences
    assert wb.verify(model, manifest=sig.read_bytes())
    (model / "config.json").write_text("[]")
    (model / "new").write_text("n")
    found = wb.verify(model, manifest=sig)
    assert not found and [(each.what, each.file) for each in found.differences] == [("changed", "config.json"), ("additional", "new")]
    assert not wb.verify(model, manifest=sig, ignore="new")
    assert wb.verify(model, manifest=sig, only_file="a.bin", cache=tmp_path / "cache")
    assert (tmp_path / "cache").exists()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert wb.verify(model, manifest=sig, ignore="new", cache=True).remembered == 0 and list((tmp_path / "home/weighbridge").iterdir())
    with pytest.raises(wb.UsageError):
        wb.manifest(model, sig)
    assert wb.manifest(model, sig, overwrite=True, range_size="1K", ignore=["new"]).entries == 6
    with pytest.raises(wb.MissingFileError):
        wb.verify(model, manifest=tmp_path / "absent")


def test_overwrite_replaces_only_manifests(model, tmp_path):
    with pytest.raises(wb.UsageError, match="is not a manifest"):
        wb.manifest(model, model / "a.bin", overwrite=True)
    assert (model / "a.bin").read_bytes() == b"a" * 5000
    sig = tmp_path / "model.sig"
    wb.manifest(model, sig)
    wb.manifest(model, sig, overwrite=True)


def test_usage(model, tmp_path):
    with pytest.raises(TypeError, match="no effect without manifest"):
        wb.verify(model / "a.bin", public_key=b"")
    with pytest.raises(TypeError, match="give key too"):
        wb.manifest(model, tmp_path / "x", certificate=b"")
    with pytest.raises(ValueError, match="range-size"):
        wb.manifest(model, tmp_path / "x", range_size=0)


def test_an_empty_key_is_not_taken_for_none(model, tmp_path):
    empty, sig = tmp_path / "empty.pem", tmp_path / "model.sig"
    empty.write_bytes(b"")
    for key in empty, b"":
        with pytest.raises(ValueError, match="empty"):
            wb.manifest(model, sig, key=key)
        assert not sig.exists()
    wb.manifest(model, sig)
    with pytest.raises(ValueError, match="not a key or certificate"):
        wb.verify(model, manifest=sig, public_key=empty)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the program openssl, which makes keys, is not installed")
def test_keys(model, tmp_path):
    private, public, sig = tmp_path / "private.pem", tmp_path / "public.pem", tmp_path / "model.sig"
    subprocess.run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private], check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    if not _core.can_sign():
        with pytest.raises(wb.UnsupportedError, match="no OpenSSL"):
            wb.manifest(model, sig, key=private)
        assert not sig.exists()
        return
    assert wb.manifest(model, sig, key=private.read_bytes()).method == "key"
    assert wb.verify(model, manifest=sig, public_key=public).signature == "valid"
    assert wb.verify(model, manifest=sig).signature == "unchecked"
    with pytest.raises(wb.UsageError, match="private key"):
        wb.verify(model, manifest=sig, public_key=private)
