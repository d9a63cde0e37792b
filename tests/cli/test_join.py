# SPDX-License-Identifier: Apache-2.0
"""Tests convert with several inputs."""
import json

import pytest

from conftest import floats, safetensors, validated, weighbridge


def digest(path):
    return weighbridge("hash", path).stdout.split()[0]


@pytest.fixture
def pieces(tmp_path):
    """Two files and the digest of both together."""
    named = {f"t{i}": ("F32", [2], floats(i, i + 0.5)) for i in range(4)}
    (tmp_path / "whole.safetensors").write_bytes(safetensors(named, {"format": "pt"}))
    for file, names in (("a", ("t0", "t1")), ("b", ("t2", "t3"))):
        (tmp_path / f"{file}.safetensors").write_bytes(safetensors({n: named[n] for n in names}, {"format": "pt"}))
    return tmp_path


def test_several_inputs_become_one_model(pieces):
    done = weighbridge("convert", pieces / "a.safetensors", pieces / "b.safetensors", "-o", pieces / "out.zt").stdout
    assert "a.safetensors and 1 more (safetensors) -> " in done and ": 4 tensors, " in done and ", written\n" in done
    assert digest(pieces / "out.zt") == digest(pieces / "whole.safetensors")


def test_shards_become_one_file_again(pieces):
    weighbridge("convert", pieces / "whole.safetensors", f"{pieces / 'shards'}/", "--to", "safetensors", "--max-shard-size", "8")
    shards = sorted((pieces / "shards").glob("*.safetensors"))
    assert len(shards) == 4
    weighbridge("convert", *shards, "-o", pieces / "again.safetensors")
    assert digest(pieces / "again.safetensors") == digest(pieces / "whole.safetensors")
    weighbridge("convert", *shards, "-o", f"{pieces / 'two'}/", "--to", "safetensors", "--max-shard-size", "16")
    assert len(list((pieces / "two").glob("*.safetensors"))) == 2
    assert digest(pieces / "two") == digest(pieces / "whole.safetensors")


def test_formats_may_differ_and_selection_is_of_the_whole(pieces):
    weighbridge("convert", pieces / "a.safetensors", pieces / "a.zt")
    weighbridge("convert", pieces / "a.zt", pieces / "b.safetensors", "-o", pieces / "out.safetensors", "--without", "t0", "--rename", "t3=x")
    rows = json.loads(weighbridge("inspect", pieces / "out.safetensors", "--json").stdout)["files"][0]["tensors"]
    assert sorted(row["name"] for row in rows) == ["t1", "t2", "x"]


def test_a_tensor_in_two_inputs_is_an_error_that_names_both(pieces):
    a, whole, out = pieces / "a.safetensors", pieces / "whole.safetensors", pieces / "out.zt"
    said = weighbridge("convert", a, whole, "-o", out, status=2).stderr
    assert said == (f'weighbridge: the tensor "t0" is in "{a}" and in "{whole}", and so is 1 more; try --on-duplicate first\n')
    assert not out.exists()
    plan = validated(weighbridge("convert", "--json", a, whole, "-o", out, "--on-duplicate", "last").stdout, "convert")
    assert plan["written"] and plan["tensors"] == 4 and plan["path"] == f"{a} and 1 more"
    assert [item["subject"] for item in plan["changes"]] == ['tensors["t0"]', 'tensors["t1"]']
    assert digest(out) == digest(whole)


def test_metadata_that_differs_follows_on_duplicate(pieces):
    other = pieces / "c.safetensors"
    other.write_bytes(safetensors({"x": ("U8", [1], b"1")}, {"format": "tf"}))
    said = weighbridge("convert", pieces / "a.safetensors", other, "-o", pieces / "out.zt", status=2).stderr
    assert '"format" is "pt" in' in said and '"tf" in' in said
    done = weighbridge("convert", pieces / "a.safetensors", other, "-o", pieces / "out.zt", "--on-duplicate", "first").stdout
    assert "change attribute: attributes[\"format\"]: tf -> taken from " in done


def test_what_is_asked_in_a_wrong_way_is_refused(pieces):
    a, b, out = pieces / "a.safetensors", pieces / "b.safetensors", pieces / "out.zt"
    assert "needs -o OUT" in weighbridge("convert", a, b, out, status=2).stderr
    assert "needs OUT" in weighbridge("convert", a, status=2).stderr
    assert "has no effect" in weighbridge("convert", a, out, "--on-duplicate", "first", status=2).stderr
    assert "has no effect" in weighbridge("convert", a, "-o", out, "--on-duplicate", "first", status=2).stderr
    assert "same file as the input" in weighbridge("convert", a, b, "-o", b, "--force", status=2).stderr
    assert "b.missing" in weighbridge("convert", a, pieces / "b.missing", "-o", out, status=4).stderr
    assert not out.exists() and b.exists()
    weighbridge("convert", a, "-o", out)
    assert digest(out) == digest(a)


def test_thousands_of_inputs(tmp_path):
    for i in range(2000):
        (tmp_path / f"{i}.safetensors").write_bytes(safetensors({f"t{i}": ("U8", [1], bytes([i % 256]))}))
    done = weighbridge("convert", *sorted(tmp_path.glob("*.safetensors")), "-o", tmp_path / "out.zt").stdout
    assert ": 2,000 tensors, " in done
