# SPDX-License-Identifier: Apache-2.0
"""What README.md and the pages of docs/ show of a terminal is what the command prints, each page's commands in order in one folder."""
import os
import pathlib
import re
import subprocess

import pytest

from conftest import COMMAND

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLE = pathlib.Path(COMMAND).resolve().parent / "examples/sample_model"
PAGES = ["README.md", "docs/checking.md", "docs/converting.md"]


def commands_of(page):
    """Pairs of a command and what stands below it."""
    blocks = re.findall(r"^```console\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    return [tuple(part.split("\n", 1)) for block in blocks for part in re.split(r"^\$ ", block, flags=re.M)[1:]]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_is_printed(page, tmp_path):
    if not SAMPLE.is_file():
        pytest.skip(f"{SAMPLE.name} is not built beside the command, and makes the file that the pages speak of")
    if pathlib.Path(COMMAND).name != "weighbridge":
        pytest.skip(f"{COMMAND} is not called weighbridge, as on the pages")
    subprocess.run([SAMPLE, tmp_path / "sample.safetensors"], check=True, capture_output=True)
    path = f"{pathlib.Path(COMMAND).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    shown = commands_of(page)
    assert len(shown) >= 4, "a page without commands proves nothing"
    for command, wanted in shown:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path, "COLUMNS": "200"},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        assert done.stdout == wanted, command
