# SPDX-License-Identifier: Apache-2.0
"""The package takes each option that the library's table says it takes, by the same name."""
import inspect
import re
import typing

import pytest

np = pytest.importorskip("numpy", reason="numpy is missing")

import weighbridge as wb  # noqa: E402
from weighbridge import _core  # noqa: E402

TABLE = [(of, name.replace("-", "_"), type, python, words) for of, name, type, python, words, _ in _core.options()]


def names(*kinds):
    return [name for of, name, _, python, _ in TABLE if of in kinds and python]


def arguments(*functions):
    return {name for function in functions for name in inspect.signature(function).parameters}


def test_each_option_is_an_argument():
    assert set(names("open")) <= arguments(wb.open)
    assert set(names("view")) <= arguments(wb.Model.view)
    assert set(names("embed")) <= arguments(wb.Embedder.__init__, wb.Embedder.encode)
    assert set(names("generator")) <= arguments(wb.Generator.__init__)
    assert set(names("generate")) <= arguments(wb.Generator.generate)
    assert set(names("diff")) <= arguments(wb.diff)
    assert set(names("edit")) <= arguments(wb.edit)
    assert set(names("hash")) <= arguments(wb.Model.hash)
    assert set(names("manifest", "sign")) <= arguments(wb.manifest)
    assert set(names("check", "trust")) <= arguments(wb.verify)
    for function in (wb.undo_edit, wb.settle_edit, wb.recover_folder):
        assert set(names("recover")) <= arguments(function)


def test_the_types_of_conversions_have_each_option():
    from weighbridge._options import ConvertOptions

    assert list(ConvertOptions.__annotations__) == names("convert", "view", "inputs")
    assert all(re.search(rf"^    {name} : ", ConvertOptions.__doc__, re.M) for name in ConvertOptions.__annotations__)


@pytest.mark.parametrize("name, type, words", [(name, type, words) for of, name, type, _, words in TABLE if of == "convert" and type != "file"])
def test_each_option_of_a_conversion_is_known(name, type, words):
    value: typing.Any = {"toggle": True, "number": 1, "fraction": 0.5, "size": "5GB"}.get(type, words[0] if words else "7")
    try:
        wb.plan({"w": np.zeros((4, 4), np.float32)}, "zt", **{name: value})
    except wb.Error as error:  # of another format, or with another option
        assert "there is no option" not in str(error)
    with pytest.raises(TypeError, match=rf"^plan\(\) got an unexpected keyword argument '{name}x'\. Did you mean '{name}'\?$"):
        wb.plan({"w": np.zeros(4)}, "zt", **{name + "x": value})
    if type in ("toggle", "number", "fraction"):
        with pytest.raises(TypeError, match="is expected, not"):
            wb.plan({"w": np.zeros(4)}, "zt", **{name: "a"})


def test_a_wrong_name_is_a_type_error_that_names_the_near_one(tmp_path):
    arrays, there = {"w": np.zeros(4)}, tmp_path / "a.zt"
    for call, near in ((lambda: wb.convert(arrays, there, formt="zt"), "format"), (lambda: wb.convert(arrays, there, dtpye="f16"), "cast"),
                       (lambda: wb.save(there, arrays, overwite=True), "overwrite"), (lambda: wb.save(there, arrays, meta_data={}), "metadata"),
                       (lambda: wb.plan(arrays, "zt", shard_size=5), "max_shard_size"), (lambda: wb.apply(arrays, [], there, progess=True), "progress")):
        with pytest.raises(TypeError, match=f"Did you mean '{near}'"):
            call()
    with pytest.raises(TypeError, match=r"convert\(\) got an unexpected keyword argument 'zzz'\. The options are"):
        wb.convert(arrays, there, zzz=1)
    assert not there.exists()


def test_sizes_have_units(tmp_path):
    for size in (16, "16", "16B"):
        wb.convert({name: np.zeros(4, np.float32) for name in "abc"}, f"{tmp_path}/out/", format="safetensors", max_shard_size=size, overwrite=True)
        assert len(list((tmp_path / "out").glob("*-of-00003.safetensors"))) == 3
