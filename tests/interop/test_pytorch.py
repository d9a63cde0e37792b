# SPDX-License-Identifier: Apache-2.0
"""PyTorch's files. Read: every file of data/pytorch, which torch wrote, against its manifest. Written: against torch both ways, for which
`make interop PEER=torch-files` has the environment; elsewhere those tests are skipped. Pickles that would do harm, which the tests make themselves:
picklescan's own test files are in no package."""
import base64
import json
import os
import pathlib
import pickle
import struct
import zipfile

import pytest

from interop_tools import HERE, NUMPY_OF, TEST_DATA, content_digest, extracted, inspected, np, sha256, weighbridge

safetensors_numpy = None
try:
    import safetensors.numpy as safetensors_numpy
except ImportError:
    pass
try:
    import torch
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="torch is missing: make interop PEER=torch-files makes an environment with it")

DATA = HERE / "data/pytorch"
FILES = json.loads((DATA / "manifest.json").read_text())["files"]
TAR = "legacy_tar.pt"  # what PyTorch wrote before 0.1.10, which is named and refused
del FILES[TAR]
for file in FILES.values():
    for tensor in file["tensors"]:
        if "dequantized" in tensor:  # what torch's dequantize() gives
            tensor.update(dtype="float32", sha256=tensor["dequantized"])
OURS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "complex64", "complex128": "complex128", "bool": "bool",
        **{f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}, "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2",
        "float8_e4m3fnuz": "f8_e4m3fnuz", "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e8m0fnu": "f8_e8m0", "float4_e2m1fn_x2": "f4"}
# Types that other containers lack.
LACKS = {"npz": {"float4_e2m1fn_x2"}, "safetensors": {"complex128"}, "zt": {"float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn_x2"}}
EVERY_LOSS = "alias,attribute,attribute-type,dtype,layout,name,unsupported"


def name_of(path):
    """The name of the tensor or value at this path: keys and indices with dots between them."""
    return ".".join(map(str, path)) or "tensor"


def shape_of(tensor):
    packed = 2 if tensor["dtype"] == "float4_e2m1fn_x2" else 1
    return tensor["shape"][:-1] + [tensor["shape"][-1] * packed] if packed > 1 else tensor["shape"]


def reads_as_stored(tensor, file):
    """Whether this program reads the elements: not of what has none."""
    if "meta" in tensor:
        return False
    return "layout" not in tensor or (tensor["layout"] in ("sparse_coo", "sparse_csr") and tensor["path"] != ["coo_hybrid"])


def readable(file):
    return [tensor for tensor in FILES[file]["tensors"] if reads_as_stored(tensor, file)]


# ---- reading ----

@pytest.mark.parametrize("file", FILES)
def test_tensors_are_those_of_torch(file):
    there = inspected(DATA / file)
    for tensor in FILES[file]["tensors"]:
        name = name_of(tensor["path"])
        assert name in there, name
        assert there[name]["shape"] == shape_of(tensor), name
        if not there[name]["supported"]:
            assert not reads_as_stored(tensor, file), (name, there[name]["reason"])
            continue
        if "sha256" in tensor:
            assert there[name]["dtype"] == OURS[tensor["dtype"]], name
            assert sha256(extracted(DATA / file, name, "--raw")) == tensor["sha256"], name
        elif "dense" in tensor:
            assert sha256(extracted(DATA / file, name, "--dense", "--raw")) == tensor["dense"], name


def flattened(path, value):
    """A list that holds dictionaries is not one value."""
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        value = dict(enumerate(value))
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from flattened([*path, key], item)
    else:
        yield path, value


@pytest.mark.parametrize("file", [file for file in FILES if FILES[file]["values"]])
def test_plain_values_are_attributes(file):
    there = json.loads(weighbridge("inspect", "--json", DATA / file))["files"][0]["attributes"]
    for path, expected in (flat for value in FILES[file]["values"] for flat in flattened(value["path"], value["value"])):
        name = name_of(path)
        assert name in there, name
        if isinstance(expected, int) and abs(expected) >= 2**64:  # bytes of two's complement
            assert int.from_bytes(base64.b64decode(there[name]), "little", signed=True) == expected
        else:
            assert there[name] == expected, name


@pytest.mark.parametrize("file", FILES)
def test_verify_finds_no_error_in_what_torch_writes(file):
    done = json.loads(verified(DATA / file)[1])["files"][0]
    assert not [finding for finding in done["findings"] if finding["severity"] == "error"], done["findings"]


@pytest.mark.parametrize("target", ["safetensors", "gguf", "npz", "zt", "pt"])
def test_the_versions_of_a_state_dict_need_no_consent(tmp_path, target):
    """Once, no state dict could be converted without --allow attribute-type, although torch itself adds _metadata."""
    out = tmp_path / f"out.{target}"
    said = weighbridge("convert", DATA / "state_dict.pth", out, "--allow", "alias").decode()
    kept = json.loads(weighbridge("inspect", "--json", out))["files"][0]["attributes"]
    if target == "pt":
        assert kept["_metadata"][""] == {"version": 1}
    else:
        assert kept == {} and 'change attribute: attributes["_metadata"]' in said
    weighbridge("convert", DATA / "optimizer_adamw.pt", tmp_path / f"model.{target}", "--only", "model.*", "--allow", "alias")


@pytest.mark.parametrize("option", ["--only=model.*", "--without=optimizer.*,epoch"])
def test_a_selection_leaves_out_the_values_beside_it(tmp_path, option):
    flag, globs = option.split("=")
    flags = [part for glob in globs.split(",") for part in (flag, glob)]
    out = tmp_path / "out.safetensors"
    said = weighbridge("convert", DATA / "optimizer_adamw.pt", out, *flags, "--allow", "alias").decode()
    assert set(inspected(out)) == {name for name in inspected(DATA / "optimizer_adamw.pt") if name.startswith("model.")}
    assert json.loads(weighbridge("inspect", "--json", out))["files"][0]["attributes"] == {}
    assert 'attributes["optimizer.param_groups.0.lr"]' in said and 'attributes["epoch"]' in said
    whole = tmp_path / "whole.pt"
    weighbridge("convert", DATA / "optimizer_adamw.pt", whole, "--unset", "optimizer.*", "--unset", "model._metadata")
    assert json.loads(weighbridge("inspect", "--json", whole))["files"][0]["attributes"] == {"epoch": 2}
    weighbridge("convert", DATA / "optimizer_adamw.pt", whole, "--overwrite", "--unset", "optimiser.*", status=2)


@pytest.mark.parametrize("target", ["safetensors", "gguf", "npz", "zt", "pt"])
def test_a_training_checkpoint_converts_without_consent(tmp_path, target):
    """Its epoch and the settings of its optimizer needed --allow attribute-type; a tensor is never left out."""
    out = tmp_path / f"out.{target}"
    said = json.loads(weighbridge("convert", DATA / "optimizer_adamw.pt", out, "--allow", "alias", "--json"))
    assert set(inspected(out)) == set(inspected(DATA / "optimizer_adamw.pt"))
    kept = json.loads(weighbridge("inspect", "--json", out))["files"][0]["attributes"]
    named = {each["subject"] for each in said["losses"] + said["changes"]}
    if target in ("safetensors", "npz"):
        assert {'attributes["epoch"]', 'attributes["optimizer.param_groups.0.lr"]'} <= named
    assert kept.get("epoch") == {"safetensors": "2", "npz": None}.get(target, 2)


def test_attributes_of_a_model_belong_to_no_selection(tmp_path):
    weighbridge("convert", DATA / "state_dict.pth", tmp_path / "a.pt", "--set", "license=mit")
    weighbridge("convert", tmp_path / "a.pt", tmp_path / "b.safetensors", "--only", "first.*", "--allow", "alias")
    assert json.loads(weighbridge("inspect", "--json", tmp_path / "b.safetensors"))["files"][0]["attributes"] == {"license": "mit"}


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_views_and_quantized_tensors_have_the_values_of_torch(tmp_path):
    torch.manual_seed(5)
    saved = {}
    for dtype in (torch.complex64, torch.complex128, torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8):
        x = (torch.randn(3, 4) * 9).to(dtype) if dtype.is_floating_point or dtype.is_complex else torch.randint(-9, 9, (3, 4), dtype=dtype)
        saved[f"{dtype} neg"] = torch._neg_view(x)
        saved[f"{dtype} neg of a part"] = torch._neg_view(x)[1:, ::2]
        if dtype.is_complex:
            saved[f"{dtype} conj"], saved[f"{dtype} both"], saved[f"{dtype} imag"] = x.conj(), torch._neg_view(x.conj()), x.clone().conj().imag
            saved[f"{dtype} conj T"] = x.mH
    x = torch.randn(4, 3, 5) * 3
    for kind in (torch.qint8, torch.quint8, torch.qint32):
        saved[f"{kind}"] = torch.quantize_per_tensor(x, 0.0137, 7, kind)
        for axis in range(3):
            scales = torch.rand(x.shape[axis], dtype=torch.float64) + 0.01
            saved[f"{kind} {axis}"] = torch.quantize_per_channel(x, scales, torch.arange(x.shape[axis]), axis, kind if kind != torch.qint32 else torch.qint8)
        saved[f"{kind} T"] = saved[f"{kind}"].transpose(0, 2)
    for file, how in (("a.pt", {}), ("b.pt", {"_use_new_zipfile_serialization": False})):
        torch.save(saved, tmp_path / file, **how)
        weighbridge("verify", tmp_path / file)
        weighbridge("convert", tmp_path / file, tmp_path / "c.pt", "--overwrite")
        there = torch.load(tmp_path / "c.pt", weights_only=True)
        for name, tensor in torch.load(tmp_path / file, weights_only=False).items():
            right = tensor.dequantize() if tensor.is_quantized else tensor.resolve_conj().resolve_neg()
            assert there[name].dtype == right.dtype and torch.equal(there[name], right), (file, name)


def test_a_tar_archive_is_named_and_refused():
    status, out = verified(DATA / TAR)
    assert status == 1 and "pytorch/tar" in [finding["rule"] for finding in json.loads(out)["files"][0]["findings"]]


@pytest.mark.parametrize("file", [file for file in FILES if readable(file)])
@pytest.mark.parametrize("target", ["npz", "safetensors", "zt"])
def test_converted_tensors_have_the_same_bytes(tmp_path, file, target):
    tensors = [tensor for tensor in readable(file) if tensor["dtype"] not in LACKS[target]]
    flags = [flag for tensor in readable(file) if tensor["dtype"] in LACKS[target] for flag in ("--without", name_of(tensor["path"]))]
    out = tmp_path / f"out.{target}"
    weighbridge("convert", DATA / file, out, "--allow", EVERY_LOSS, *flags)
    for tensor in tensors:
        data = extracted(out, name_of(tensor["path"]), "--dense", "--raw") if "dense" in tensor else extracted(out, name_of(tensor["path"]), "--raw")
        assert sha256(data) == tensor.get("sha256", tensor.get("dense")), tensor


# ---- what would do harm ----

def verified(path):
    """Exit status and JSON of `verify`."""
    import subprocess
    from interop_tools import COMMAND
    done = subprocess.run([COMMAND, "verify", "--json", str(path)], capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    return done.returncode, done.stdout


HARM = [("os", "system"), ("posix", "system"), ("nt", "system"), ("builtins", "eval"), ("builtins", "exec"), ("__builtin__", "eval"), ("builtins", "getattr"), ("builtins", "__import__"),
        ("builtins", "compile"), ("builtins", "open"), ("subprocess", "Popen"), ("subprocess", "run"), ("socket", "create_connection"), ("sys", "exit"), ("pickle", "loads"), ("runpy", "_run_code"),
        ("bdb", "Bdb.run"), ("pip", "main"), ("pydoc", "pipepager"), ("pydoc", "locate"), ("functools", "partial"), ("timeit", "timeit"), ("venv", "create"), ("http.client", "HTTPSConnection"),
        ("requests.api", "get"), ("aiohttp", "ClientSession"), ("numpy.testing._private.utils", "runstring"), ("torch.utils.collect_env", "run"), ("pty", "spawn"), ("cProfile", "run"),
        ("profile", "run"), ("trace", "Trace.run"), ("code", "InteractiveInterpreter.runcode"), ("doctest", "debug_script"), ("pkgutil", "resolve_name"), ("ctypes", "CDLL"), ("operator", "methodcaller"),
        ("operator", "attrgetter"), ("uuid", "_get_command_stdout"), ("_osx_support", "_read_output"), ("_aix_support", "_read_cmd_output"), ("imaplib", "IMAP4_stream"), ("logging", "FileHandler"),
        ("asyncio.unix_events", "_UnixSubprocessTransport._start"), ("importlib", "import_module"), ("webbrowser", "open"), ("shutil", "rmtree"), ("types", "CodeType"), ("torch", "load"), ("torch.jit", "load"),
        ("torch.hub", "load"), ("dill", "loads"), ("_io", "FileIO"), ("urllib.request", "urlopen")]


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def calls(module, name):
    """Pickles that would call module.name("x"), by each way that the opcodes have, and the offset of the opcode that names it."""
    head = b"\x80\x04"
    yield "global", b"c" + f"{module}\n{name}\n".encode() + b"(X\x01\0\0\0xtR.", 0
    yield "stack global", head + text(module) + text(name) + b"\x93(X\x01\0\0\0xtR.", 2 + 10 + len(module) + len(name)
    if "." not in name:
        yield "instance", b"(X\x01\0\0\0xi" + f"{module}\n{name}\n".encode() + b".", 7
    yield "object", b"(c" + f"{module}\n{name}\n".encode() + b"X\x01\0\0\0xo.", 1
    yield "new", b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"(X\x01\0\0\0xt\x81.", 2
    yield "memo", head + text(module) + b"\x940" + text(name) + b"\x940h\0h\x01\x93(X\x01\0\0\0xtR.", 2 + 14 + len(module) + len(name) + 4
    yield "popped", b"}c" + f"{module}\n{name}\n".encode() + b"(X\x01\0\0\0xtR0.", 1
    yield "reduced in a dictionary", b"\x80\x02}X\x01\0\0\0ac" + f"{module}\n{name}\n".encode() + b"(X\x01\0\0\0xtRs.", 9


def archive(path, pickled, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as out:
        out.writestr("archive/data.pkl", pickled)
        out.writestr("archive/version", "3\n")
    return 30 + len("archive/data.pkl")  # where the pickle begins


def expect_harm(path, module, name, offset=None):
    status, out = verified(path)
    findings = [finding for finding in json.loads(out)["files"][0]["findings"] if finding["severity"] == "error"]
    assert status == 1 and findings, (status, out[-500:])
    assert any(f"{module}.{name}" in json.dumps(finding) and (offset is None or finding["offset"] == offset) for finding in findings), findings


@pytest.mark.parametrize("module, name", HARM, ids=lambda value: value)
def test_each_way_to_call_what_does_harm_is_an_error(tmp_path, module, name):
    for way, pickled, at in calls(module, name):
        path = tmp_path / f"{way}.pt"
        begin = archive(path, pickled)
        expect_harm(path, module, name, begin + at)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_harm_beside_tensors_is_an_error(tmp_path, method):
    class Harm:
        def __reduce__(self):
            return os.system, ("true",)

    archive(tmp_path / "a.pt", pickle.dumps({"a": [1, {"b": Harm()}]}, 2), method)
    expect_harm(tmp_path / "a.pt", os.system.__module__, "system")
    with pytest.raises(AssertionError):  # verify would pass it only if it were left out
        status, _ = verified(tmp_path / "a.pt")
        assert status == 0


@pytest.mark.skipif(not (TEST_DATA / "picklescan").is_dir(), reason="picklescan's test files are not there: WEIGHBRIDGE_TEST_DATA has none")
def test_picklescan_files():
    for path in sorted((TEST_DATA / "picklescan").rglob("*")):
        if path.suffix in (".pkl", ".pt", ".bin", ".pickle"):
            status, _ = verified(path)
            assert (status != 0) == (not path.name.startswith("benign")), path


# ---- writing ----

def written(tmp_path, source, *flags):
    out = tmp_path / "out.pt"
    weighbridge("convert", source, out, *flags)
    return out


@pytest.mark.parametrize("file", [file for file in FILES if readable(file)])
def test_a_checkpoint_written_again_is_an_archive_and_reads_the_same(tmp_path, file):
    out = written(tmp_path, DATA / file, "--allow", EVERY_LOSS)
    again = tmp_path / "again.pt"
    weighbridge("convert", out, again)
    assert out.read_bytes() == again.read_bytes()
    data = out.read_bytes()
    with zipfile.ZipFile(out) as there:
        assert there.testzip() is None
        names = [info.filename for info in there.infolist()]
        assert names[:4] == ["archive/data.pkl", "archive/.format_version", "archive/.storage_alignment", "archive/byteorder"] and names[-1] == "archive/version"
        assert there.read("archive/version") == b"3\n" and there.read("archive/byteorder") == b"little"
        for info in there.infolist():
            name, extra = struct.unpack_from("<HH", data, info.header_offset + 26)
            assert (info.header_offset + 30 + name + extra) % 64 == 0
    weighbridge("verify", out)
    for tensor in readable(file):
        flags = ["--dense"] if "dense" in tensor else []
        assert sha256(extracted(out, name_of(tensor["path"]), "--raw", *flags)) == tensor.get("sha256", tensor.get("dense")), tensor


@pytest.mark.parametrize("count", [0, 1, 300, 70_000])
def test_many_tensors(tmp_path, count):
    if safetensors_numpy is None:
        pytest.skip("safetensors is missing: tools/python-environments.sh makes the environment")
    source = tmp_path / "a.safetensors"
    safetensors_numpy.save_file({f"t{i}": np.array([i], np.int32) for i in range(count)}, source)
    out = written(tmp_path, source)
    assert content_digest(source) == content_digest(out)
    weighbridge("verify", out)
    if torch is not None:
        there = torch.load(out, weights_only=True)
        assert len(there) == count and all(there[f"t{i}"].item() == i for i in range(0, count, 997))


def loaded(path):
    """What torch reads, each way that it has: into memory or mapped, storages found by the directory or computed."""
    from torch.utils.serialization import config
    for mapped in (False, True):
        for computed in (False, True):
            config.load.calculate_storage_offsets = computed
            os.environ["TORCH_SERIALIZATION_DEBUG"] = "1"  # torch then compares both places
            try:
                yield torch.load(path, weights_only=True, mmap=mapped)
            finally:
                config.load.calculate_storage_offsets = False
                del os.environ["TORCH_SERIALIZATION_DEBUG"]


def expect_of_torch(there, tensor):
    from pytorch_write import bytes_of
    got = there[name_of(tensor["path"])]
    assert str(got.dtype) == "torch." + tensor["dtype"] and list(got.shape) == tensor["shape"], tensor
    if "dense" in tensor:
        assert str(got.layout) == "torch." + tensor["layout"] and sha256(bytes_of(got.to_dense())) == tensor["dense"], tensor
    else:
        assert sha256(bytes_of(got)) == tensor["sha256"], tensor


@needs_torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("file", [file for file in FILES if readable(file)])
def test_torch_reads_what_is_written(tmp_path, file):
    out = written(tmp_path, DATA / file, "--allow", EVERY_LOSS)
    for there in loaded(out):
        assert type(there).__name__ == "OrderedDict" and len(there) == len(inspected(out))
        for tensor in readable(file):
            expect_of_torch(there, tensor)


@needs_torch
@pytest.mark.parametrize("target", ["safetensors", "npz", "zt"])
def test_torch_reads_what_comes_from_other_containers(tmp_path, target):
    middle = tmp_path / f"middle.{target}"
    skip = {"npz": {"bfloat16", *(kind for kind in OURS if kind.startswith("float8"))}}.get(target, set()) | LACKS[target]
    weighbridge("convert", DATA / "dtypes.pt", middle, "--allow", EVERY_LOSS, *(flag for kind in skip for flag in ("--without", kind)))
    out = written(tmp_path, middle)
    for there in loaded(out):
        for tensor in FILES["dtypes.pt"]["tensors"]:
            if tensor["path"][0] not in skip:
                expect_of_torch(there, tensor)


@needs_torch
@pytest.mark.parametrize("file", ["shared.pt", "strides.pt", "parameters.pt"])
def test_views_and_shared_storages_are_kept(tmp_path, file):
    before, out = torch.load(DATA / file, weights_only=True), written(tmp_path, DATA / file)
    for there in loaded(out):
        for one in before:
            for other in before:
                same = before[one].untyped_storage().data_ptr() == before[other].untyped_storage().data_ptr() and before[one].numel() and before[other].numel()
                now = there[one].untyped_storage().data_ptr() == there[other].untyped_storage().data_ptr()
                assert now <= bool(same) or one == other
        # A change of one shows in the other.
        if file == "shared.pt":
            there["embed"].zero_()
            assert all(not there[name].any() for name in ("head", "first_row", "rest", "view")) and there["copy"].any()
        if file == "strides.pt":
            for name in ("transposed", "permuted", "expanded", "overlapping", "windows", "channels_last"):
                assert there[name].stride() == before[name].stride(), name


@needs_torch
def test_a_state_dict_loads_strictly_and_keeps_its_versions(tmp_path):
    from pytorch_write import Net
    before, net = Net(), Net()
    torch.save(before.state_dict(), tmp_path / "in.pt")
    out = written(tmp_path, tmp_path / "in.pt")
    for there in loaded(out):
        assert there._metadata == before.state_dict()._metadata
        with torch.no_grad():
            for parameter in net.parameters():
                parameter.zero_()
        net.load_state_dict(there, strict=True)
        for name, parameter in before.state_dict().items():
            assert torch.equal(parameter, net.state_dict()[name]), name


@needs_torch
def test_attributes_do_not_stand_among_the_tensors(tmp_path):
    if safetensors_numpy is None:
        pytest.skip("safetensors is missing")
    safetensors_numpy.save_file({"w": np.ones(2, np.float32)}, tmp_path / "a.safetensors", {"format": "pt", "items": "x"})
    out = written(tmp_path, tmp_path / "a.safetensors")
    for there in loaded(out):
        assert list(there) == ["w"] and there.attributes == {"format": "pt", "items": "x"}
    weighbridge("convert", out, tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes() or content_digest(out) == content_digest(tmp_path / "b.safetensors")


@needs_torch
@pytest.mark.parametrize("dtype", [kind for kind in OURS if kind not in ("float4_e2m1fn_x2",)])
def test_random_views_both_ways(tmp_path, dtype):
    from pytorch_write import bytes_of, made
    rng = np.random.default_rng(len(dtype))
    tensors = {}
    for i in range(30):
        base = made(dtype, (4, 6, 2), i)
        for j in range(4):
            view = base
            for _ in range(int(rng.integers(0, 4))):
                step = int(rng.integers(0, 4))
                dims = view.dim()
                if step == 0 and dims > 1:
                    view = view.transpose(0, int(rng.integers(dims)))
                elif step == 1 and dims and view.shape[0] > 1:
                    first = int(rng.integers(view.shape[0]))
                    view = view[first:first + int(rng.integers(1, 4))]
                elif step == 2 and dims:
                    view = view[..., int(rng.integers(view.shape[-1]))]
                else:
                    view = view[None].expand(2, *view.shape) if dims < 5 else view
            tensors[f"{i}.{j}"] = view
    torch.save(tensors, tmp_path / "in.pt")
    out = written(tmp_path, tmp_path / "in.pt")
    assert content_digest(tmp_path / "in.pt") == content_digest(out)
    for there in loaded(out):
        assert list(there) == list(tensors)
        for name, view in tensors.items():
            assert there[name].dtype == view.dtype and there[name].shape == view.shape and bytes_of(there[name]) == bytes_of(view), name


@needs_torch
@pytest.mark.filterwarnings("ignore")
def test_the_manifest_is_what_torch_reads(tmp_path):
    """The files are what this script writes, except for what differs by chance: keys of the form before 1.6, ids in TorchScript."""
    from pytorch_write import bytes_of
    for file, described in FILES.items():
        # torch swaps no storages without a class of their own, which its writer on a big-endian machine needs.
        if described.get("script") or file == "big_endian.pt" or file in ("lightning.ckpt", "subclass.pt", "wrapper.pt", "omegaconf.pt", "legacy_untyped.pt"):
            continue  # classes that are not there; torch 2.15 cannot read its own file
        there = torch.load(DATA / file, weights_only=False)
        for tensor in described["tensors"]:
            got = there
            for key in tensor["path"]:
                got = getattr(got, key) if not isinstance(got, (dict, list, tuple)) else got[key]
            if "sha256" in tensor:
                assert sha256(bytes_of(got.int_repr() if got.is_quantized else got)) == tensor["sha256"], (file, tensor)
