# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of README.md and docs/python.md, with the models that they name."""
import os
import pathlib
import re

import pytest

np = pytest.importorskip("numpy")

import weighbridge as wb  # noqa: E402

ROOT = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2]))
DATA = pathlib.Path(os.environ.get("WEIGHBRIDGE_TEST_DATA", ROOT.parent / "shared/data"))
README = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)[1]
# Each is run by a test. A block that the page gains has to get a name here.
LOOKING, PROVING, COMPARING, PATCHING, RUNNING, COLUMNS, AS_SAFETENSORS, AS_GGUF = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs/python.md").read_text(), re.M | re.S)


def needs(path):
    if not path.exists():
        pytest.skip(f"{path} is missing: make demo fetches MiniLM, WEIGHBRIDGE_TEST_DATA names the folder of the test data")
    return path


def run(block, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    names = {"wb": wb}
    exec(compile(block, "docs/python.md", "exec"), names)
    return names, capsys.readouterr().out


def test_the_readme(tmp_path, monkeypatch, capsys):
    wb.save(tmp_path / "model.safetensors", {"w": np.arange(100, dtype=np.float32)})
    _, said = run(README, tmp_path, monkeypatch, capsys)
    assert said.splitlines() == ["<weighbridge.Model 'model.safetensors' (safetensors, 1 tensor, 472 B)>", "w f32 (100,)"]


def test_looking_into_a_file(tmp_path, monkeypatch, capsys):
    source = needs(ROOT / "build/demo/all-MiniLM-L6-v2/model.safetensors")
    (tmp_path / "model.safetensors").symlink_to(source)
    names, said = run(LOOKING, tmp_path, monkeypatch, capsys)
    assert "safetensors, 104 tensors" in said and "f32" in said and names["rows"].shape == (10, names["array"].shape[1] // 2)


def test_proving_and_moving_one(tmp_path, monkeypatch, capsys):
    wb.save(tmp_path / "model.safetensors", {"w": np.arange(100, dtype=np.float32)})
    _, said = run(PROVING, tmp_path, monkeypatch, capsys)
    assert said == "[]\n" and wb.verify(tmp_path / "model.zt").checked == "structure and digests"


def test_what_changed(tmp_path, monkeypatch, capsys):
    wb.save(tmp_path / "base.safetensors", {"w": np.arange(100, dtype=np.float32)})
    wb.save(tmp_path / "tuned.gguf", {"w": np.arange(100, dtype=np.float32) + 0.5})
    names, said = run(COMPARING, tmp_path, monkeypatch, capsys)
    assert said == "w ['changed'] 0.5\n" and not names["found"].equal


def test_keeping_a_difference(tmp_path, monkeypatch, capsys):
    wb.save(tmp_path / "base.safetensors", {"w": np.arange(100, dtype=np.float32)})
    wb.save(tmp_path / "tuned.safetensors", {"w": np.arange(100, dtype=np.float32) + (np.arange(100) == 7)})
    names, _ = run(PATCHING, tmp_path, monkeypatch, capsys)
    assert names["made"].differing == 1


def test_running_models(tmp_path, monkeypatch, capsys):
    (tmp_path / "all-MiniLM-L6-v2").symlink_to(needs(ROOT / "build/demo/all-MiniLM-L6-v2"))
    llama = needs(DATA / "llama/stories260K.bin")
    wb.convert(wb.open(llama, tokenizer=llama.with_name("tok512.bin")), tmp_path / "stories15M.slm", allow="attribute")
    names, said = run(RUNNING, tmp_path, monkeypatch, capsys)
    assert names["vectors"].shape == (2, 384) and len(said) > 100


def test_columns_of_arrow(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    (tmp_path / "all-MiniLM-L6-v2").symlink_to(needs(ROOT / "build/demo/all-MiniLM-L6-v2"))
    _, said = run(COLUMNS, tmp_path, monkeypatch, capsys)
    assert said == "fixed_size_list<item: float>[384]\n"


def test_the_module_in_place_of_safetensors(tmp_path, monkeypatch, capsys):
    pytest.importorskip("torch", reason="needs torch")
    names, _ = run(AS_SAFETENSORS, tmp_path, monkeypatch, capsys)
    assert names["safetensors"].__name__ == "weighbridge.safetensors" and callable(names["load_model"])


def test_the_module_in_place_of_gguf(tmp_path, monkeypatch, capsys):
    wb.save(tmp_path / "w.gguf", {"w": np.arange(32, dtype=np.float32)})
    names, _ = run(AS_GGUF, tmp_path, monkeypatch, capsys)
    assert [tensor.name for tensor in names["GGUFReader"](tmp_path / "w.gguf").tensors] == ["w"]
