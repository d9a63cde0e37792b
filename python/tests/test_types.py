# SPDX-License-Identifier: Apache-2.0
"""The examples of README.md, docs/python.md and examples/ for the type checkers, as a user's strict project runs them."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest

import weighbridge as wb

ROOT = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2]))
WHERE = pathlib.Path(wb.__file__).parents[1]  # not always where this interpreter's packages are


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    for page in ("README.md", "docs/python.md"):
        for i, block in enumerate(re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)):
            if "from_pretrained" in block or "load_file" in block:
                continue  # of other packages
            head = "" if "import weighbridge" in block else "import weighbridge as wb\n\n"
            (folder / f"{pathlib.Path(page).stem.lower()}_{i}.py").write_text(head + block)
    for path in (ROOT / "examples").glob("*.py"):
        (folder / path.name).write_text(f"# pyright: strict\n{path.read_text()}")
    cells = [cell for cell in json.loads((ROOT / "examples/notebook.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
    (folder / "notebook.py").write_text("\n".join(["# pyright: strict, reportUnusedExpression=false", *("".join(cell["source"]) for cell in cells), ""]))
    assert len(list(folder.iterdir())) >= 10
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(WHERE)]}))
    return folder


def found(*command, folder):
    there = sysconfig.get_path("purelib") == str(WHERE)
    environment = {**os.environ, "PYTHONPATH": "", "MYPYPATH": "" if there else str(WHERE)}
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, env=environment)
    # Not of the package itself, where the checker takes it for a part of the project.
    return [line for line in (done.stdout + done.stderr).splitlines() if re.match(rf"\s*({re.escape(str(folder))}/)?\w+\.py:.*error", line)]


def test_mypy_strict(examples):
    pytest.importorskip("mypy", reason="needs mypy")
    (examples / "mypy.ini").write_text("[mypy]\nstrict = true\n[mypy-pyarrow.*]\nignore_missing_imports = true\n")
    assert found(sys.executable, "-m", "mypy", ".", folder=examples) == []


def test_mypy_finds_what_is_wrong(examples, tmp_path):
    pytest.importorskip("mypy", reason="needs mypy")
    wrong = ["wb.open('a', nonsense=2)", "wb.open(1)", "x: int = wb.hash('a')", "wb.convert('a', 'b.zt', dtpye='f16')", "wb.save('a', {}, level='3')",
             "wb.plan('a', 'zt', max_shard_size=1.5)", "wb.verify('a', recursive=True).valid", "wb.Generator('a').generate('b', stream=True).text",
             "wb.Generator('a').generate('b')['choices'].nothing.txt, wb.Generator('a').generate('b').txt", "wb.Embedder('a').encode('b').shap",
             "wb.formats()[0]['name']", "wb.edit('a', output=1)"]
    right = ["wb.verify('a', recursive=True)['b'].valid", "[piece.text for piece in wb.Generator('a').generate('b', stream=True)]",
             "wb.convert(b'', 'b.zt', max_shard_size='5GB').casts[0].before", "wb.Embedder('a').encode('b').shape", "wb.hash({'a': [1]})",
             "wb.Embedder('a').encode(['b'], convert_to_numpy=False)[0].shape", "wb.plan(['a', wb.open('b')], 'zt', set={'a': 'b'})"]
    (tmp_path / "wrong.py").write_text("\n".join(["import weighbridge as wb", *wrong, *right, ""]))
    assert [int(line.split(":")[1]) for line in found(sys.executable, "-m", "mypy", "--strict", ".", folder=tmp_path)] == list(range(2, len(wrong) + 2))


def test_pyright(examples, tmp_path):
    pyright = shutil.which("pyright", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    if not pyright:
        pytest.skip("needs pyright")
    if subprocess.run([pyright, "--version"], capture_output=True).returncode != 0:
        pytest.skip("pyright cannot start: it fetches its program when it is first used")
    (tmp_path / "pyrightconfig.json").write_text((examples / "pyrightconfig.json").read_text())
    (tmp_path / "wrong.py").write_text("import weighbridge as wb\nx: int = wb.hash('a')\n")
    assert len(found(pyright, "--pythonpath", sys.executable, ".", folder=tmp_path)) == 1
    lines = found(pyright, "--pythonpath", sys.executable, ".", folder=examples)
    assert [line for line in lines if "could not be resolved" not in line] == []
