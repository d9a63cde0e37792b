# SPDX-License-Identifier: Apache-2.0
"""wb.doctor, wb.check_cache, and conversions that dequantize."""
import hashlib
import os

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing")

import weighbridge as wb  # noqa: E402


def test_a_download_that_stopped(tmp_path):
    path = tmp_path / "model.safetensors"
    wb.save(path, {"a": np.ones(5000, np.float32), "b": np.ones(5000, np.float32)})
    content = path.read_bytes()
    found = wb.doctor(path)
    assert found and found.condition == "sound" and found.tensors == found.whole == 2
    path.write_bytes(content[:-100])
    found = wb.doctor(path)
    assert not found and found.condition == "incomplete" and found.damaged == ["b"] and found.full_size == len(content)
    assert found.advice[0] == wb.Advice("fetch-rest", None, len(content) - 100, len(content))
    [finding] = found.findings
    assert isinstance(finding, wb.Finding) and finding.rule == "safetensors/truncated" and finding.hint == wb.Hint("size", value=str(len(content)))
    assert finding.rule in str(finding)
    assert wb.doctor(content + b"junk").trailing == wb.ByteRange(len(content), 4)
    with pytest.raises(wb.MissingFileError):
        wb.doctor(tmp_path / "absent")


@pytest.mark.skipif(os.name == "nt", reason="a cache needs links")
def test_a_cache(tmp_path):
    repository = tmp_path / "models--org--name"
    (repository / "blobs").mkdir(parents=True)
    (repository / "snapshots/1").mkdir(parents=True)
    digest = hashlib.sha256(b"weights").hexdigest()
    (repository / "blobs" / digest).write_bytes(b"weights")
    (repository / "snapshots/1/model.bin").symlink_to(f"../../blobs/{digest}")
    assert [entry.state for entry in wb.check_cache(tmp_path)] == ["sound"]
    (repository / "blobs" / digest).write_bytes(b"weightS")
    assert [entry.state for entry in wb.check_cache(tmp_path)] == ["damaged"]


def test_dequantize_leaves_other_tensors(tmp_path):
    values = np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32)
    wb.convert({"w": values, "v": values[0]}, tmp_path / "a.gguf", quantize="q8_0")
    wb.convert(tmp_path / "a.gguf", tmp_path / "b.safetensors", dequantize="f16")
    with wb.open(tmp_path / "b.safetensors") as model:
        assert model["w"].dtype == "f16" and model["v"].dtype == "f32"
        assert np.allclose(model["w"].numpy(), values, atol=0.01)
