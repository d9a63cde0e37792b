# SPDX-License-Identifier: Apache-2.0
"""Runs the scripts and the notebook of examples/ on the sample beside them. The notebook holds what its cells print, as it is shown on a page;
`python test_examples.py` writes that anew."""
import ast
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import shutil

import pytest

import weighbridge as wb

EXAMPLES = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2])) / "examples"
NOTEBOOK = EXAMPLES / "notebook.ipynb"


def run_cell(source, names):
    """What a notebook shows under a cell: what it prints, and its last line if that is an expression."""
    body = ast.parse(source).body
    last = ast.Expression(body.pop().value) if body and isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(last, "cell", "eval"), names) if last else None
        if value is not None:
            print(repr(value))
    return said.getvalue()


def cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shown(cell):
    return "".join("".join(output["text"]) for output in cell["outputs"])


@pytest.fixture
def sample(tmp_path, monkeypatch):
    shutil.copy(EXAMPLES / "sample.safetensors", tmp_path)
    monkeypatch.chdir(tmp_path)
    return "sample.safetensors"


@pytest.fixture
def example():
    def load(name):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.main
    return load


def test_first_look(sample, example, capsys):
    example("first_look")(sample)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "<weighbridge.Model 'sample.safetensors' (safetensors, 24 tensors, 80.4 KiB)>" and "  format = pt" in lines
    assert len([line for line in lines if line.endswith(")")]) == 24 and " begins at byte " in lines[-1]


def test_check_folder(sample, example, tmp_path, capsys):
    assert example("check_folder")(".") == 0
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper/cut.safetensors").write_bytes((tmp_path / sample).read_bytes()[:-5])
    assert example("check_folder")(".") == 1
    assert "cut.safetensors: INVALID" in (said := capsys.readouterr().out) and "error safetensors/truncated at byte 82283" in said


def test_same_tensors(sample, example, capsys):
    wb.convert(sample, "same.zt", encoding="zstd")
    wb.convert(sample, "other.gguf", quantize="q8_0", allow="precision")
    example("same_tensors")([sample, "other.gguf", "same.zt"])
    assert [line.split()[1:] for line in capsys.readouterr().out.splitlines()] == [[sample, "same.zt"], ["other.gguf"]]


def test_shrink(sample, example, capsys):
    example("shrink")(sample, "small.gguf")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "13 tensors lose precision; 82,288 bytes become 32,896" and len(lines) == 4
    assert os.path.getsize("small.gguf") == 32896


def test_the_notebook_prints_what_it_shows(sample):
    names = {}
    for cell in cells(json.loads(NOTEBOOK.read_text())):
        assert run_cell("".join(cell["source"]), names) == shown(cell), "".join(cell["source"])


def test_the_script_of_the_demo_runs(tmp_path, monkeypatch):
    """It took a record for a dict, and nothing but `make demo` ran it."""
    source = (EXAMPLES.parent / "tools/demo.sh").read_text().split("<<'PYTHON'\n")[1].split("\nPYTHON\n")[0]
    monkeypatch.chdir(tmp_path)
    shutil.copy(EXAMPLES / "sample.safetensors", "sample.safetensors")
    wb.convert("sample.safetensors", "sample.zt", digest="sha256")
    wb.convert("sample.safetensors", "sample.gguf", quantize="q8_0")
    content = bytearray((tmp_path / "sample.zt").read_bytes())
    content[content.index(wb.open("sample.zt")["encoder.layer.0.attention.self.query.weight"].tobytes())] ^= 1
    (tmp_path / "broken.zt").write_bytes(content)
    said = run_cell(source, {}).splitlines()
    assert "do not match the digest" in said[2] and said[3] == "True" and said[4].startswith("13 of 24 tensors differ; most of all encoder")


if __name__ == "__main__":
    os.chdir(EXAMPLES)
    before, names = json.loads(NOTEBOOK.read_text()), {}
    for number, each in enumerate(cells(before), 1):
        text = run_cell("".join(each["source"]), names)
        each["execution_count"] = number
        each["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text.splitlines(keepends=True)}] if text else []
    NOTEBOOK.write_text(json.dumps(before, indent=1, ensure_ascii=False) + "\n")
