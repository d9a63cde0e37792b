# SPDX-License-Identifier: Apache-2.0
"""PyTorch: tensors over a file, modules, and safetensors' functions. `make interop PEER=torch` runs it where PyTorch is installed."""
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch: make interop PEER=torch runs this")
np = pytest.importorskip("numpy")

import weighbridge as wb  # noqa: E402
import weighbridge.safetensors as ours  # noqa: E402
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
    assert st.load_model(target, tmp_path / "a.safetensors") == (set(), [])  # as the original, which says lists
    assert torch.equal(target.b.weight, source.a.weight)


def test_slices_of_a_mapped_tensor_take_the_indices_of_torch(tmp_path):
    """The original gives PyTorch its mapped memory, so a slice that ends outside is clamped; read from the file, it is refused."""
    whole = torch.arange(50.0).reshape(10, 5)
    st.save_file({"w": whole, "b": whole.to(torch.bfloat16)}, tmp_path / "a.safetensors")
    for name, expected in (("w", whole), ("b", whole.to(torch.bfloat16))):
        with ours.safe_open(tmp_path / "a.safetensors", "pt") as f:
            found = f.get_slice(name)
            for key in (slice(None, 20), slice(1, 8, 3), (..., 0), [1, 2], slice(-3, None), None, (slice(None), slice(0, 5, 2))):
                assert torch.equal(found[key], expected[key])
            with pytest.raises(IndexError):
                found[10]
        with ours.safe_open(tmp_path / "a.safetensors", "pt", backend="pread") as f:
            found = f.get_slice(name)
            for key in (slice(1, 8, 3), (..., 0), (slice(None), slice(0, 5, 2)), -1):
                assert torch.equal(found[key], expected[key])
            with pytest.raises(ours.SafetensorError, match="index 19 out of bounds for tensor dimension #0 of size 10"):
                found[:20]


def test_a_loader_hands_out_each_tensor_once(tmp_path):
    """On the CPU, which prefetch() refuses: a CUDA device differs only in where the tensors go."""
    tensors = {"a": torch.arange(12.0).reshape(3, 4), "b": torch.arange(4), "c": torch.ones(2, dtype=torch.bfloat16)}
    st.save_file(tensors, tmp_path / "a.safetensors")
    with ours.safe_open(tmp_path / "a.safetensors", "pt") as f:
        model, order = f._model, f.offset_keys()
    with ours.PrefetchLoader(model, {name: slice(1, 3) if name == "a" else None for name in order}, "cpu", 2) as loader:
        assert loader.names() == order and len(loader) == 3
        assert torch.equal(loader.take("a"), tensors["a"][1:3])
        with pytest.raises(ours.SafetensorError, match="already delivered"):
            loader.take("a")
        with pytest.raises(ours.SafetensorError, match="not in the prefetch plan"):
            loader.take("d")
        stream = iter(loader)
        name, tensor = next(stream)
        assert torch.equal(tensor, tensors[name]) and name != "a"
    for use in (lambda: loader.take("b"), lambda: list(stream)):
        with pytest.raises(ours.SafetensorError, match="prefetch loader closed"):
            use()


def test_names_that_others_import(tmp_path):
    """transformers, accelerate and diffusers import helpers of safetensors.torch that are not documented."""
    held = []
    specs = st._flatten_as_ptr({"w": torch.ones(2, 3)}, held)
    assert specs["w"].shape == [2, 3] and len(held) == 1
    weight = torch.zeros(4)
    assert st._find_shared_tensors({"a": weight, "b": weight[:2], "c": torch.zeros(4)}) == [{"a", "b"}, {"c"}]
    assert st._remove_duplicate_names({"a": weight[:2], "b": weight}) == {"b": ["a"]}
    assert st._is_complete(weight) and not st._is_complete(weight[:2]) and st._end_ptr(weight) == weight.data_ptr() + 16
    assert st.storage_ptr(weight[1:]) == weight.data_ptr() and st.storage_size(weight[1:]) == 16


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


@pytest.mark.parametrize("name", ["conj", "neg", "transposed", "plain"])
def test_conjugated_and_negated_views_are_saved_as_their_values(tmp_path, name):
    """In memory they have the numbers of the tensor that they view, and those were written."""
    z = torch.tensor([[1 + 2j, 3 + 4j]], dtype=torch.complex64)
    tensor = {"conj": z.conj(), "neg": torch._neg_view(torch.tensor([1.0, 3.0])), "transposed": z.conj().T.contiguous(), "plain": z}[name]
    values = tensor.resolve_conj().resolve_neg()
    assert torch.equal(st.load(st.save({"t": tensor}))["t"], values)
    st.save_file({"t": tensor}, tmp_path / "a.safetensors")
    assert torch.equal(st.load_file(tmp_path / "a.safetensors")["t"], values)
    wb.save(tmp_path / "a.zt", {"t": tensor})
    assert torch.equal(wb.open(tmp_path / "a.zt")["t"].torch(), values)


def test_conjugated_and_negated_views_of_a_file_are_unsupported_by_every_way(tmp_path):
    z = torch.tensor([1 + 2j, 3 + 4j], dtype=torch.complex64)
    torch.save({"t": z.conj()}, tmp_path / "a.pt")
    tensor = wb.open(tmp_path / "a.pt")["t"]
    assert tensor.unsupported.rule == "pytorch/conjugate" and not tensor.is_view and tensor.parts == []
    for read in (tensor.numpy, tensor.torch, tensor.tobytes, tensor.hash, tensor.__dlpack__, lambda: tensor[0], lambda: np.asarray(tensor),
                 lambda: wb.open(tmp_path / "a.pt").numpy(), lambda: wb.open(tmp_path / "a.pt").numpy(copy=True)):
        with pytest.raises(wb.UnsupportedError, match="conjugated or negated"):
            read()
    with pytest.raises(wb.UsageError, match="conjugated or negated"):
        wb.convert(tmp_path / "a.pt", tmp_path / "a.safetensors")


def test_tensors_without_memory_are_refused(tmp_path):
    """A null pointer with a size ended the interpreter."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3)
    for tensor in (torch._efficientzerotensor((3,)), fake, torch.empty(3, device="meta")):
        for save in (lambda: wb.save(tmp_path / "a.zt", {"t": tensor}), lambda: st.save({"t": tensor})):  # noqa: B023
            with pytest.raises(Exception):
                save()
    assert not list(tmp_path.iterdir())


def test_an_element_that_repeats_without_end_fills_no_memory(tmp_path):
    """1.5 KiB of a file asked for 256 GiB; a few elements of it are read."""
    many = 1 << 36
    torch.save({"w": torch.ones(1).expand(many), "v": torch.arange(2.0).view(2, 1).expand(2, many)}, tmp_path / "a.pt")
    model = wb.open(tmp_path / "a.pt")
    w, v = model["w"], model["v"]
    assert w[5] == 1 and w[many - 1] == w[-1] == 1 and w[many - 3:].tolist() == [1, 1, 1] and w[-1:].tolist() == [1]
    for read in (w.numpy, w.torch, w.tobytes, lambda: w.numpy("f8"), lambda: w[0:1 << 33], lambda: w[::1 << 30], lambda: v[1], lambda: w.numpy(copy=True), lambda: 2 in w,
                 lambda: np.asarray(w), w.__dlpack__, model.numpy, model.torch, lambda: model.numpy(copy=True), w.hash):
        with pytest.raises(wb.LimitError) as refused:
            read()
        assert refused.value.rule in ("limit/work", "limit/output") and refused.value.rule[6:] in str(refused.value)


def test_tensors_that_share_an_element_fill_no_memory_together(tmp_path):
    """Each is within the limit; all of them are not."""
    one = torch.ones(1, dtype=torch.uint8)
    torch.save({str(i): one.expand(200 << 20) for i in range(3)}, tmp_path / "a.pt")
    model = wb.open(tmp_path / "a.pt")
    for read in (model.numpy, model.torch, lambda: model.numpy(copy=True), lambda: st.load_file(tmp_path / "a.pt")):
        with pytest.raises((wb.LimitError, ours.SafetensorError), match="limit/output"):
            read()
