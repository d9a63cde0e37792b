# SPDX-License-Identifier: Apache-2.0
"""Tests the verb `slm` from an .slm file on: exit statuses, --json, usage errors, and the paths of records. The library's tests cover
what each step refuses; tests/interop/test_slm_chain.py covers the whole chain."""
import json

import pytest

from conftest import validated, weighbridge


@pytest.fixture
def smoke(tmp_path):
    """A smoke model with its manifest."""
    path = tmp_path / "m.slm"
    weighbridge("slm", "fixture", "tiny", "-o", path)
    weighbridge("slm", "manifest", path, "--source-kind", "deterministic-smoke")
    return path


def step(*arguments, status=0):
    return validated(weighbridge("slm", *arguments, "--json", status=status).stdout, "slm_chain")


def test_a_smoke_model_passes_the_smoke_gate_and_no_other(smoke):
    ran = step("runtime-smoke", smoke)
    assert ran["record"]["path"] == f"{smoke}.smoke" and ran["record"]["fields"]["result"] == "passed"
    assert step("quality-gate", "RUNTIME-SMOKE", smoke)["record"]["fields"]["gate"] == "runtime-smoke"
    refused = step("quality-gate", "assistant-quality", smoke, "--decision", "approve", "--decided-by", "me", status=1)
    assert [finding["rule"] for finding in refused["findings"]] == ["chain/smoke-claim"]
    done = weighbridge("slm", "admission-record", smoke, status=1)
    assert "deterministic smoke" in done.stderr and done.stdout == ""
    assert not smoke.with_suffix(".slm.admission").exists()


def test_a_trained_model_needs_the_record_of_its_conversion(smoke):
    done = weighbridge("slm", "manifest", smoke, "--source-kind", "converted-trained", "--force", status=1)
    assert "convert-trained" in done.stderr and "chain/missing-evidence" in done.stderr


def test_records_are_not_replaced_unless_asked(smoke):
    weighbridge("slm", "runtime-smoke", smoke)
    weighbridge("slm", "runtime-smoke", smoke, status=2)
    weighbridge("slm", "runtime-smoke", smoke, "--force")
    elsewhere = smoke.parent / "elsewhere"
    weighbridge("slm", "runtime-smoke", smoke, "-o", elsewhere)
    assert elsewhere.read_bytes() == smoke.with_suffix(".slm.smoke").read_bytes()


def test_an_edited_record_is_named_by_key_and_place(smoke):
    manifest = smoke.with_suffix(".slm.manifest")
    text = manifest.read_text().replace("parameter_count=4824", "parameter_count=4825")
    manifest.write_text(text)
    found = step("validate-manifest", smoke, status=1)["findings"][0]
    assert found["rule"] == "chain/recomputed" and found["offset"] == text.index("parameter_count")
    assert (found["expected"], found["found"]) == ("4824", "4825")


def test_the_times_of_records_are_those_given(smoke, monkeypatch):
    target = smoke.with_suffix(".minimodel")
    created = lambda: next(line for line in target.read_text().splitlines() if line.startswith("manifest.created_utc"))
    weighbridge("slm", "minimodel-template", smoke)
    assert created() == "manifest.created_utc=1970-01-01T00:00:00Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    weighbridge("slm", "minimodel-template", smoke, "--force")
    assert created() == "manifest.created_utc=2023-11-14T22:13:20Z"
    weighbridge("slm", "minimodel-template", smoke, "--force", "--at", "2026-01-31T12:00:00Z")
    assert created() == "manifest.created_utc=2026-01-31T12:00:00Z"


def test_the_receipt_is_written_only_for_what_was_verified(smoke):
    manifest, receipt = smoke.with_suffix(".minimodel"), smoke.with_suffix(".minimodel-receipt")
    weighbridge("slm", "minimodel-template", smoke)
    assert "chain/placeholder" in weighbridge("slm", "import-receipt", smoke, status=1).stderr
    filled = manifest.read_text()
    for word in ("<model>", "<version>", "<publisher>", "<key>", "<license>", "<model-card>"):
        filled = filled.replace(word, "test")
    manifest.write_text(filled)
    assert step("verify-artifact", smoke)["passed"]
    manifest.write_text(filled.replace("artifact.byte_count=20352", "artifact.byte_count=20353"))
    assert "chain/artifact-mismatch" in weighbridge("slm", "import-receipt", smoke, status=1).stderr
    assert not receipt.exists()
    manifest.write_text(filled)
    weighbridge("slm", "import-receipt", smoke)
    assert receipt.exists() and step("import-receipt", smoke, "--check")["record"]["path"] is None
    smoke.write_bytes(smoke.read_bytes() + b"\0")
    assert "chain/artifact-mismatch" in weighbridge("slm", "import-receipt", smoke, "--check", status=1).stderr


@pytest.mark.parametrize("arguments,word", [
    (["manifest", "m.slm"], "--source-kind"),
    (["manifest", "m.slm", "--source-kind", "trained"], "converted-trained"),
    (["quality-gate", "quality", "m.slm"], "assistant-quality"),
    (["quality-gate", "runtime-smoke", "m.slm", "--decision", "approve"], "takes no --decision"),
    (["runtime-smoke", "m.slm", "--decision", "approve"], "--decision"),
    (["validate-manifest", "m.slm", "-o", "x"], "--output"),
    (["promotion-ledger", "append", "l"], "LEDGER MODEL"),
    (["promotion-ledger", "remove", "l"], "append, verify or show"),
    (["promotion-ledger", "verify", "l", "m.slm"], "LEDGER only"),
    (["selector-registry", "l", "--byte-budget", "0"], "--byte-budget"),
    (["selector-registry", "l", "--check", "--byte-budget", "5"], "--byte-budget"),
    (["import-receipt", "m.slm", "--check", "--at", "2026-01-31T12:00:00Z"], "--at"),
    (["import-recipt", "m.slm"], "import-receipt"),
])
def test_misuse_is_one_sentence(tmp_path, arguments, word):
    done = weighbridge("slm", *arguments, status=2, cwd=tmp_path)
    assert word in done.stderr and done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_io_and_missing_evidence_is_not(smoke, tmp_path):
    weighbridge("slm", "manifest", tmp_path / "none.slm", "--source-kind", "deterministic-smoke", status=4)
    assert "slm.smoke" in weighbridge("slm", "quality-gate", "runtime-smoke", smoke, status=1).stderr
    assert json.loads(weighbridge("slm", "promotion-ledger", "verify", tmp_path / "none", "--json", status=1).stdout)


@pytest.mark.parametrize("action", [["runtime-smoke"], ["eval-template"], ["minimodel-template"],
                                    ["manifest", "--source-kind", "deterministic-smoke"]])
def test_the_model_is_not_written_over(smoke, action):
    before = smoke.read_bytes()
    done = weighbridge("slm", action[0], smoke, *action[1:], "-o", smoke, "--force", status=2)
    assert "is the input" in done.stderr and smoke.read_bytes() == before


def test_a_broken_ledger_is_blamed_not_the_model(smoke, tmp_path):
    ledger = tmp_path / "bad.ledger"
    ledger.write_text("nothing\n")
    done = weighbridge("slm", "promotion-ledger", "append", ledger, smoke, status=1)
    assert done.stderr.startswith(f"weighbridge: {ledger}: ")
