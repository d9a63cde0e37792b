# SPDX-License-Identifier: Apache-2.0
"""Runs every example of the docstrings, each beside the sample of examples/ and what is made of it here."""
import doctest
import importlib
import os
import pathlib
import shutil

import pytest

import weighbridge as wb

numpy = pytest.importorskip("numpy", reason="numpy is missing")

PACKAGE = pathlib.Path(wb.__file__).parent
SAMPLE = pathlib.Path(os.environ.get("WEIGHBRIDGE_ROOT", pathlib.Path(__file__).parents[2])) / "examples/sample.safetensors"
# What an example needs: the other packages whose names it uses.
OTHERS = ("daft", "duckdb", "polars", "pyarrow", "pyspark")


def modules():
    """Those with an example, by the name that imports them."""
    return sorted(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
                  for path in PACKAGE.glob("**/*.py") if "\n    >>> " in path.read_text() or path.read_text().startswith("# SPDX") and "\n>>> " in path.read_text())


def examples():
    for name in modules():
        try:
            module = importlib.import_module(name)
        except ImportError as error:  # of an engine that is not here
            yield pytest.param(None, id=name, marks=pytest.mark.skip(reason=str(error)))
            continue
        for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
            if test.examples:
                yield pytest.param(test, id=test.name)


@pytest.mark.parametrize("test", list(examples()))
def test_an_example_prints_what_it_shows(test, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    used = [name for name in OTHERS if f"{name}." in test.docstring]
    test.globs = {"wb": wb, "weighbridge": wb, "numpy": numpy, "os": os}
    test.globs.update({name: pytest.importorskip(name, reason=f"needs {name}") for name in used})
    for name in used:
        for more in (f"{name}.compute", f"{name}.sql", f"{name}.functions"):
            if importlib.util.find_spec(more):
                importlib.import_module(more)
    shutil.copy(SAMPLE, "model.safetensors")
    with wb.open(SAMPLE) as model:
        wb.save("tuned.safetensors", {**model.numpy(), "embeddings.LayerNorm.weight": model["embeddings.LayerNorm.weight"].numpy() + 1}, model.metadata)
    if used:
        import weighbridge.arrow  # noqa: F401

        shutil.copytree(request.getfixturevalue("encoder_folder"), "all-MiniLM-L6-v2")
        parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
        parquet.write_table(__import__("pyarrow").table({"id": [1], "text": ["a truck"]}), "docs.parquet")
    said = []
    failed, _ = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.FAIL_FAST).run(test, out=said.append, clear_globs=False)
    assert not failed, "".join(said)


def test_no_example_is_left_out():
    assert not [str(path) for path in PACKAGE.glob("**/*.py") if "doctest: +SKIP" in path.read_text()]
    found = [value.values[0].name for value in examples() if value.values[0] is not None]
    assert {"weighbridge", "weighbridge._jobs.convert", "weighbridge._checks.salvage", "weighbridge._edit.edit"} <= set(found)


def test_an_example_that_is_wrong_is_seen():
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    assert doctest.DocTestRunner().run(test, out=lambda text: None).failed == 1
