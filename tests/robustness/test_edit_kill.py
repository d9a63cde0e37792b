# SPDX-License-Identifier: Apache-2.0
# Edits and patches in place, killed at each system call and with each call failing: the file is the old one or the new one, the next
# run settles what was left, and an edit never touches the tensors. Also time and reading on a large file, and who else may have it
# open.
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import time

import pytest

from robustness import COMMAND, done, injecting, require_strace, run, write_safetensors
from test_kill import ERRORS, HARMLESS

LEFT = re.compile(r"\..*\.weighbridge-(edit\.journal|[0-9a-f]{16}\.tmp)")


def make(folder, kind):
    """A model of this format with room in its header."""
    source = folder / "source.safetensors"
    write_safetensors(source, {"a.weight": [0.5 * i for i in range(700)], "a.bias": [1, 2, 3]})
    path = folder / f"model.{kind}"
    done("convert", source, path, "--set", "author=somebody who is long enough to become shorter", "--set", "title=a title",
         *(() if kind == "zt" else ("--reserve", "512")))
    return path


# What each edit changes. A zTensor's manifest is the end of the file, which grows or shrinks.
EDITS = {"safetensors": ("safetensors", ["--set", "author=me", "--rename", "a.bias=bias"]),
         "gguf": ("gguf", ["--set", "author=me", "--set", "more:u32=5"]),
         "zt grows": ("zt", ["--set", f"more={'x' * 300}"]),
         "zt shrinks": ("zt", ["--set", "author=me"]),
         "gguf without a tensor": ("gguf", ["--without", "a.bias"]),
         "zt without a tensor": ("zt", ["--without", "a.bias"])}
# A manifest that shrinks takes two calls, so a kill can leave neither file. Readers then name the journal.
TWO_CALLS = {"zt shrinks", "zt without a tensor"}


class Edit:
    def __init__(self, folder, name):
        kind, words = EDITS[name]
        self.there = folder / "there"
        self.there.mkdir()
        self.path = make(folder, kind)
        self.old = self.path.read_bytes()
        self.file = self.there / self.path.name
        self.words = ["edit", self.file, *words, "--in-place", "--threads", "1"]
        self.reset()
        done(*self.words)
        self.new = self.file.read_bytes()
        assert self.new != self.old and self.left() == []
        self.folder = folder

    def reset(self):
        shutil.rmtree(self.there)
        self.there.mkdir()
        self.file.write_bytes(self.old)

    def left(self):
        return sorted(name for name in os.listdir(self.there) if LEFT.fullmatch(name))

    def calls(self):
        self.reset()
        trace = self.folder / "trace"
        finished = run(*self.words, prefix=["strace", "-qq", "-o", trace])
        assert finished.returncode == 0, finished.stderr
        seen, calls = {}, []
        for line in trace.read_text().splitlines():
            name = line.split("(")[0]
            seen[name] = seen.get(name, 0) + 1
            calls.append((name, seen[name], line))
        return calls

    def run_with(self, injection):
        self.reset()
        return run(*self.words, prefix=injecting(injection))

    def settle(self, where):
        """The next run of any edit settles first; returns whether the file is then the new one."""
        finished = run("edit", self.file, "--recover")
        assert finished.returncode == 0, f"{where}: {finished.stderr}"
        assert self.left() == [], where
        now = self.file.read_bytes()
        assert now in (self.old, self.new), f"{where}: neither old nor new after the next run"
        done("verify", self.file)
        return now == self.new


@pytest.mark.parametrize("name", EDITS)
def test_killed_at_each_system_call(tmp_path, name):
    require_strace()
    edit = Edit(tmp_path, name)
    calls = [call for call in edit.calls() if call[0] not in HARMLESS]
    assert {"pwrite64", "fsync", "renameat2"} <= {call[0] for call in calls}
    news, mixed = 0, 0
    for call, count, line in calls:
        where = f"killed at {line}"
        finished = edit.run_with(f"{call}:signal=KILL:when={count}")
        assert finished.returncode in (-9, 137), f"{where}: it lived on: {finished.returncode} {finished.stderr}"
        found = edit.file.read_bytes()
        if found not in (edit.old, edit.new):
            assert name in TWO_CALLS and edit.left(), where
            said = run("verify", edit.file)
            assert "edit of this file was killed" in said.stdout + said.stderr, where
            assert "journal" in run("doctor", edit.file).stdout, where
            mixed += 1
        news += edit.settle(where)
    assert 0 < news < len(calls) and (mixed > 0) == (name in TWO_CALLS)


@pytest.mark.parametrize("name", EDITS)
def test_each_call_that_fails_leaves_the_old_file(tmp_path, name):
    require_strace()
    edit = Edit(tmp_path, name)
    tried = set()
    for call, count, line in edit.calls():
        if call == "write" and not line.startswith("write(1"):
            continue
        for error in ERRORS.get(call, ()):
            where = f"{error} from {line}"
            finished = edit.run_with(f"{call}:error={error}:when={count}")
            found = edit.file.read_bytes()
            if finished.returncode == 0:
                assert found == edit.new and call in ("flock", "getdents64", "openat", "fsync"), where
                continue
            assert finished.returncode == 4, f"{where}: {finished.returncode} {finished.stderr}"
            assert found == edit.old or call == "write", f"{where}: the file is not the old one: {finished.stderr}"
            assert edit.left() == [], where
            tried.add(call)
    assert {"pwrite64", "fsync", "pread64", "renameat2"} <= tried


@pytest.mark.parametrize("name", EDITS)
def test_a_disk_that_lies_is_found_when_it_is_read_back(tmp_path, name):
    require_strace()
    edit = Edit(tmp_path, name)
    lies = 0
    for call, count, line in edit.calls():
        if call != "pwrite64":
            continue
        written = line.rsplit("=", 1)[1].strip()
        finished = edit.run_with(f"pwrite64:retval={written}:when={count}")
        assert finished.returncode == 4, f"{line}: {finished.returncode} {finished.stderr}"
        assert edit.file.read_bytes() == edit.old and edit.left() == [], line
        lies += 1
    assert lies == 2, "the journal and the header"


def test_a_kill_while_it_is_restored_can_be_restored_again(tmp_path):
    require_strace()
    edit = Edit(tmp_path, "zt shrinks")
    at = next(count for call, count, line in edit.calls() if call == "ftruncate")
    words = ["edit", edit.file, "--recover"]

    def leave():
        edit.run_with(f"ftruncate:signal=KILL:when={at}")
        assert edit.file.read_bytes() not in (edit.old, edit.new)

    leave()
    trace = tmp_path / "trace"
    assert run(*words, prefix=["strace", "-qq", "-o", trace]).returncode == 0
    seen = {}
    for line in trace.read_text().splitlines():
        call = line.split("(")[0]
        seen[call] = seen.get(call, 0) + 1
        if call in HARMLESS:
            continue
        leave()
        run(*words, prefix=["strace", "-qq", "-o", "/dev/null", f"--inject={call}:signal=KILL:when={seen[call]}"])
        assert not edit.settle(f"killed at {line} while it was restored")


class Patch(Edit):
    """A patch that is applied in place, to one file or to all of a folder."""

    def __init__(self, folder, kind):
        self.folder, self.there = folder, folder / "there"
        self.there.mkdir()
        base, result = folder / "base.safetensors", folder / "result.safetensors"
        for path, step in ((base, 0), (result, 1)):
            write_safetensors(path, {"a": [0.5 * i + step * (i % 9 == 0) for i in range(700)], "b": [i + step for i in range(300)],
                                     "c": [1, 2, 3]})
        patch, options = folder / "patch.zt", {"zt": ["--digest", "sha256"], "shards": ["--max-shard-size", "2000"]}.get(kind, [])
        done("diff", base, result, "--patch", patch)
        self.path = self.there if kind == "shards" else self.there / f"model.{kind}"
        if kind == "shards":
            self.there.rmdir()
        done("convert", base, f"{self.path}/" if kind == "shards" else self.path, *options,
             *(["--to", "safetensors"] if kind == "shards" else []))
        self.files = {path.name: path.read_bytes() for path in self.there.iterdir()}
        self.words = ["apply", self.path, patch, "--in-place", "--threads", "1"]
        self.old, self.new = (run("hash", path).stdout.split()[0] for path in (base, result))
        self.reset()
        done(*self.words)
        assert run("hash", self.path).stdout.split()[0] == self.new and sorted(os.listdir(self.there)) == sorted(self.files)

    def reset(self):
        shutil.rmtree(self.there)
        self.there.mkdir()
        for name, data in self.files.items():
            (self.there / name).write_bytes(data)

    def digest(self):
        """Of the model; None while it cannot be opened."""
        hashed = run("hash", self.path)
        return hashed.stdout.split()[0] if hashed.returncode == 0 else None

    def settle(self, where):
        """The next apply ends in the result, from wherever it was."""
        finished = run(*self.words)
        already = finished.returncode == 2 and "it is the result already" in finished.stderr
        assert finished.returncode == 0 or already, f"{where}: {finished.stderr}"
        assert self.digest() == self.new and sorted(os.listdir(self.there)) == sorted(self.files), where


@pytest.mark.parametrize("kind", ["safetensors", "gguf", "zt", "shards"])
def test_a_patch_in_place_killed_at_each_system_call(tmp_path, kind):
    require_strace()
    patch = Patch(tmp_path, kind)
    calls = [call for call in patch.calls() if call[0] not in HARMLESS]
    assert {"pwrite64", "fsync", "renameat2"} <= {call[0] for call in calls}
    news, absent = 0, 0
    for call, count, line in calls:
        where = f"killed at {line}"
        finished = patch.run_with(f"{call}:signal=KILL:when={count}")
        assert finished.returncode in (-9, 137), f"{where}: it lived on: {finished.returncode} {finished.stderr}"
        found = patch.digest()
        assert found in (None, patch.old, patch.new), f"{where}: a mix has the name of the model"
        absent += found is None
        # Without a patch, the command that verify prints ends in the one or the other.
        if found is None:
            said = run("verify", patch.path)
            assert "a patch is being applied to" in said.stdout + said.stderr, where
            command = re.search(r"'weighbridge (edit \S+ --recover)' recovers it", said.stdout + said.stderr)
            done(*command[1].split())
            settled = patch.digest()
            assert settled in (patch.old, patch.new) and sorted(os.listdir(patch.there)) == sorted(patch.files), where
            news += settled == patch.new
            patch.run_with(f"{call}:signal=KILL:when={count}")
        patch.settle(where)
    assert absent > 10 and news > 0


@pytest.mark.parametrize("kind", ["safetensors", "zt", "shards"])
def test_each_call_of_a_patch_in_place_that_fails_leaves_the_base(tmp_path, kind):
    require_strace()
    patch = Patch(tmp_path, kind)
    tried = set()
    for call, count, line in patch.calls():
        if call == "write" and not line.startswith("write(1"):
            continue
        for error in ERRORS.get(call, ()):
            where = f"{error} from {line}"
            finished = patch.run_with(f"{call}:error={error}:when={count}")
            if finished.returncode == 0:
                assert patch.digest() == patch.new and call in ("flock", "getdents64", "openat", "fsync"), where
                continue
            found = patch.digest()
            assert found in (patch.old, patch.new) or "journal" in finished.stderr or "publish" in finished.stderr or \
                patch.left(), f"{where}: {finished.stderr}"
            patch.settle(where)
            tried.add(call)
    assert {"pwrite64", "fsync", "pread64", "renameat2"} <= tried


def test_a_kill_while_a_patch_is_undone_can_be_undone_again(tmp_path):
    require_strace()
    patch = Patch(tmp_path, "shards")
    calls = [(call, count) for call, count, line in patch.calls() if call == "pwrite64"]

    def leave():
        patch.run_with(f"pwrite64:signal=KILL:when={calls[-1][1]}")
        assert patch.digest() is None

    leave()
    trace, seen = tmp_path / "trace", {}
    assert run(*patch.words, prefix=["strace", "-qq", "-o", trace]).returncode == 0
    for line in trace.read_text().splitlines():
        call = line.split("(")[0]
        seen[call] = seen.get(call, 0) + 1
        if call in HARMLESS:
            continue
        leave()
        run(*patch.words, prefix=injecting(f"{call}:signal=KILL:when={seen[call]}"))
        assert patch.digest() in (None, patch.old, patch.new), line
        patch.settle(f"killed at {line} while it was undone")


def test_twenty_gibibytes_take_no_time_and_no_tensor_is_read(tmp_path):
    """A sparse file, whose tensors are a hole: reading them would take seconds."""
    require_strace()
    path, size = tmp_path / "large.safetensors", 20 << 30
    header = json.dumps({"__metadata__": {"license": "unknown"},
                         "w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode().ljust(4096)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
        file.seek(8 + len(header) + size // 2)
        file.write(b"payload" * 1000)
    before = os.stat(path)
    best = 9.0
    for i in range(5):
        begin = time.monotonic()
        done("edit", path, "--set", f"license={i}", "--in-place")
        best = min(best, time.monotonic() - begin)
    assert best < 0.05, f"{best:.3f} s"
    after = os.stat(path)
    assert (before.st_size, before.st_blocks, before.st_ino) == (after.st_size, after.st_blocks, after.st_ino)
    with open(path, "rb") as file:
        file.seek(8 + len(header) + size // 2)
        assert hashlib.sha256(file.read(7000)).digest() == hashlib.sha256(b"payload" * 1000).digest()
    trace = tmp_path / "trace"
    assert run("edit", path, "--set", "license=mit", "--in-place",
               prefix=["strace", "-qq", "-y", "-e", "trace=pread64,preadv,read,mmap,pwrite64", "-o", trace]).returncode == 0
    moved = sum(int(line.rsplit("=", 1)[1]) for line in trace.read_text().splitlines()
                if "large.safetensors" in line and line.startswith(("pread", "pwrite")))
    assert moved < 20 * len(header), f"{moved} bytes were read and written"
    done("edit", path, "--undo")
    done("edit", path, "--set", f"long={'x' * 5000}", "--dry-run")
    assert os.stat(path).st_size == before.st_size


def test_a_file_that_others_have_open_is_refused(tmp_path):
    path = make(tmp_path, "safetensors")
    old = path.read_bytes()
    words = ["edit", path, "--set", "author=me", "--in-place"]
    with open(path, "rb"):
        refused = run(*words)
    if refused.returncode == 0:
        pytest.skip("the filesystem of the temporary folder has no leases, so nothing tells who has a file open")
    assert refused.returncode == 4 and "the file is open in another process" in refused.stderr and path.read_bytes() == old
    # Also a program that has closed it and still maps it.
    import mmap
    with open(path, "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    assert run(*words).returncode == 4 and path.read_bytes() == old
    mapped.close()
    done(*words)


def test_two_editors_at_once_both_succeed_or_one_is_refused(tmp_path):
    path = make(tmp_path, "safetensors")
    for _ in range(10):
        both = [subprocess.Popen([COMMAND, "edit", path, "--set", f"author={who}", "--in-place"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for who in ("first", "second")]
        said = [each.communicate(timeout=60)[1] for each in both]
        assert sorted(each.returncode for each in both) in ([0, 0], [0, 4]), said
        done("verify", path)
        done("edit", path, "--recover")
    assert [name for name in os.listdir(tmp_path) if LEFT.fullmatch(name)] == []


def test_readers_wait_while_the_header_changes(tmp_path):
    """A reader that opens the file during an edit sees the old or the new header."""
    path = make(tmp_path, "safetensors")
    stop = time.monotonic() + 1.5
    seen = 0
    while time.monotonic() < stop:
        editor = subprocess.Popen([COMMAND, "edit", path, "--set", f"author={seen % 7}" + "x" * (seen % 50), "--in-place"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        looked = run("inspect", path, "--json")
        assert looked.returncode == 0 and "unfinished" not in looked.stdout, looked.stderr
        editor.wait(60)
        seen += 1
    assert seen > 3


def mounted(tmp_path, make_filesystem):
    """A folder on a filesystem that shares blocks, or a skip that says why there is none."""
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    if shutil.which(make_filesystem[0]) is None or os.geteuid() != 0:
        pytest.skip(f"{make_filesystem[0]} is not installed, or this user may not mount: reflinks are not tested")
    with open(image, "wb") as file:
        file.truncate(512 << 20)
    subprocess.run([*make_filesystem, image], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", image, folder], capture_output=True).returncode != 0:
        pytest.skip("a loop device cannot be mounted here: reflinks are not tested")
    return folder


@pytest.mark.parametrize("how", [["mkfs.xfs", "-q", "-m", "reflink=1"], ["mkfs.btrfs", "-q"]], ids=["xfs", "btrfs"])
def test_a_new_file_shares_the_blocks_of_the_old_one(tmp_path, how):
    folder = mounted(tmp_path, how)
    try:
        path = folder / "model.safetensors"
        write_safetensors(path, {"w": [0.25 * i for i in range(4_000_000)]})
        digest = run("hash", path).stdout.split()[0]
        made = json.loads(run("edit", path, "--set", f"long={'x' * 9000}", "-o", folder / "new.safetensors", "--json").stdout)
        assert made["way"] == "copied" and made["shared"] > 15_900_000
        assert run("hash", folder / "new.safetensors").stdout.split()[0] == digest
    finally:
        subprocess.run(["umount", folder], check=True)
