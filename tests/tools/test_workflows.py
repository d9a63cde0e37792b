# SPDX-License-Identifier: Apache-2.0
"""Tests the workflows of .github: what they call is there, and what they take from others is one commit of it."""
import importlib.util
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted(ROOT.glob(".github/**/*.yml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name if path.parent.name == "workflows" else path.parent.name)
def test_what_a_workflow_calls_is_there(path):
    text = path.read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"(?:^|run: |[;&|] )\s*make (?!-)([a-z-]+)", text, re.M):
        assert f"\n{target}:" in makefile, target
    for name, parameter in re.findall(r"make stage NAME=([\w-]+)|make setup FOR=([\w-]+)", text):
        assert f"\nstage-{name}:" in makefile or f"\n  {parameter}) " in (ROOT / "tools/install-packages.sh").read_text(), name or parameter
    for script in re.findall(r"\btools/[\w.-]+", text):
        assert (ROOT / script).exists(), script
    for action in re.findall(r"uses: (\S+)", text):
        assert (ROOT / action / "action.yml").exists() if action.startswith("./") else re.search(r"@[0-9a-f]{40}$", action), action


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_workflow_is_yaml(path):
    pytest.importorskip("yaml").safe_load(path.read_text())


def test_a_tag_publishes_what_make_dist_makes():
    """The job that builds has no right to publish, and the key is in no step that builds."""
    jobs = pytest.importorskip("yaml").safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]
    spec = importlib.util.spec_from_file_location("dist", ROOT / "tools/dist.py")
    dist = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dist)
    made = next(step for step in jobs["dist"]["steps"] if step.get("run") == "make dist")
    assert set(made["env"]) <= set(re.findall(r"DIST_\w+", dist.__doc__)) and "permissions" not in jobs["dist"]
    assert [step["name"] for step in jobs["dist"]["steps"] if "secrets." in str(step)] == ["Sign what was made"]
    assert {name for name, job in jobs.items() if "write" in str(job.get("permissions"))} == {"publish", "page"}
    assert not any("checkout" in str(step.get("uses")) for name in ("publish", "page") for step in jobs[name]["steps"])
