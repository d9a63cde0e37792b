# SPDX-License-Identifier: Apache-2.0
"""The verb `slm`: fixtures, packages and what is said when one does not fit."""
import pytest

from conftest import validated, weighbridge

SIZES = {("tiny", "f32"): 20352, ("tinylm16m", "f32"): 68194944, ("tinylm16m", "q8_0"): 17160000, ("tinylm16m", "q4_0"): 10657728}


@pytest.mark.parametrize("kind,dtype", SIZES)
def test_fixtures_have_the_published_sizes(tmp_path, kind, dtype):
    out = tmp_path / "m.slm"
    weighbridge("slm", "fixture", kind, "--dtype", dtype, "-o", out)
    assert out.stat().st_size == SIZES[kind, dtype]
    listed = validated(weighbridge("inspect", "--json", out).stdout, "inspect")
    assert listed["dtype_label"] == dtype and set(listed["checksums"]) == {"file", "tokenizer", "tensor_layout"}


def test_inspect_without_checks_says_so(tmp_path):
    out = tmp_path / "m.slm"
    weighbridge("slm", "fixture", "tiny", "-o", out)
    data = bytearray(out.read_bytes())
    data[-100] ^= 1
    out.write_bytes(data)
    weighbridge("inspect", out, status=1)
    assert validated(weighbridge("inspect", "--no-check", "--json", out).stdout, "inspect")["checked"] is False
    assert "not checked" in weighbridge("inspect", "--no-check", out).stdout


@pytest.mark.parametrize("arguments,word", [
    (["slm"], "ACTION"),
    (["slm", "fixtur", "tiny", "-o", "x"], "fixture"),
    (["slm", "fixture", "huge", "-o", "x"], "tinylm16m"),
    (["slm", "fixture", "tiny"], "-o OUT"),
    (["slm", "fixture", "tiny", "-o", "-"], "name an output"),
    (["slm", "fixture", "tiny", "--kind", "adp1", "-o", "x"], "--kind"),
    (["slm", "adapter", "a.slm", "b.safetensors", "-o", "x"], "--kind"),
    (["slm", "adapt", "a.slm", "-o", "x"], "at least 2"),
])
def test_misuse_is_one_sentence(tmp_path, arguments, word):
    done = weighbridge(*arguments, status=2, cwd=tmp_path)
    assert word in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_many_names_that_become_hashes_are_told_in_a_few_lines(sample, tmp_path):
    done = weighbridge("convert", sample, tmp_path / "m.slm", status=1)
    assert "cannot be written" in done.stdout and len(done.stdout.splitlines()) < 40
