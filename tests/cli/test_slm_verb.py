# SPDX-License-Identifier: Apache-2.0
"""Tests the verb `slm`: fixtures, adapter packages, and the messages for one that does not fit."""
import pytest

from conftest import validated, weighbridge

SIZES = {("tiny", "f32"): 20352, ("tinylm16m", "f32"): 68194944, ("tinylm16m", "q8_0"): 17160000, ("tinylm16m", "q4_0"): 10657728}


@pytest.mark.parametrize("kind,dtype", SIZES)
def test_fixtures_have_the_published_sizes(tmp_path, kind, dtype):
    out = tmp_path / "m.slm"
    weighbridge("slm", "fixture", kind, "--dtype", dtype, "-o", out)
    assert out.stat().st_size == SIZES[kind, dtype]
    listed = validated(weighbridge("inspect", "--json", out).stdout, "inspect")["files"][0]
    assert listed["dtype_label"] == dtype and set(listed["checksums"]) == {"file", "tokenizer", "tensor_layout"}


def test_inspect_without_checks_says_so(tmp_path):
    out = tmp_path / "m.slm"
    weighbridge("slm", "fixture", "tiny", "-o", out)
    data = bytearray(out.read_bytes())
    data[-100] ^= 1
    out.write_bytes(data)
    weighbridge("inspect", out, status=1)
    assert validated(weighbridge("inspect", "--no-check", "--json", out).stdout, "inspect")["files"][0]["checked"] is False
    assert "not checked" in weighbridge("inspect", "--no-check", out).stdout


@pytest.mark.parametrize("arguments,word", [
    (["slm"], "ACTION"),
    (["slm", "fixtur", "tiny", "-o", "x"], "fixture"),
    (["slm", "fixture", "huge", "-o", "x"], "tinylm16m"),
    (["slm", "fixture", "tiny"], "-o OUT"),
    (["slm", "fixture", "tiny", "-o", "-"], "give -o FILE"),
    (["slm", "fixture", "tiny", "--kind", "adp1", "-o", "x"], "--kind"),
    (["slm", "adapter", "a.slm", "b.safetensors", "-o", "x"], "--kind"),
    (["slm", "adapt", "a.slm", "-o", "x"], "needs ADAPTER"),
])
def test_misuse_is_one_sentence(tmp_path, arguments, word):
    done = weighbridge(*arguments, status=2, cwd=tmp_path)
    assert word in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_many_names_that_become_hashes_are_told_in_a_few_lines(sample, tmp_path):
    done = weighbridge("convert", sample, tmp_path / "m.slm", status=1)
    assert "cannot be written" in done.stdout and len(done.stdout.splitlines()) < 40


def test_a_wrong_file_is_the_one_that_is_named(tmp_path, sample):
    base = tmp_path / "m.slm"
    weighbridge("slm", "fixture", "tiny", "-o", base)
    for words in (["adapter", base, sample, "--kind", "adp1"], ["adapt", base, sample]):
        assert weighbridge("slm", *words, "-o", tmp_path / "x", status=2).stderr.startswith(f"weighbridge: {sample}: ")


def test_a_model_that_is_missing_or_none_is_not_told_of_its_record(tmp_path, sample):
    assert "nosuch.slm: " in weighbridge("slm", "validate-manifest", tmp_path / "nosuch.slm", status=4).stderr
    assert "not an .slm model" in weighbridge("slm", "runtime-smoke", sample, status=1).stderr
    weighbridge("slm", "promotion-ledger", "show", tmp_path / "nosuch", status=4)


def test_a_template_has_not_passed_anything(tmp_path):
    assert "written, to be filled in" in weighbridge("slm", "source-template", "-o", tmp_path / "s.manifest").stdout


def test_an_escape_is_not_escaped_again(tmp_path):
    (tmp_path / "bad.minimodel").write_bytes(b"SLM1\x01\x02\n")
    said = weighbridge("slm", "verify-manifest", tmp_path / "bad.minimodel", status=1)
    assert "\\x01" in said.stdout + said.stderr and "\\\\x01" not in said.stdout + said.stderr


def test_a_fixture_is_no_path_that_something_is_nearest_to(tmp_path):
    weighbridge("slm", "fixture", "tiny", "-o", tmp_path / "tiny.slm")
    said = weighbridge("slm", "fixture", "tiny", "-o", "absent/F.slm", status=4, cwd=tmp_path).stderr
    assert said.startswith("weighbridge: absent: ") and "nearest" not in said
    failed = weighbridge("slm", "fixture", "tiny", "-o", "absent/F.slm", "--json", status=4, cwd=tmp_path).stdout
    assert validated(failed, "failure")["path"] == "absent/F.slm"
    with open("/dev/full", "wb") as full:
        said = weighbridge("slm", "fixture", "tiny", "-o", "F.slm", status=4, cwd=tmp_path, stdout=full).stderr
    assert said.endswith("'F.slm' is written all the same\n")


def test_what_cannot_be_told_is_written_all_the_same(tmp_path):
    model, empty = tmp_path / "m.slm", tmp_path / "empty.manifest"
    weighbridge("slm", "fixture", "tiny", "-o", model)
    steps = {empty: ["source-template", "-o", empty], tmp_path / "m.minimodel": ["minimodel-template", model],
             tmp_path / "m.slm.manifest": ["manifest", model, "--source-kind", "deterministic-smoke"],
             tmp_path / "m.slm.smoke": ["runtime-smoke", model]}
    with open("/dev/full", "wb") as full:
        for output, words in steps.items():
            assert f"'{output}' is written all the same" in weighbridge("slm", *words, stdout=full, status=4).stderr
            assert output.exists()
        said = weighbridge("slm", "validate-manifest", model, stdout=full, status=4).stderr
        assert "cannot be written" in said and "all the same" not in said
