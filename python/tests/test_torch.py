# SPDX-License-Identifier: Apache-2.0
"""PyTorch: tensors over a file, modules, and safetensors' functions. `make check-torch` runs it where PyTorch is installed."""
import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

import weighbridge as wb  # noqa: E402
import weighbridge.safetensors.torch as st  # noqa: E402
import weighbridge.torch as wt  # noqa: E402


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
                                   "float8_e4m3fn", "float8_e5m2"])
def test_every_dtype_goes_through_a_file(tmp_path, dtype):
    tensor = torch.arange(12).reshape(3, 4).to(torch.float32).to(getattr(torch, dtype))
    wb.save(tmp_path / "a.zt", {"w": tensor})
    found = wb.open(tmp_path / "a.zt")["w"].torch()
    assert found.dtype == tensor.dtype and found.shape == tensor.shape and torch.equal(found.view(torch.uint8), tensor.view(torch.uint8))


def test_writing_to_a_tensor_changes_no_file(tmp_path):
    path = tmp_path / "a.safetensors"
    st.save_file({"w": torch.zeros(1000)}, path)
    before = path.read_bytes()
    first, second = wb.open(path)["w"].torch(), wb.open(path)["w"].torch()
    first += 1
    assert first.sum() == 1000 and second.sum() == 0 and path.read_bytes() == before
    path.unlink()
    assert first.sum() == 1000 and second.sum() == 0


def test_dlpack(tmp_path):
    wb.save(tmp_path / "a.zt", {"w": torch.arange(4, dtype=torch.bfloat16)})
    assert torch.equal(torch.from_dlpack(wb.open(tmp_path / "a.zt")["w"]), torch.arange(4, dtype=torch.bfloat16))


def test_modules_load_from_any_container(tmp_path):
    source, target = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    wb.save(tmp_path / "a.zt", {"head." + name: tensor for name, tensor in source.state_dict().items()}, encoding="zstd")
    with pytest.raises(KeyError):
        wt.load_state_dict(target, tmp_path / "a.zt")
    assert wt.load_state_dict(target, tmp_path / "a.zt", prefix="head.") == ([], [])
    assert torch.equal(target.weight, source.weight) and target.weight.requires_grad
    with pytest.raises(wb.UsageError, match="shape"):
        wt.load_state_dict(torch.nn.Linear(2, 3), tmp_path / "a.zt", prefix="head.")


def test_a_model_with_tied_weights_is_saved_once(tmp_path):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(3, 3, bias=False)
            self.b = torch.nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

    source, target = Tied(), Tied()
    with pytest.raises(RuntimeError, match="share memory"):
        st.save_file(source.state_dict(), tmp_path / "a.safetensors")
    st.save_model(source, tmp_path / "a.safetensors")
    assert len(wb.open(tmp_path / "a.safetensors")) == 1
    assert st.load_model(target, tmp_path / "a.safetensors") == ([], [])
    assert torch.equal(target.b.weight, source.a.weight)


def big(value, count=100_000):
    return {"w": torch.full((count,), float(value))}


def test_another_file_by_the_same_name_is_not_mapped(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    st.save_file(big(1), path)
    m = wb.open(path)
    st.save_file(big(2), path)
    assert m["w"].torch()[0] == 1 == m.torch()["w"][0] and torch.from_dlpack(m["w"])[0] == 1
    monkeypatch.chdir(tmp_path)
    (tmp_path / "<memory>").write_bytes(path.read_bytes())
    st.save_file(big(3), path)
    assert wb.open(path.read_bytes())["w"].torch()[0] == 3


@pytest.mark.parametrize("count", [10, 100_000])
def test_each_call_gives_a_tensor_of_its_own(tmp_path, count):
    path = tmp_path / "a.safetensors"
    st.save_file(big(0, count), path)
    m = wb.open(path)
    with st.safe_open(path, "pt") as f, st.safe_open(path, "np") as g:
        takes = [lambda: m["w"].torch(), lambda: m.torch()["w"], lambda: torch.from_dlpack(m["w"]), lambda: f.get_tensor("w"), lambda: g.get_tensor("w"),
                 lambda: st.load_file(path)["w"]]
        for take in takes:
            one, two = take(), take()
            one[0] = 99  # a crash where the memory is read-only
            assert two[0] == 0 and take()[0] == 0
    assert (st.load_file(path)["w"] == 0).all()


def test_a_tensor_outlives_its_model(tmp_path):
    st.save_file(big(5), tmp_path / "a.safetensors")
    m = wb.open(tmp_path / "a.safetensors")
    t = m["w"]
    m.close()
    assert t.torch()[7] == 5 == torch.from_dlpack(t)[7] == t.numpy()[7]


def test_a_module_is_not_half_loaded(tmp_path):
    module = torch.nn.Linear(3, 2)
    before = module.weight.clone()
    wb.save(tmp_path / "a.zt", {"weight": torch.zeros(2, 3), "bias": torch.zeros(5)})
    with pytest.raises(wb.UsageError, match="shape"):
        wt.load_state_dict(module, tmp_path / "a.zt")
    assert torch.equal(module.weight, before)


def test_conjugates_are_saved_as_their_values(tmp_path):
    value = torch.tensor([1 + 2j, 3 - 4j])
    wb.save(tmp_path / "a.zt", {"w": value.conj(), "n": value.conj().imag})
    m = wb.open(tmp_path / "a.zt")
    assert torch.equal(m["w"].torch(), value.conj().resolve_conj()) and torch.equal(m["n"].torch(), torch.tensor([-2.0, 4.0]))
