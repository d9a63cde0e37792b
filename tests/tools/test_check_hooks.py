# SPDX-License-Identifier: Apache-2.0
"""The pre-commit hook and the GitHub Action run `weighbridge check`: the hook by pre-commit itself, the action's script by bash."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = pathlib.Path(os.environ.get("WEIGHBRIDGE") or ROOT / "build/release/weighbridge")


def safetensors(value):
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return len(header).to_bytes(8, "little") + header + value


GOOD, NAN = safetensors(bytes(4)), safetensors(b"\0\0\xc0\x7f")


@pytest.fixture
def environment():
    if COMMAND.name != "weighbridge":
        pytest.skip(f"{COMMAND} is not called weighbridge")
    return os.environ | {"PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"}


def act(environment, folder, paths, **inputs):
    """Runs the action's script with the variables that action.yml sets."""
    text = (ROOT / "action.yml").read_text()
    named = dict(re.findall(r"^        (\w+): \$\{\{ inputs\.(\w+) \}\}$", text, re.M))
    defaults = dict(re.findall(r"^  (\w+):\n    description: .*\n    default: (.*)$", text, re.M))
    given = {name: {**{key: value.strip('"') for key, value in defaults.items()}, "paths": paths, **inputs}[name] for name in named.values()}
    script = re.search(r"run: '(.*)'$", text, re.M)[1]
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, cwd=folder,
                          env=environment | {key: given[name] for key, name in named.items()} | {"GITHUB_ACTION_PATH": str(ROOT)})


def test_the_action(environment, tmp_path):
    (tmp_path / "a b.safetensors").write_bytes(GOOD)
    (tmp_path / "-n.safetensors").write_bytes(NAN)
    done = act(environment, tmp_path, "*.safetensors\n\n  a b.safetensors  \n")
    assert done.returncode == 0 and done.stdout.count("meets download") == 3 and "::" not in done.stdout
    done = act(environment, tmp_path, "*.safetensors", policy="publish", sarif="out.sarif")
    assert done.returncode == 1 and "does NOT meet publish" in done.stdout
    assert "::error title=weighbridge check::./-n.safetensors: error: max_nan: " in done.stdout.replace("::-n", "::./-n")
    assert json.loads((tmp_path / "out.sarif").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize("paths, inputs, sentence", [
    ("*.gguf", {}, "nothing matches *.gguf"), (" \n", {}, "paths names no file"),
    ("x", {"command": "no-such-command"}, "no-such-command is not on the PATH"),
])
def test_the_action_says_what_it_lacks(environment, tmp_path, paths, inputs, sentence):
    done = act(environment, tmp_path, paths, **inputs)
    assert done.returncode == 2 and f"::error title=weighbridge check::{sentence}" in done.stdout


def test_the_hook(environment, tmp_path):
    """PRE_COMMIT names the program; without it, the one on the PATH is taken."""
    program = os.environ.get("PRE_COMMIT") or shutil.which("pre-commit")
    if not program:
        pytest.skip("pre-commit is not installed, so the hook is not run")
    environment |= {"PRE_COMMIT_HOME": str(tmp_path / "cache"), "GIT_CONFIG_GLOBAL": os.devnull}

    def git(folder, *words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@localhost", *words], cwd=folder, check=True, capture_output=True, env=environment)

    hooks, project = tmp_path / "hooks", tmp_path / "project"  # a repository of the hook alone: the tree may have changes
    for folder in (hooks, project):
        folder.mkdir()
        git(folder, "init", "-q")
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    git(hooks, "add", ".")
    git(hooks, "commit", "-qm", "hook")

    def run():
        git(project, "add", ".")
        return subprocess.run([program, "try-repo", hooks, "weighbridge-check", "--all-files", "--verbose"], cwd=project, capture_output=True,
                              text=True, env=environment)

    (project / "notes.txt").write_text("not a model")
    (project / "good.safetensors").write_bytes(GOOD)
    done = run()
    assert done.returncode == 0 and "meets download" in done.stdout and "notes.txt" not in done.stdout, done.stdout + done.stderr
    (project / "BAD.safetensors").write_bytes(GOOD[:-1])
    done = run()
    assert done.returncode == 1 and "BAD.safetensors: error: " in done.stdout and "exit code: 1" in done.stdout


def test_the_page_names_the_hook_and_the_inputs_of_the_action():
    action, hook = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.S)
    assert re.findall(r"- id: (\S+)", hook) == re.findall(r"- id: (\S+)", (ROOT / ".pre-commit-hooks.yaml").read_text())
    inputs = re.findall(r"^  (\w+):\n    description:", (ROOT / "action.yml").read_text(), re.M)
    ours = action.split("weighbridge@TAG")[1].split("- uses: github/")[0]
    given = set(re.findall(r"^          (\w+):", ours, re.M))
    assert given == {"paths", "policy", "sarif"} and given <= set(inputs)
