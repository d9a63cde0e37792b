# SPDX-License-Identifier: Apache-2.0
"""SARIF of `weighbridge check` beside the validator of its authors: the npm package @microsoft/sarif-multitool.

SARIF_MULTITOOL names its program; without it, the one in build/sarif-multitool is taken."""
import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMMAND = os.environ.get("WEIGHBRIDGE") or str(ROOT / "build/release/weighbridge")


@pytest.fixture(scope="module")
def multitool():
    programs = list((ROOT / "build/sarif-multitool").glob("node_modules/@microsoft/sarif-multitool-linux/**/Sarif.Multitool"))
    program = os.environ.get("SARIF_MULTITOOL") or next(map(str, programs), None)
    if program is None:
        pytest.skip("the npm package @microsoft/sarif-multitool, which validates SARIF, is missing: make stage NAME=environments installs it")
    os.chmod(program, 0o755)  # npm does not, without the scripts of packages
    return program


def findings(multitool, path):
    """What the validator says: the rules of SARIF that are broken, with their level."""
    report = path.with_suffix(".report.sarif")
    environment = os.environ | {"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1", "DOTNET_BUNDLE_EXTRACT_BASE_DIR": str(path.parent)}
    done = subprocess.run([multitool, "validate", path, "--output", report, "--log", "ForceOverwrite"], capture_output=True, text=True,
                          env=environment)
    assert report.is_file(), done.stdout + done.stderr
    [run] = json.loads(report.read_text(encoding="utf-8-sig"))["runs"]
    return [(each.get("level", "warning"), each["ruleId"], each["message"]) for each in run.get("results", [])]


def test_the_validator_accepts_what_check_prints(multitool, tmp_path):
    corpus = ROOT / "corpus"
    files = sorted(corpus.glob("safetensors/*.safetensors"))[::7] + sorted(corpus.glob("pytorch/*global*.pt"))
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"dtypes": ["f16"], "code": [], "warnings": [], "max_nan": 0, "tensors": ["a"], "max_size": 100}))
    done = subprocess.run([COMMAND, "check", *files, "--policy", policy, "--sarif"], capture_output=True, cwd=ROOT)
    assert done.returncode == 1
    path = tmp_path / "check.sarif"
    path.write_bytes(done.stdout)
    results = json.loads(done.stdout)["runs"][0]["results"]
    assert any("region" in each["locations"][0]["physicalLocation"] for each in results) and len(results) > 50
    assert [each for each in findings(multitool, path) if each[0] == "error"] == []


def test_the_validator_sees_a_fault(multitool, tmp_path):
    path = tmp_path / "bad.sarif"
    path.write_text(json.dumps({"version": "2.1.0", "runs": [{"tool": {"driver": {}}, "results": [{"message": {"text": "x"}, "level": "bad"}]}]}))
    assert [each for each in findings(multitool, path) if each[0] == "error"]
