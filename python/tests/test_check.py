# SPDX-License-Identifier: Apache-2.0
"""wb.check: the ready policies, a dict, a file, and what is no policy."""
import json

import pytest

import weighbridge as wb


def safetensors(dtype, size):
    header = json.dumps({"w": {"dtype": dtype, "shape": [1], "data_offsets": [0, size]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(size)


def test_a_model_against_policies(tmp_path):
    content = safetensors("F64", 8)
    for policy in ("download", "publish", "strict", {}, {"dtypes": ["f64"], "shapes": {"w": [1]}, "max_nan": 0}):
        found = wb.check(content, policy)
        assert found and found.passed and found.breaches == [] and found.format == "safetensors", policy
    path, policy = tmp_path / "m.safetensors", tmp_path / "policy.json"
    path.write_bytes(content)
    policy.write_text('{"dtypes": ["bf16"]}')
    found = wb.check(path, policy)
    assert not found and found.policy == str(policy) and "structure only" in found.checked
    [breach] = found.breaches
    assert isinstance(breach, wb.Breach) and breach.demand == "dtypes" and breach.finding.rule == "policy/dtype"
    assert breach.finding.tensor == "w" and breach.finding.offset == len(content) - 8
    assert "policy/dtype" in str(breach.finding)
    [breach] = wb.check(content[:-1]).breaches
    assert breach.demand == "valid" and breach.finding.rule == "safetensors/truncated"


def test_what_is_no_policy():
    with pytest.raises(wb.UsageError, match='the nearest is "dtypes"'):
        wb.check(safetensors("F64", 8), {"dtype": ["f16"]})
    with pytest.raises(wb.UsageError, match="no policy 'publsh', and no such file: the ready ones are download, publish, strict"):
        wb.check(safetensors("F64", 8), "publsh")
    with pytest.raises(TypeError):
        wb.check(None)


def test_the_reader_can_be_named():
    content = safetensors("F64", 8)
    assert wb.check(content, format="safetensors") and wb.doctor(content, format="safetensors")
    [breach] = wb.check(content, format="gguf").breaches
    assert breach.demand == "valid" and breach.finding.rule == "gguf/magic"
    assert wb.doctor(content, format="gguf").findings[0].rule == "gguf/magic"
    with pytest.raises(wb.UsageError, match="there is no format 'foo'"):
        wb.check(content, format="foo")
