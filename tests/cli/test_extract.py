# SPDX-License-Identifier: Apache-2.0
import contextlib
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import time

import pytest

from conftest import COMMAND, floats, safetensors, torch_archive, validated, weighbridge, ztensor
from terminal import Terminal

ml_dtypes = pytest.importorskip("ml_dtypes")
numpy = pytest.importorskip("numpy")


def test_raw_bytes(sample, tmp_path):
    out = tmp_path / "w.bin"
    weighbridge("extract", sample, "layer.weight", "-o", out)
    assert out.read_bytes() == floats(1, -2.5, 0, 4, 5, 6)
    assert weighbridge("extract", sample, "layer.bias", "-o", "-", text=False).stdout == floats(0, 0, 0.5)


def test_npy(sample, tmp_path):
    out = tmp_path / "w.npy"
    weighbridge("extract", sample, "layer.weight", "-o", out)
    array = numpy.load(out)
    assert array.dtype == numpy.float32 and array.tolist() == [[1, -2.5, 0], [4, 5, 6]]
    weighbridge("extract", sample, "steps", "-o", out, "--force")
    assert numpy.load(out).shape == () and numpy.load(out) == -7
    weighbridge("extract", sample, "steps", "-o", out, "--force", "--raw")
    assert out.read_bytes() == struct.pack("<q", -7)


@pytest.mark.parametrize("dtype,kind", [("U8", "u1"), ("I8", "i1"), ("F16", "f2"), ("F64", "f8"), ("BOOL", "?"), ("U64", "u8")])
def test_npy_types(tmp_path, dtype, kind):
    array = numpy.array([0, 1, 1], dtype=kind)
    path, out = tmp_path / "t.safetensors", tmp_path / "t.npy"
    path.write_bytes(safetensors({"t": (dtype, [3], array.tobytes())}))
    weighbridge("extract", path, "t", "-o", out)
    assert numpy.load(out).dtype == array.dtype and numpy.array_equal(numpy.load(out), array)


def test_npy_of_types_that_numpy_lacks(sample, tmp_path):
    out = tmp_path / "e.npy"
    said = weighbridge("extract", sample, "embedding", "-o", out).stdout
    assert "view(ml_dtypes.bfloat16)" in said
    array = numpy.load(out).view(ml_dtypes.bfloat16)
    assert array.tolist() == [[1, 2], [-1.5, 0]]
    mine = out.read_bytes()
    numpy.save(out, array)
    assert mine == out.read_bytes()


def test_dense_and_cast(sample, tmp_path):
    out = tmp_path / "e.npy"
    weighbridge("extract", sample, "embedding", "--dense", "f32", "-o", out)
    assert numpy.load(out).tolist() == [[1, 2], [-1.5, 0]]
    value = validated(weighbridge("extract", sample, "embedding", "-o", out, "--dense", "--force", "--json").stdout, "extract")
    assert value["tensors"][0]["part"] is None and value["tensors"][0]["dtype"] == "bf16"
    assert "after TENSOR" in weighbridge("extract", sample, "--dense", "embedding", "-o", out, status=2).stderr


def test_parts(sample, tmp_path):
    weighbridge("extract", sample, "steps", "--part", "data", "-o", tmp_path / "d")
    assert "'data'" in weighbridge("extract", sample, "steps", "--part", "scales", "-o", tmp_path / "s", status=2).stderr


def test_a_sparse_tensor_gives_its_values_unless_asked_for_more(sparse, tmp_path):
    assert weighbridge("extract", sparse, "s", "-o", "-", text=False).stdout == floats(5, 7)
    assert weighbridge("extract", sparse, "s", "--part", "coords", "-o", "-", text=False).stdout == struct.pack("<4Q", 0, 1, 1, 2)
    weighbridge("extract", sparse, "s", "--dense", "-o", tmp_path / "s.npy")
    assert numpy.load(tmp_path / "s.npy").tolist() == [[0, 5, 0], [0, 0, 7]]


def test_an_unknown_tensor_names_the_nearest(sample, tmp_path):
    done = weighbridge("extract", sample, "layer.wieght", "-o", tmp_path / "w", status=2)
    assert "layer.weight" in done.stderr
    value = validated(weighbridge("extract", sample, "x", "-o", tmp_path / "w", "--json", status=2).stdout, "extract")
    assert value["findings"][0]["kind"] == "misuse"


def test_an_existing_output_needs_force(sample, tmp_path):
    out = tmp_path / "w.bin"
    out.write_bytes(b"old")
    weighbridge("extract", sample, "steps", "-o", out, status=2)
    assert out.read_bytes() == b"old"
    weighbridge("extract", sample, "steps", "-o", sample, "--force", status=2)


def test_glob_makes_harmless_names(tmp_path):
    path, folder = tmp_path / "t.safetensors", tmp_path / "out"
    names = ["../../evil", "a/b", "a_b", "..", "nul", "A_B", "x\n\u202ey", "-rf"]
    path.write_bytes(safetensors({name: ("F32", [1], floats(i)) for i, name in enumerate(names)}))
    value = validated(weighbridge("extract", path, "--glob", "*", "-o", folder, "--json").stdout, "extract")
    assert len(os.listdir(folder)) == len(names) and sorted(os.listdir(tmp_path)) == ["out", "t.safetensors"]
    for entry in value["tensors"]:
        file = entry["output"]
        assert os.path.dirname(file) == str(folder) and os.path.basename(file)[0] not in ".-"
        assert numpy.load(file)[0] == names.index(entry["name"])
    assert len({name.lower() for name in os.listdir(folder)}) == len(names)


def test_glob_wants_a_folder(sample, tmp_path):
    weighbridge("extract", sample, "--glob", "*", "-o", "-", status=2)
    weighbridge("extract", sample, "--glob", "nothing*", "-o", tmp_path / "out", status=2)
    assert not (tmp_path / "out").exists()
    weighbridge("extract", sample, "--glob", "layer.*", "-o", tmp_path / "out", "--raw")
    assert sorted(os.listdir(tmp_path / "out")) == ["layer.bias.bin", "layer.weight.bin"]
    weighbridge("extract", sample, "--glob", "layer.*", "-o", tmp_path / "out", "--raw", status=2)


def test_an_output_is_demanded(sample):
    assert "-o" in weighbridge("extract", sample, "steps", status=2).stderr
    assert "TENSOR" in weighbridge("extract", sample, "-o", "-", status=2).stderr


# ---- the folder of --glob ----

def large(path, count=2, each=64 << 20, dtype="U8", per_byte=1):
    """Tensors of zeros, which take no space on a disk that supports sparse files."""
    header = {f"t{i}": {"dtype": dtype, "shape": [each * per_byte], "data_offsets": [i * each, (i + 1) * each]} for i in range(count)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    os.truncate(path, 8 + len(text) + count * each)
    return path


def temporaries(folder):
    return [name for name in os.listdir(folder) if ".weighbridge-" in name]


def stop_in_the_middle(process, where):
    end = time.monotonic() + 60
    while not any(os.listdir(where / name) for name in temporaries(where)):
        assert process.poll() is None and time.monotonic() < end
    process.send_signal(signal.SIGSTOP)


@contextlib.contextmanager
def in_the_middle(where, *arguments):
    """Runs the command and pauses it when it writes its first file; the body runs before it goes on."""
    with subprocess.Popen([COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, text=True) as process:
        stop_in_the_middle(process, where)
        yield process
        process.send_signal(signal.SIGCONT)
        process.said = process.stderr.read()
        process.wait(60)


def test_glob_replaces_no_file_that_appeared_meanwhile(tmp_path):
    path, out = large(tmp_path / "t.safetensors"), tmp_path / "out"
    out.mkdir()
    with in_the_middle(out, "extract", path, "--glob", "t*", "-q", "-o", out) as run:
        assert os.listdir(out) == temporaries(out)
        (out / "t1.npy").write_text("mine")
    assert run.returncode == 2 and "t1.npy: the file exists; --overwrite replaces it" in run.said
    assert os.listdir(out) == ["t1.npy"] and (out / "t1.npy").read_text() == "mine"
    with in_the_middle(out, "extract", path, "--glob", "t*", "-q", "-o", out, "--force") as run:
        (out / "t0.npy").write_text("mine")
    assert run.returncode == 0 and numpy.load(out / "t0.npy").shape == numpy.load(out / "t1.npy").shape == (64 << 20,)


def test_glob_replaces_no_folder_that_appeared_meanwhile(tmp_path):
    path, out = large(tmp_path / "t.safetensors"), tmp_path / "out"
    for name in ("", "mine"):
        with in_the_middle(tmp_path, "extract", path, "--glob", "t*", "-q", "-o", out) as run:
            out.mkdir()
            if name:
                (out / name).touch()
        assert run.returncode == 2 and "appeared while this run was writing" in run.said
        assert os.listdir(out) == [name] * bool(name) and not temporaries(tmp_path)
        shutil.rmtree(out)


def test_of_two_globs_into_one_folder_one_gives_way(tmp_path):
    path, out = large(tmp_path / "t.safetensors"), tmp_path / "out"
    out.mkdir()
    with in_the_middle(out, "extract", path, "--glob", "t*", "-q", "-o", out) as run:
        weighbridge("extract", path, "--glob", "t*", "-q", "-o", out)
    assert run.returncode == 2 and sorted(os.listdir(out)) == ["t0.npy", "t1.npy"]


@pytest.mark.parametrize("window,held", [("?mkdir,?mkdirat:delay_exit=500ms", 0), ("flock:delay_enter=500ms", 0),
                                         ("flock:delay_enter=500ms", 0.7)])
def test_a_temporary_folder_taken_for_stale_before_its_lock_is_made_anew(sample, tmp_path, window, held):
    if shutil.which("strace") is None or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], stderr=subprocess.PIPE).returncode:
        pytest.skip("strace is not installed, or may not trace here")
    out = tmp_path / "out"
    out.mkdir()
    process = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", f"--inject={window}:when=1", COMMAND, "extract",
                                sample, "--glob", "*", "-o", out], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not (taken := temporaries(out)):
        assert process.poll() is None and time.monotonic() < end
    folder = os.open(out / taken[0], os.O_RDONLY | os.O_DIRECTORY)  # from here on as another run does
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    time.sleep(held)  # longer than strace holds the call back, or not at all
    os.rmdir(out / taken[0])
    os.close(folder)
    assert process.communicate(timeout=60)[1] == "" and process.returncode == 0
    assert sorted(os.listdir(out)) == ["embedding.npy", "layer.bias.npy", "layer.weight.npy", "steps.npy"]


@pytest.mark.parametrize("ending", ["/.", "/", "/./.", "//"])
def test_a_new_folder_may_be_spelled_with_a_dot(sample, tmp_path, ending):
    weighbridge("extract", sample, "--glob", "*", "-o", f"{tmp_path}/new{ending}")
    assert len(os.listdir(tmp_path / "new")) == 4


@pytest.mark.parametrize("spelling", ["new/..", "new/../x", "new/a/../../x"])
def test_a_folder_through_one_that_is_not_there_is_refused(sample, tmp_path, spelling):
    assert "does not exist" in weighbridge("extract", sample, "--glob", "*", "-o", tmp_path / spelling, status=2).stderr
    weighbridge("extract", sample, "--glob", "*", "-o", "", status=2)
    assert os.listdir(tmp_path) == ["sample.safetensors"]


@pytest.mark.parametrize("spelling", ["file", "file/", "file/a/b", "link", "link/a/b", "tofile", "tofile/a"])
def test_what_is_no_folder_is_in_the_way(sample, tmp_path, spelling):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "tofile").symlink_to("file")
    before = sorted(os.listdir(tmp_path))
    said = weighbridge("extract", sample, "--glob", "*", "-o", f"{tmp_path}/{spelling}", status=2).stderr
    assert ("a broken symbolic link" if spelling.startswith("link") else "not a folder") in said and "made" not in said
    assert sorted(os.listdir(tmp_path)) == before


@pytest.fixture
def unprivileged(tmp_path):
    """Runs the command as an unprivileged user, in a folder of that user."""
    folder = tempfile.mkdtemp()
    other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    command = shutil.copy(COMMAND, folder)
    os.chmod(folder, 0o777)
    yield lambda *arguments, umask=0o22: subprocess.run(
        [command, *arguments], cwd=folder, stderr=subprocess.PIPE, text=True, umask=umask, timeout=60, **other), folder
    shutil.rmtree(folder)


def test_a_folder_that_cannot_be_written_into_is_said_to_be_that(sample, unprivileged):
    run, folder = unprivileged
    shutil.copy(sample, folder)
    os.mkdir(f"{folder}/closed", 0o555)
    done = run("extract", "sample.safetensors", "--glob", "*", "-o", "closed")
    assert done.returncode == 4 and "closed: the folder cannot be written into: Permission denied" in done.stderr


@pytest.mark.parametrize("umask", [0o777, 0o477, 0o277, 0o377, 0o677])
def test_a_umask_that_keeps_its_own_user_out_leaves_nothing(sample, unprivileged, umask):
    run, folder = unprivileged
    shutil.copy(sample, folder)
    before = sorted(os.listdir(folder))
    for out in ("out", "a/b/out"):
        assert run("extract", "sample.safetensors", "--glob", "*", "-o", out, umask=umask).returncode == 4
        assert sorted(os.listdir(folder)) == before


def test_names_that_differ_in_case_beyond_ascii_are_numbered(tmp_path):
    path, out = tmp_path / "t.safetensors", tmp_path / "out"
    names = ["\u00c9", "\u00e9", "x\u0416", "X\u0436", "\u1e9e", "\u00df", "\u732b", "\u72ac", "\u5c64.a"]
    path.write_bytes(safetensors({name: ("F32", [1], floats(i)) for i, name in enumerate(names)}))
    value = json.loads(weighbridge("extract", path, "--glob", "*", "-o", out, "--json").stdout)
    given = [os.path.basename(entry["output"]) for entry in value["tensors"]]
    assert len({name.casefold() for name in given}) == len({name.upper() for name in given}) == len(names)
    assert given[1].endswith("-2.npy") and given[-3:] == ["\u732b.npy", "\u72ac.npy", "\u5c64.a.npy"]


def test_glob_refuses_a_symbolic_link_in_its_folder(sample, tmp_path):
    out, target = tmp_path / "out", tmp_path / "target"
    out.mkdir()
    target.write_text("old")
    for to in ("../target", "../nothing"):
        (out / "steps.npy").symlink_to(to)
        said = weighbridge("extract", sample, "--glob", "steps", "-o", out, "--force", status=2).stderr
        assert "steps.npy: cannot be written: it is a symbolic link" in said
        assert os.listdir(out) == ["steps.npy"] and os.readlink(out / "steps.npy") == to and target.read_text() == "old"
        (out / "steps.npy").unlink()


def test_glob_keeps_the_permissions_of_what_it_replaces(sample, tmp_path):
    (tmp_path / "steps.npy").touch()
    (tmp_path / "steps.npy").chmod(0o640)
    weighbridge("extract", sample, "--glob", "steps", "-o", tmp_path, "--force")
    assert stat.S_IMODE((tmp_path / "steps.npy").stat().st_mode) == 0o640 and numpy.load(tmp_path / "steps.npy") == -7


@pytest.mark.parametrize("exists", [True, False])
def test_glob_names_the_file_that_could_not_be_written(tmp_path, exists):
    path, out = tmp_path / "t.safetensors", tmp_path / "out"
    path.write_bytes(safetensors({"a": ("F32", [1], floats(1)), "b": ("F32", [1000], bytes(4000))}))
    if exists:
        out.mkdir()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
    done = weighbridge("extract", path, "--glob", "*", "-o", out, "--raw", status=4, preexec_fn=limit)
    assert f" {out}/b.bin: " in done.stderr and ".tmp" not in done.stderr, done.stderr
    assert not out.exists() or os.listdir(out) == []
    written = json.loads(weighbridge("extract", path, "--glob", "*", "-o", out, "--raw", "--json").stdout)
    assert [entry["output"] for entry in written["tensors"]] == [f"{out}/a.bin", f"{out}/b.bin"]


def test_the_bar_counts_elements_smaller_than_a_byte(tmp_path):
    path, out = large(tmp_path / "t.safetensors", count=4, dtype="F4", per_byte=2), tmp_path / "out"
    terminal = Terminal("extract", path, "--glob", "*", "--raw", "-o", out)
    terminal.linger()
    assert terminal.close() == 0
    assert set(re.findall(r" of ([0-9.]+ [KMG]iB)", terminal.text)) == {"256 MiB"}, terminal.text


def test_bare_bytes_get_no_ending_of_another_kind(sample, tmp_path):
    """`-o x.csv` wrote bytes of floats under that name."""
    for name in ("x.csv", "x.TXT", "x.npz"):
        assert "--raw" in weighbridge("extract", sample, "steps", "-o", tmp_path / name, status=2).stderr
        assert not (tmp_path / name).exists()
    for name in ("x", "x.bin", "x.dat", "steps.0"):
        weighbridge("extract", sample, "steps", "-o", tmp_path / name)
    weighbridge("extract", sample, "steps", "-o", tmp_path / "x.csv", "--raw")
    assert (tmp_path / "x.csv").stat().st_size == 8


def test_what_is_left_out_is_listed_in_json_too(tmp_path):
    """--json named the tensors that were written, and a line on standard error what was not."""
    path = tmp_path / "in.npz"
    numpy.savez(path, words=numpy.array([{}], object), w=numpy.zeros(2, "f4"))
    done = weighbridge("extract", path, "--only", "*", "-o", tmp_path / "out", "--json")
    assert [(each["name"], each["type"]) for each in validated(done.stdout, "extract")["left_out"]] == [("words", "|O")]
    assert "left out" in done.stderr and os.listdir(tmp_path / "out") == ["w.npy"]


def test_an_unsupported_tensor_of_several_parts_is_not_written_by_its_first_part_alone(tmp_path):
    path, out = tmp_path / "in.zt", tmp_path / "out.bin"
    path.write_bytes(ztensor({"odd": ("fractal", [2], {"coarse": ("u8", b"ab"), "fine": ("u8", b"cde")}),
                              "one": ("fractal", [2], {"data": ("u8", b"xy")})}))
    refused = weighbridge("extract", path, "odd", "-o", out, status=2).stderr
    assert "cannot interpret tensor 'odd'" in refused and "name one of 'coarse', 'fine'" in refused and "--part" in refused
    assert "name one of" in weighbridge("extract", path, "--glob", "*", "-o", tmp_path / "folder", status=2).stderr
    assert not out.exists() and not (tmp_path / "folder").exists()
    weighbridge("extract", path, "odd", "--part", "fine", "-o", out)
    assert out.read_bytes() == b"cde"
    weighbridge("extract", path, "one", "-o", out, "--force")
    assert out.read_bytes() == b"xy"


def test_an_element_that_repeats_without_end_is_not_written_until_the_disk_is_full(tmp_path):
    """1.5 KiB of a .pt gave 256 GiB."""
    path = tmp_path / "in.pt"
    many = 1 << 36
    path.write_bytes(torch_archive({"w": ("FloatStorage", floats(1), 4, [many], [0], None), "few": ("FloatStorage", floats(1, 2), 4, [2, 2], [0, 1], None)}))
    outputs = [(["w", "-o", tmp_path / "w.npy"], 4), (["w", "-o", "-"], 4), (["w", "--dense", "f16", "-o", tmp_path / "w.bin"], 2),
               (["--glob", "*", "-o", tmp_path / "folder"], 4)]
    for arguments, width in outputs:
        said = weighbridge("extract", path, *arguments, status=1)
        assert said.stdout == "" and "--limit output=" in said.stderr and "limit/output" in said.stderr, said.stderr
        assert [each.name for each in tmp_path.iterdir()] == ["in.pt"]
    for name in ("w", "few"):  # a limit that is too low for one
        weighbridge("extract", path, name, "-o", tmp_path / "x.bin", "--limit", "output=15", status=1)
    assert weighbridge("extract", path, "few", "-o", "-", "--limit", "output=16", text=False).stdout == floats(1, 2, 1, 2)
    weighbridge("inspect", path, "--stats", status=1)


def test_tensors_that_share_an_element_are_not_many_times_a_limit(tmp_path):
    """Each of them is within the limit, and the folder of all of them is not."""
    path = tmp_path / "in.pt"
    path.write_bytes(torch_archive({str(i): ("ByteStorage", b"x", 1, [200 << 20], [0], None) for i in range(3)}))
    said = weighbridge("extract", path, "--glob", "*", "-o", tmp_path / "folder", status=1).stderr
    assert "limit/output" in said and f"--limit output={600 << 20}" in said and not (tmp_path / "folder").exists()


@pytest.mark.parametrize("metadata, right", [({"conj": True}, (1, -2)), ({"neg": True}, (-1, -2)), ({"conj": False}, (1, -2)), ({"conj": True, "neg": True}, (-1, 2))])
def test_a_conjugated_or_negated_view_is_not_written_as_the_numbers_that_it_views(tmp_path, metadata, right):
    """PyTorch sets the bit if the key is there, whatever its value."""
    path, out = tmp_path / "in.pt", tmp_path / "out"
    path.write_bytes(torch_archive({"z": ("ComplexFloatStorage", floats(1, 2), 8, [1], [1], metadata)}))
    plain = tmp_path / "plain.pt"
    plain.write_bytes(torch_archive({"z": ("ComplexFloatStorage", floats(1, 2), 8, [1], [1], None)}))
    for arguments in ([], ["--dense"], ["--part", "data"]):
        assert weighbridge("extract", path, "z", *arguments, "-o", "-", text=False).stdout == floats(*right)
    weighbridge("diff", path, plain, status=1)
    weighbridge("diff", path, path)
    weighbridge("convert", path, tmp_path / "o.safetensors")
    assert weighbridge("extract", tmp_path / "o.safetensors", "z", "-o", "-", text=False).stdout == floats(*right)
    many = tmp_path / "many.pt"
    many.write_bytes(torch_archive({"z": ("ComplexFloatStorage", floats(1, 2), 8, [1 << 36], [0], metadata)}))
    weighbridge("extract", many, "z", "-o", out, status=1)
    assert not out.exists()
    assert weighbridge("extract", plain, "z", "-o", "-", text=False).stdout == floats(1, 2)
