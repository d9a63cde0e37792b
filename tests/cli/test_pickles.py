# SPDX-License-Identifier: Apache-2.0
"""What verify and doctor say of pickles: names that nobody knows, pickles in pickles, and the pickles of a folder."""
import base64
import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import struct
import subprocess
import zipfile
import zlib

import pytest

from conftest import COMMAND, safetensors, torch_archive, validated, weighbridge


def glob(module, name, *arguments):
    """A pickle of protocol 4 that calls module.name."""
    def text(value):
        return b"\x8c" + bytes([len(value)]) + value.encode()
    return b"\x80\x04" + text(module) + text(name) + b"\x93(" + b"".join(map(text, arguments)) + b"tR."


EVIL = b"\x80\x02cposix\nsystem\nU\x04true\x85R."


def verified(path, status, *flags):
    return weighbridge("verify", path, *flags, status=status).stdout


# Functions and classes of Python and of packages that write files, run code or import it when a pickle calls or names them.
GADGETS = [("mailcap", "findmatch"), ("dataclasses", "_create_fn"), ("typing", "_eval_type"), ("torch.utils.benchmark", "Timer"),
           ("pathlib", "Path.write_text"), ("numpy", "ndarray.tofile"), ("mailbox", "mbox"), ("builtins", "map"), ("builtins", "filter"),
           ("collections", "namedtuple"), ("enum", "_test_simple_enum"), ("copyreg", "add_extension"), ("types", "MethodType"),
           ("inspect", "getattr_static"), ("annotationlib", "call_evaluate_function"), ("string", "Formatter.get_field"), ("gettext", "c2py"),
           ("statistics", "NormalDist.from_samples"), ("numpy.random._pickle", "getattr"), ("numpy.core.multiarray", "fromfile"),
           ("numpy.dtypes", "sys.modules.XDType"), ("torch.nn.modules.module", "Module.load_state_dict"), ("torch.optim.adam", "os"),
           ("torch.utils.data.dataset", "IterableDataset.__class__"), ("torch.distributed.checkpoint.metadata", "pickle"),
           ("torch", "save"), ("torch._C", "_jit_script_compile"), ("sklearn.utils", "_safe_indexing"), ("sklearn.datasets", "fetch_file"),
           ("transformers.training_args", "json"), ("transformers", "AutoModel.from_pretrained"), ("transformers.utils.generic", "importlib"),
           ("accelerate.state", "PartialState.print"), ("lightning.pytorch.callbacks.model_checkpoint", "os"), ("omegaconf.base", "sys"),
           ("argparse", "FileType"), ("logging", "basicConfig"), ("ast", "literal_eval"), ("joblib.numpy_pickle", "read_zfile")]


@pytest.mark.parametrize("module, name", GADGETS)
def test_what_nobody_knows_is_not_ok(tmp_path, module, name):
    """Once, a pickle that names anything that is not on the list of dangerous names ended with "ok" and status 0."""
    path = tmp_path / "gadget.pkl"
    for data in (glob(module, name, "x"), b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"0N."):
        path.write_bytes(data)
        done = subprocess.run([COMMAND, "verify", path], capture_output=True, text=True, timeout=60)
        assert done.returncode in (1, 3) and ": ok (" not in done.stdout
        if done.returncode == 3:
            assert f"{path}: not known to be safe: {module}.{name} (pytorch, " in done.stdout


def test_every_door_says_that_a_pickle_is_not_known_to_be_safe(tmp_path):
    path = tmp_path / "one.pkl"
    path.write_bytes(b"\x80\x02cmine\nThing\n0cmine\nOther\n0N.")
    assert f"{path}: warning: " in verified(path, 3)
    assert f"{path}: not known to be safe: mine.Thing, mine.Other (pytorch, 0 tensors" in verified(path, 3)
    told = validated(verified(path, 3, "--json"), "verify")["files"][0]
    assert told["valid"] is True and told["not_known_safe"] == ["mine.Thing", "mine.Other"]
    assert {each["severity"] for each in told["findings"]} == {"warning"}
    assert f"{path}: not known to be safe: mine.Thing, mine.Other: PyTorch checkpoint file, valid, but" in weighbridge(
        "doctor", path, status=3).stdout
    told = validated(weighbridge("doctor", path, "--json", status=3).stdout, "doctor")["files"][0]
    assert told["condition"] == "unproven" and told["not_known_safe"] == ["mine.Thing", "mine.Other"]
    assert verified(path, 3, "--quiet") == ""


def test_a_thousand_warnings_hide_no_name(tmp_path):
    """Once, a report kept its first thousand findings, whatever came after them."""
    path = tmp_path / "many.pkl"
    twice = b"".join(b"K\x01K\x01U\x011K\x02" for _ in range(1))
    names = b"".join(b"}(" + twice + b"u" for _ in range(1200))
    path.write_bytes(b"\x80\x02(" + names + b"tcmine\nThing\n0.")
    assert "not known to be safe: mine.Thing (" in verified(path, 3)


def packed_in(pack):
    return pickle.dumps({"a": pack(EVIL)}, protocol=4)


@pytest.mark.parametrize("pack", [zlib.compress, gzip.compress, base64.b64encode, lambda data: base64.encodebytes(gzip.compress(zlib.compress(data))),
                                  lambda data: b"x" * 70_000 + data, lambda data: pickle.dumps([b"x" * 70_000, data])])
def test_a_packed_pickle_in_a_pickle_is_looked_into(tmp_path, pack):
    path = tmp_path / "packed.pkl"
    path.write_bytes(packed_in(pack))
    if pack(b"a").startswith(b"xxxx"):
        assert ": ok (" in verified(path, 0)  # no reader finds a pickle there
    else:
        assert "found posix.system" in verified(path, 1)


@pytest.mark.parametrize("name, pack", [("bzip2", bz2.compress), ("xz", lzma.compress),
                                        ("lzma", lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE))])
def test_what_cannot_be_unpacked_is_named(tmp_path, name, pack):
    path = tmp_path / "packed.pkl"
    path.write_bytes(packed_in(pack))
    assert f"not known to be safe: bytes packed by {name} (" in verified(path, 3)


def test_pickles_in_pickles_are_looked_into_or_named(tmp_path):
    path = tmp_path / "deep.pkl"
    for protocol in (0, 2, 4):
        data = EVIL
        for depth in range(1, 14):
            data = pickle.dumps({"a": data}, protocol=protocol)
            path.write_bytes(data)
            status = subprocess.run([COMMAND, "verify", path], capture_output=True, timeout=60).returncode
            assert status == 1 if depth <= 8 else status in (1, 3), (protocol, depth, status)
    assert "a pickle in more than 8 others" in verified(path, 3)


def test_a_compressed_quine_ends(tmp_path):
    """Deflate data that decodes to more deflate data, each a little smaller than a limit would stop."""
    data = EVIL
    for _ in range(40):
        data = zlib.compress(data)
    path = tmp_path / "packed.pkl"
    path.write_bytes(pickle.dumps({"a": data}))
    assert "bytes packed more than 8 times" in verified(path, 3)
    path.write_bytes(pickle.dumps({"a": [zlib.compress(bytes(100 << 20))] * 1, "b": zlib.compress(bytes(200 << 20)), "c": EVIL}))
    assert "found posix.system" in verified(path, 1)


def test_what_is_unpacked_is_bounded(tmp_path):
    """Twenty thousand strings that decode to a megabyte each: once two minutes, because each was unpacked up to what was left."""
    path = tmp_path / "bombs.pkl"
    path.write_bytes(pickle.dumps([zlib.compress(bytes([i % 256, i >> 8]) + bytes(1 << 20), 1) for i in range(1000)]))
    said = verified(path, 3)
    assert "after as many as the memory limit allows" in said and said.count("unread-pickle") == 100


def test_harmless_only_where_no_constructor_runs(tmp_path):
    path = tmp_path / "args.bin"
    made = b"\x80\x02ctransformers.training_args\nTrainingArguments\n)\x81}b."
    path.write_bytes(made)
    assert ": ok (" in verified(path, 0)
    path.write_bytes(made.replace(b")\x81}b", b")R"))
    assert "not known to be safe: transformers.training_args.TrainingArguments (" in verified(path, 3)


def test_the_bytes_of_a_tensor_are_looked_into(tmp_path):
    """torch.storage._load_from_bytes is harmless with bytes that are there; with others, nobody knows what it reads."""
    path = tmp_path / "tensor.pkl"
    call = b"\x80\x02ctorch.storage\n_load_from_bytes\n%s\x85R."
    inner = b"\x80\x02}."
    short = b"B" + struct.pack("<I", len(inner)) + inner
    path.write_bytes(call % short)
    assert ": ok (" in verified(path, 0)
    path.write_bytes(call % (b"B" + struct.pack("<I", len(EVIL)) + EVIL))
    assert "found posix.system" in verified(path, 1)
    path.write_bytes(call % (b"c__builtin__\nbytearray\n" + short + b"\x85R"))
    assert "not known to be safe: torch.storage._load_from_bytes (" in verified(path, 3)


@pytest.fixture
def folder(tmp_path):
    out = tmp_path / "model"
    (out / "a/b").mkdir(parents=True)
    (out / "config.json").write_text(json.dumps({"model_type": "llama"}))
    (out / "model.safetensors").write_bytes(safetensors({"w": ("F32", [2], struct.pack("<2f", 1, 2))}))
    (out / "README.md").write_text("# A model\n")
    (out / "vocab.txt").write_text("cat\nsat\nc\n")
    return out


def archive(path, first="archive/data.pkl", data=EVIL):
    with zipfile.ZipFile(path, "w") as out:
        if first != "archive/data.pkl":
            out.writestr(first, b"x")
        out.writestr("archive/data.pkl", data)
        out.writestr("archive/version", "3\n")


def test_a_folder_without_pickles_is_ok(folder):
    os.symlink(".", folder / "a/loop")
    assert ": ok (hf, 1 tensor" in verified(folder, 0)
    assert ": sound: " in weighbridge("doctor", folder).stdout


@pytest.mark.parametrize("name, write", [
    ("pytorch_model.bin", archive),
    ("a/b/weights.pt", archive),
    ("a/no-extension", lambda path: path.write_bytes(EVIL)),
    ("a/README.txt", lambda path: path.write_bytes(b"cos\nsystem\n(S'true'\ntR.")),
    ("a/optimizer.pt", lambda path: archive(path, data=EVIL + b"x")),
    ("x.npz.bin", lambda path: archive(path, "archive/a.npy")),
    ("a/x.pkl.gz", lambda path: path.write_bytes(gzip.compress(EVIL))),
    ("x.joblib", lambda path: path.write_bytes(zlib.compress(EVIL))),
    (".hidden/x", lambda path: path.write_bytes(EVIL)),
])
def test_every_pickle_of_a_folder_is_judged_as_if_it_were_named_alone(folder, name, write):
    """Once, a pickle beside valid safetensors was a warning at most, and the folder ok."""
    (folder / name).parent.mkdir(exist_ok=True)
    write(folder / name)
    said = verified(folder, 1)
    assert f"{folder / name}: error: " in said and "dangerous-global" in said and ": ok (" not in said
    told = weighbridge("doctor", folder, status=1).stdout
    assert told.startswith(f"{folder}: suspicious: Hugging Face folder that can run code when Python loads it\n")


def test_an_unknown_name_in_a_folder_is_not_ok(folder):
    (folder / "a/x.dat").write_bytes(glob("mailcap", "findmatch", "x"))
    assert f"{folder}: not known to be safe: mailcap.findmatch (hf, 1 tensor" in verified(folder, 3)
    (folder / "a/x.dat").unlink()
    (folder / "a/x.joblib").write_bytes(lzma.compress(EVIL))
    assert f"{folder}: not known to be safe: a file packed by xz (hf, 1 tensor" in verified(folder, 3)


def test_a_malformed_pickle_of_a_folder_is_an_error(folder):
    (folder / "a/x.bin").write_bytes(b"\x80\x04\x95" + struct.pack("<Q", 3) + b"Vabc\n.")
    assert f"{folder / 'a/x.bin'}: error: a pickle is malformed: a frame ends inside an opcode" in verified(folder, 1)


def test_links_are_not_followed(folder, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "evil.bin").write_bytes(EVIL)
    os.symlink(outside, folder / "a/link")
    os.symlink(outside / "evil.bin", folder / "a/evil.bin")
    said = verified(folder, 3)
    assert 'not known to be safe: "a/link/", "a/evil.bin"' in said and "found os.system" not in said
    for name in ("link", "evil.bin"):
        (folder / "a" / name).unlink()
    os.symlink(folder, folder / "a/here")  # what is there is looked into where it is
    assert ": ok (hf, 1 tensor" in verified(folder, 0)


@pytest.mark.parametrize("number", [b"p+1\n0", b"p1_0\n0", b"p 1\n0", b"p01\n0g+1\n0"])
def test_a_memo_number_in_python_spelling_hides_nothing(folder, tmp_path, number):
    """CPython reads it and goes on, where this reader stopped."""
    (folder / "notes.txt").write_bytes(b"N" + number + b"cos\nsystem\n(S'true'\ntR.")
    assert "found os.system" in verified(folder, 1)


def test_a_text_pickle_longer_than_what_is_read_of_a_file_first(folder):
    (folder / "m.txt").write_bytes(b"V" + b"a" * 100_000 + b"\n0cos\nsystem\n(S'true'\ntR.")
    assert "found os.system" in verified(folder, 1)


def test_a_file_of_another_format_in_a_folder_is_also_a_pickle(folder):
    code = b"cos\nsystem\n(S'true'\ntR."
    head = b'{"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}' % (len(code), len(code))
    head += b" " * (84 - len(head)) + b"\n}"
    (folder / "other.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + code)
    assert "file/also-pickle" in verified(folder, 1)


def test_a_pickle_too_large_to_read_is_not_known_to_be_safe(folder):
    (folder / "m.txt").write_bytes(b")" * 17_000_000 + b"cos\nsystem\n.")
    assert "file/unread-pickle" in verified(folder, 3) or "unread-pickle" in verified(folder, 3)


def test_an_unlisted_function_after_a_doubtful_number_is_judged(folder):
    (folder / "m.txt").write_bytes(b"I+1\n0cmine\nmake\n(Vx\ntR.")
    assert "mine.make" in verified(folder, 1)


def test_weights_that_are_a_pickle_of_protocol_0(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    assert "found os.system" in verified(folder, 1)


def test_an_archive_that_begins_with_an_array_is_pytorchs_too(tmp_path):
    """Once, the first member made it an npz, whose other members nobody looked into. PyTorch loads data.pkl."""
    path = tmp_path / "x.pt"
    archive(path, "archive/a.npy")
    assert "archive/data.pkl" in verified(path, 1) and "found posix.system" in verified(path, 1)


def test_inspect_does_not_call_a_dangerous_function_a_class_that_it_does_not_know(tmp_path):
    path = tmp_path / "x.bin"
    archive(path)
    done = weighbridge("inspect", path)
    assert "does not know" not in done.stdout + done.stderr
    assert "is made by a function or class that can run code" in done.stdout + done.stderr


def test_the_advice_for_a_dangerous_pickle_gives_its_tensors(tmp_path):
    """It was to convert the file, which is refused for that very reason."""
    path, numbers = tmp_path / "x.pt", struct.pack("<2f", 1, 2)
    whole = torch_archive({"a": ("FloatStorage", numbers, 4, [2], [1], None)})
    with zipfile.ZipFile(io.BytesIO(whole)) as members, zipfile.ZipFile(path, "w") as out:
        for name in members.namelist():
            data = members.read(name)
            out.writestr(name, data if name != "archive/data.pkl" else data[:-1] + b"X\1\0\0\0e" + EVIL[2:-1] + b"s.")
    assert "found posix.system" in verified(path, 1)
    weighbridge("convert", path, tmp_path / "x.safetensors", status=1)
    advice = " ".join(weighbridge("explain", "pytorch/dangerous-global").stdout.partition("what to do\n")[2].split())
    assert "weighbridge extract FILE --only '*' -o FOLDER writes the tensors" in advice
    weighbridge("extract", path, "--only", "*", "-o", tmp_path / "tensors")
    assert [each.name for each in (tmp_path / "tensors").iterdir()] == ["a.npy"]
    assert (tmp_path / "tensors/a.npy").read_bytes().endswith(numbers)
