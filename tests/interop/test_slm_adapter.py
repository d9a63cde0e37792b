# SPDX-License-Identifier: Apache-2.0
"""Tests adapter packages against an independent implementation of src/formats/slm_adapter/README.md: it reads our packages, its packages apply here,
and both give the same floats."""
import json
import sys

import pytest

from interop_tools import ROOT, np, weighbridge

sys.path.insert(0, str(ROOT / "tests/witness"))
import slm  # noqa: E402
import slm_adapter  # noqa: E402

save_file = pytest.importorskip("safetensors.numpy", reason="safetensors is missing: tools/python-environments.sh makes the environment").save_file

RANDOM = np.random.Generator(np.random.PCG64(7))
TARGET, SHAPE = "layers.0.w1.weight", (16, 8)


@pytest.fixture(params=["f32", "q8_0", "q4_0"])
def base(request, tmp_path):
    path = tmp_path / "base.slm"
    weighbridge("slm", "fixture", "tiny", "--dtype", request.param, "-o", path)
    return path


def floats(shape):
    return (RANDOM.standard_normal(shape) * 0.1).astype(np.float32)


def sparse_delta():
    delta = floats(SHAPE)
    delta[RANDOM.random(SHAPE) < 0.8] = 0
    delta[0, 0] = 0.5
    return delta


def deltas(kind):
    """The input of the command, and the same as an entry of the witness."""
    if kind == "adp1":
        delta = floats(SHAPE)
        return {TARGET: delta}, (TARGET, SHAPE, delta, None)
    if kind == "asp1":
        delta = sparse_delta()
        places = np.flatnonzero(delta)
        return {TARGET: delta}, (TARGET, SHAPE, places, delta.reshape(-1)[places])
    a, b = floats((SHAPE[0], 2)), floats((2, SHAPE[1]))
    return {TARGET + ".lora_a": a, TARGET + ".lora_b": b}, (TARGET, SHAPE, a, b)


def adapted(path):
    return {entry["name"]: slm.values(entry) for entry in slm.read(path)["tensors"]}


def expect_adapted(base, package, out):
    weighbridge("slm", "adapt", base, package, "-o", out)
    weighbridge("verify", "--quiet", out)
    fused = {entry["name"]: slm.values(entry) for entry in slm_adapter.apply(base, package)}
    ours = adapted(out)
    assert ours.keys() == fused.keys()
    for name, values in fused.items():
        assert np.array_equal(ours[name].view(np.uint32), values.view(np.uint32)), name


@pytest.mark.parametrize("kind", ["adp1", "asp1", "alr1"])
def test_packages_made_here_are_the_witness_own_bytes(kind, base, tmp_path):
    tensors, entry = deltas(kind)
    save_file(tensors, tmp_path / "deltas.safetensors")
    package = tmp_path / f"p.{kind}"
    weighbridge("slm", "adapter", base, tmp_path / "deltas.safetensors", "--kind", kind, "-o", package)
    assert package.read_bytes() == slm_adapter.build(kind.upper(), slm_adapter.identity(base), [entry])
    assert slm_adapter.read(package)["warnings"] == []
    expect_adapted(base, package, tmp_path / "out.slm")


@pytest.mark.parametrize("kind", ["adp1", "asp1", "alr1"])
def test_packages_of_the_witness_apply_here(kind, base, tmp_path):
    _, entry = deltas(kind)
    package = tmp_path / f"p.{kind}"
    slm_adapter.write(package, kind.upper(), slm_adapter.identity(base), [entry])
    listed = json.loads(weighbridge("inspect", "--json", package))["files"][0]
    assert listed["format"] == "slm-adapter" and listed["version"] == kind.upper()
    expect_adapted(base, package, tmp_path / "out.slm")


@pytest.mark.parametrize("field", slm_adapter.IDENTITY)
def test_each_identity_must_match(field, base, tmp_path):
    identity = slm_adapter.identity(base)
    identity[field] ^= 1
    package = tmp_path / "p.adp1"
    slm_adapter.write(package, "ADP1", identity, [deltas("adp1")[1]])
    weighbridge("verify", "--quiet", package)
    weighbridge("slm", "adapt", base, package, "-o", tmp_path / "out.slm", status=2)
    assert not (tmp_path / "out.slm").exists()


def test_a_failed_application_writes_nothing_and_changes_nothing(base, tmp_path):
    before = base.read_bytes()
    huge = np.full(SHAPE, 3e38, np.float32)
    package = tmp_path / "p.adp1"
    slm_adapter.write(package, "ADP1", slm_adapter.identity(base), [(TARGET, SHAPE, huge, None)])
    weighbridge("slm", "adapt", base, package, package, "-o", tmp_path / "out.slm", status=2)
    assert base.read_bytes() == before and not (tmp_path / "out.slm").exists()
