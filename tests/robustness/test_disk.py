# SPDX-License-Identifier: Apache-2.0
# Tests a full disk: status 4 and a message, the old target unchanged, no leftovers.
import shutil
import subprocess

import pytest

from jobs import JOBS, bert, embd, files_below, make_job, strays_below
from robustness import COMMAND, done, require_strace, run, write_safetensors

ROOM = 192 << 10
OLD = b"what stood there before\n" * 20

# Mounts a small tmpfs visible only to this process, puts the old files there, runs the command, and copies the resulting files out.
SCRIPT = """
set -eu
disk=$1 size=$2 old=$3 after=$4
shift 4
mount -t tmpfs -o size=$size none "$disk"
cp -r "$old/." "$disk/"
status=0
"$@" || status=$?
cp -r "$disk" "$after/"
exit $status
"""


def namespace():
    """The command prefix that gives a process its own mounts; skips the test if that is not allowed."""
    for words in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        try:
            tried = subprocess.run([*words, "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"], capture_output=True)
        except FileNotFoundError:
            pytest.skip("unshare is not installed")
        if tried.returncode == 0:
            return words
    pytest.skip("this process may not mount a small tmpfs")


def on_small_disk(folder, size, old, arguments, prefix=(), disk=None):
    """Runs the command with the disk mounted at `disk` (default: folder/disk), which has the files of the folder `old`. Returns the
    result of subprocess.run, and the disk's files afterwards, temporaries included."""
    disk, after = disk or folder / "disk", folder / "after"
    disk.mkdir(exist_ok=True)
    after.mkdir()
    done = subprocess.run([*namespace(), "sh", "-c", SCRIPT, "sh", str(disk), str(size), str(old), str(after),
                           *prefix, COMMAND, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    left = after / disk.name
    return done, files_below(left) | dict.fromkeys(strays_below(left), "a temporary")


@pytest.fixture
def model(tmp_path):
    """400 kB that do not compress to less than the disk."""
    state, values = 1, []
    for _ in range(100_000):
        state = (state * 1103515245 + 12345) % (1 << 31)
        values.append(state / (1 << 20))
    return write_safetensors(tmp_path / "model.safetensors", {"w": values})


@pytest.fixture
def old(tmp_path):
    """A folder for the previous files of the disk."""
    folder = tmp_path / "old"
    folder.mkdir()
    return folder


def words_of(name, folder, model, old, disk):
    """Makes the inputs of the job, and returns its command line."""
    small = write_safetensors(folder / "small.safetensors", {"s": [1, 2, 3]})

    def stands(file):
        (old / file).write_bytes(OLD)
        return disk / file, "--force"

    def encoder():
        embd.write(folder / "model.weights", *bert(hidden=64, vocab=600))
        return folder / "model.weights"

    def many():
        values = [float(i) for i in range(100_000)]
        return write_safetensors(folder / "many.safetensors", {f"t{i}": [i] for i in range(16)} | {"w": values})

    if name == "append":
        done("convert", small, old / "grown.zt")
        return ["append", disk / "grown.zt", model]
    if name == "stb-force":
        done("convert", small, old / "out.stb")
    if name == "pack-force":
        done("khlnary", "pack", small, "-o", old / "module")
        (old / "module/small.knu").rename(old / "module/many.knu")
    return {
        "convert": lambda: ["convert", model, disk / "out.zt"],
        "convert-force": lambda: ["convert", model, *stands("out.zt")],
        "convert-zstd": lambda: ["convert", model, *stands("out.zt"), "--encoding", "zstd"],
        "extract": lambda: ["extract", model, "w", "-o", disk / "w.npy"],
        "extract-glob": lambda: ["extract", model, "--glob", "*", "-o", disk],
        "zt0": lambda: ["convert", model, *stands("out.zt"), "--to", "zt0", "--digest", "crc32c"],
        "stb": lambda: ["convert", model, disk / "out.stb"],
        "stb-force": lambda: ["convert", model, disk / "out.stb", "--force"],
        "embd": lambda: ["convert", encoder(), *stands("out.weights")],
        "slm": lambda: ["slm", "fixture", "tinylm16m", "-o", *stands("out.slm")],
        "hf": lambda: ["convert", encoder(), disk / "model", "--to", "hf"],
        "pack": lambda: ["khlnary", "pack", many(), "-o", disk / "module"],
        "pack-force": lambda: ["khlnary", "pack", many(), "-o", disk / "module", "--force"],
    }[name]()


CASES = ["convert", "convert-force", "convert-zstd", "append", "extract", "extract-glob", "zt0", "stb", "stb-force", "embd", "slm",
         "hf", "pack", "pack-force"]


@pytest.mark.parametrize("reserves", [True, False], ids=["reserving", "writing"])
@pytest.mark.parametrize("name", CASES)
def test_a_full_disk_is_status_4_and_loses_nothing(tmp_path, model, old, name, reserves):
    namespace()
    prefix = []
    if not reserves:  # a filesystem that cannot reserve space runs full while writing
        require_strace()
        prefix = ["strace", "-f", "-qq", "-o", "/dev/null", "--inject=fallocate:error=EOPNOTSUPP"]
    words = words_of(name, tmp_path, model, old, tmp_path / "disk")
    done, left = on_small_disk(tmp_path, ROOM, old, words, prefix)
    assert done.returncode == 4, (done.returncode, done.stderr)
    assert "no space left" in done.stderr.lower(), done.stderr
    assert left == files_below(old)


PAGE = 4096


@pytest.mark.parametrize("name", JOBS)
def test_a_disk_without_a_page_to_spare(tmp_path, name):
    """Every way of making files, on a disk without space for even the first byte."""
    namespace()
    job = make_job(tmp_path, name)
    old = tmp_path / "crowded"
    shutil.copytree(job.before, old)
    (old / "filler").write_bytes(bytes(PAGE))
    pages = sum(-(-len(data) // PAGE) for data in files_below(old).values() if data is not None)
    done, left = on_small_disk(tmp_path, pages * PAGE, old, job.arguments, disk=job.there)
    assert done.returncode == 4, (done.returncode, done.stderr)
    assert "no space left" in done.stderr.lower() and len(done.stderr.splitlines()) == 1, done.stderr
    assert left.pop("filler")
    assert job.untouched(left) or (job.half is not None and job.main not in left), sorted(left)


def test_with_room_the_same_disk_takes_the_file(tmp_path, model, old):
    done, left = on_small_disk(tmp_path, 16 << 20, old, ["convert", model, tmp_path / "disk" / "out.zt"])
    assert done.returncode == 0, done.stderr
    assert list(left) == ["out.zt"] and len(left["out.zt"]) > ROOM


def test_the_old_file_needs_room_beside_the_new_one(tmp_path, model, old):
    """Replacing never overwrites in place: with space for only one of the two, the old file stays."""
    (old / "out.zt").write_bytes(bytes(300_000))
    done, left = on_small_disk(tmp_path, 600 << 10, old, ["convert", model, tmp_path / "disk" / "out.zt", "--force"])
    assert done.returncode == 4 and left == {"out.zt": bytes(300_000)}, done.stderr
