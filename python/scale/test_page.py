# SPDX-License-Identifier: Apache-2.0
"""Runs every block of docs/at-scale.md, in one folder, with a small model under the name of the page's."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

import weighbridge as wb

ROOT = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2]))
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "docs/at-scale.md").read_text(), re.M | re.S)
ENGINES = {"import duckdb": "duckdb", "import polars": "polars", "import daft": "daft", "from pyspark": "pyspark"}


@pytest.fixture(scope="module")
def folder(encoder_folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("page")
    (out / "all-MiniLM-L6-v2").symlink_to(encoder_folder)
    (out / "docs.jsonl").write_text("".join(json.dumps({"id": i, "text": f"{'truck' if i % 2 else 'lorry'} on the road {'abcdefgh'[i % 8]}"}) + "\n"
                                            for i in range(40)))
    (out / "models").mkdir()
    for name in ("a.safetensors", "b.gguf"):
        wb.save(out / "models" / name, {"w": memoryview(bytes(64)).cast("f")})
    (out / "models/c.zt").write_bytes(b"broken")
    return out


@pytest.mark.parametrize("number", range(len(BLOCKS)), ids=[block.splitlines()[0][:50] for _, block in BLOCKS])
def test_block(no_ray, folder, number):
    kind, block = BLOCKS[number]
    assert kind in ("sh", "python")
    environment = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}", "PYSPARK_PYTHON": sys.executable}
    for words, package in ENGINES.items():
        if block.startswith(words):
            pytest.importorskip(package, reason=f"needs {package}")
    if kind == "python":
        made = subprocess.run([sys.executable, "-c", block], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
        assert made.returncode == 0, made.stderr
        return
    if block.startswith("pip install"):
        assert re.match(r"pip install '\.\[ray\]' +#", block) and block.count("\n") == 1  # what tools/test-ray.sh did in its way
        return
    cluster = None
    if "HEAD:6379" in block:
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "object_store_memory": 80 << 20, "include_dashboard": False})
        block = block.replace("HEAD:6379", cluster.address)
    try:
        made = subprocess.run(["bash", "-ec", block], cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    finally:
        if cluster:
            cluster.shutdown()
    assert "Traceback" not in made.stderr
    assert made.returncode == (1 if " audit " in block else 0), made.stderr  # the lake has a broken file
    assert "search" not in block or "docs.jsonl" in made.stdout
