# SPDX-License-Identifier: Apache-2.0
# A disk without room is an error of the machine: status 4 and a sentence, the old target stands, nothing lies beside it.
import subprocess

import pytest

from robustness import COMMAND, require_strace, write_safetensors

ROOM = 192 << 10
OLD = b"what stood there before\n" * 20

# Mounts a small tmpfs that only this process sees, puts the old target there, runs the command, and copies what is left out.
SCRIPT = """
set -eu
disk=$1 size=$2 old=$3 after=$4
shift 4
mount -t tmpfs -o size=$size none "$disk"
if [ -n "$old" ]; then cp "$old" "$disk/"; fi
status=0
"$@" || status=$?
ls -A "$disk" >"$after/names"
cp -r "$disk" "$after/disk"
exit $status
"""


def namespace():
    """The words that give a process mounts of its own; skips where that is not allowed."""
    for words in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        try:
            tried = subprocess.run([*words, "mount", "-t", "tmpfs", "-o", "size=64k", "none", "/mnt"], capture_output=True)
        except FileNotFoundError:
            pytest.skip("unshare is not installed")
        if tried.returncode == 0:
            return words
    pytest.skip("this process may not mount a small tmpfs")


def on_small_disk(folder, size, old, arguments, prefix=()):
    """Runs the command with the disk mounted at folder/disk; the result of subprocess.run, and the disk's files afterwards."""
    disk, after = folder / "disk", folder / "after"
    disk.mkdir()
    after.mkdir()
    done = subprocess.run([*namespace(), "sh", "-c", SCRIPT, "sh", str(disk), str(size), str(old or ""), str(after),
                           *prefix, COMMAND, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=60)
    names = (after / "names").read_text().split()
    return done, {name: (after / "disk" / name).read_bytes() for name in names}


@pytest.fixture
def model(tmp_path):
    """400 kB that no compression makes smaller than the disk."""
    state, values = 1, []
    for _ in range(100_000):
        state = (state * 1103515245 + 12345) % (1 << 31)
        values.append(state / (1 << 20))
    return write_safetensors(tmp_path / "model.safetensors", {"w": values})


def cases(folder, model, disk):
    """name -> the old file (None: none) and the words."""
    old = folder / "out.zt"
    old.write_bytes(OLD)
    small = write_safetensors(folder / "small.safetensors", {"s": [1, 2, 3]})
    grown = folder / "grown.zt"
    assert subprocess.run([COMMAND, "convert", small, grown, "-q"], check=False).returncode == 0
    return {
        "convert": (None, ["convert", model, disk / "out.zt"]),
        "convert-force": (old, ["convert", model, disk / "out.zt", "--force"]),
        "convert-zstd": (old, ["convert", model, disk / "out.zt", "--force", "--encoding", "zstd"]),
        "append": (grown, ["append", disk / "grown.zt", model]),
        "extract": (None, ["extract", model, "w", "-o", disk / "w.npy"]),
        "extract-glob": (None, ["extract", model, "--glob", "*", "-o", disk / "all"]),
    }


CASES = ["convert", "convert-force", "convert-zstd", "append", "extract", "extract-glob"]


@pytest.mark.parametrize("reserves", [True, False], ids=["reserving", "writing"])
@pytest.mark.parametrize("name", CASES)
def test_a_full_disk_is_status_4_and_loses_nothing(tmp_path, model, name, reserves):
    namespace()
    prefix = []
    if not reserves:  # a filesystem that cannot promise room runs full in the middle of the writing
        require_strace()
        prefix = ["strace", "-f", "-qq", "-o", "/dev/null", "--inject=fallocate:error=EOPNOTSUPP"]
    old, arguments = cases(tmp_path, model, tmp_path / "disk")[name]
    if name == "extract-glob":
        arguments = [*arguments[:-1], tmp_path / "disk"]
    done, left = on_small_disk(tmp_path, ROOM, old, arguments, prefix)
    assert done.returncode == 4, (done.returncode, done.stderr)
    assert "no space left" in done.stderr.lower(), done.stderr
    assert left == ({old.name: old.read_bytes()} if old else {})


def test_with_room_the_same_disk_takes_the_file(tmp_path, model):
    done, left = on_small_disk(tmp_path, 16 << 20, None, ["convert", model, tmp_path / "disk" / "out.zt"])
    assert done.returncode == 0, done.stderr
    assert list(left) == ["out.zt"] and len(left["out.zt"]) > ROOM


def test_the_old_file_needs_room_beside_the_new_one(tmp_path, model):
    """Replacing is never writing over: with room for one of the two, the old one stays."""
    old = tmp_path / "out.zt"
    old.write_bytes(bytes(300_000))
    done, left = on_small_disk(tmp_path, 600 << 10, old, ["convert", model, tmp_path / "disk" / "out.zt", "--force"])
    assert done.returncode == 4 and left == {"out.zt": bytes(300_000)}, done.stderr
