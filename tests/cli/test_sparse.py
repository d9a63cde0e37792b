# SPDX-License-Identifier: Apache-2.0
"""Issue 16, A.8: `convert --sparse` writes tensors of a .zt as sparse, without loss."""
import json
import struct

import pytest

from conftest import floats, safetensors, validated, weighbridge

# -0.0 and a NaN are values; 95 of 100 elements are zero.
VALUES = [0.0] * 100
VALUES[3], VALUES[17], VALUES[42], VALUES[99], VALUES[98] = -0.0, float("nan"), 1.5, -2.0, 1e-40
FULL = [float(i + 1) for i in range(100)]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.safetensors"
    path.write_bytes(safetensors({"pruned": ("F32", [10, 10], floats(*VALUES)), "full": ("F32", [10, 10], floats(*FULL)),
                                  "cube": ("F32", [4, 5, 5], floats(*VALUES)), "scalar": ("F32", [], floats(0))}))
    return path


def layouts(path):
    value = validated(weighbridge("inspect", path, "--json").stdout, "inspect")["files"][0]
    return {tensor["name"]: tensor["layout"] for tensor in value["tensors"]}


def raw(path, name, *flags):
    return weighbridge("extract", path, name, "--raw", "-o", "-", *flags, text=False).stdout


@pytest.mark.parametrize("layout,sparse", [("csr", {"pruned"}), ("coo", {"pruned", "cube"})])
@pytest.mark.parametrize("flags", [[], ["--encoding", "zstd", "--digest", "sha256"], ["--zt-version", "1.2", "--encoding", "zstd"]])
def test_sparse_tensors_come_back_bit_by_bit(source, tmp_path, layout, sparse, flags):
    out, back = tmp_path / "out.zt", tmp_path / "back.safetensors"
    made = validated(weighbridge("convert", source, out, "--sparse", layout, "--json", *flags).stdout, "convert")
    assert {item["subject"] for item in made["changes"] if item["to"] == "sparse_" + layout} == {f'tensors["{n}"]' for n in sparse}
    assert made["losses"] == [] and made["written"]
    assert layouts(out) == {name: "sparse_" + layout if name in sparse else "dense" for name in ["pruned", "full", "cube", "scalar"]}
    weighbridge("verify", out)
    weighbridge("convert", out, back, "--allow", "layout")
    for name in layouts(source):
        assert raw(back, name) == raw(source, name), name
    assert len(raw(out, "pruned", "--part", "values")) == 5 * 4


def test_the_density_bound_decides_in_place_of_the_size(source, tmp_path):
    for bound, sparse in [("0.05", {"pruned", "cube"}), ("0.04", set()), ("1", {"pruned", "cube", "full"})]:
        weighbridge("convert", source, tmp_path / "out.zt", "--force", "--sparse", "coo", "--sparse-density", bound)
        assert {name for name, layout in layouts(tmp_path / "out.zt").items() if layout != "dense"} == sparse


def test_csr_and_coo_turn_into_each_other(source, tmp_path):
    csr, coo, again = tmp_path / "csr.zt", tmp_path / "coo.zt", tmp_path / "again.zt"
    weighbridge("convert", source, csr, "--sparse", "csr", "--only", "pruned", "--only", "full")
    weighbridge("convert", csr, coo, "--sparse", "coo")
    weighbridge("convert", coo, again, "--sparse", "csr", "--digest", "crc32c")
    assert layouts(coo)["pruned"] == "sparse_coo" and layouts(again)["pruned"] == "sparse_csr"
    assert weighbridge("hash", again).stdout.split()[0] == weighbridge("hash", csr).stdout.split()[0]
    weighbridge("verify", again)


def test_append_takes_it_too(source, tmp_path):
    out = tmp_path / "out.zt"
    weighbridge("convert", source, out, "--only", "full")
    weighbridge("append", out, source, "--without", "full", "--sparse", "coo")
    assert layouts(out) == {"full": "dense", "pruned": "sparse_coo", "cube": "sparse_coo", "scalar": "dense"}


@pytest.mark.parametrize("flags,said", [
    (["x.safetensors", "--sparse", "csr"], "--sparse applies only to zt and zt2, and the output is safetensors"),
    (["x.zt", "--to", "zt0", "--sparse", "coo"], "--sparse applies only to zt and zt2, and the output is zt0"),
    (["x.zt", "--sparse", "ccs"], "--sparse cannot be 'ccs': expected csr or coo"),
    (["x.zt", "--sparse", "csr", "--cast", "f16"], "--sparse and --cast cannot be used together"),
    (["x.zt", "--sparse-density", "0.5"], "--sparse-density has no effect without --sparse"),
    (["x.zt", "--sparse", "csr", "--sparse-density", "0"], "--sparse-density must be a number above 0, at most 1, not '0'"),
    (["x.zt", "--sparse", "csr", "--sparse-density", "nan"], "--sparse-density must be a number above 0, at most 1, not 'nan'")])
def test_what_cannot_be_meant_is_refused(source, tmp_path, flags, said):
    done = weighbridge("convert", source, tmp_path / flags[0], *flags[1:], status=2)
    assert said in done.stderr and not (tmp_path / flags[0]).exists()


def test_a_plan_counts_and_writes_nothing(source, tmp_path):
    plan = json.loads(weighbridge("convert", source, tmp_path / "out.zt", "--sparse", "coo", "--dry-run", "--json").stdout)
    weighbridge("convert", source, tmp_path / "out.zt", "--sparse", "coo")
    assert plan["output_size_exact"] and plan["output_size"] == (tmp_path / "out.zt").stat().st_size


def test_broken_sparse_tensors_are_not_turned(tmp_path):
    """The indices of the source are checked before anything is written."""
    path, out = tmp_path / "in.zt", tmp_path / "out.zt"
    blob = struct.pack("<QQf", 1, 7, 1.0)  # column 7 of 5
    fields = [(b"name", b"\x61s"), (b"offset", b"\x18\x40"), (b"size", b"\x14"), (b"dtype", b"\x67float32"),
              (b"layout", b"\x69sparsecoo"), (b"shape", b"\x82\x02\x05"), (b"encoding", b"\x63raw")]
    index = b"\x81\xa7" + b"".join(bytes([0x60 + len(key)]) + key + value for key, value in fields)
    path.write_bytes(b"ZTEN0001".ljust(64, b"\0") + blob + index + struct.pack("<Q", len(index)))
    assert "zt0/entry-range" in weighbridge("convert", path, out, "--sparse", "csr", status=1).stderr
    assert not out.exists()
