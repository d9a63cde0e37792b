# SPDX-License-Identifier: Apache-2.0
# Tests events in the middle of a job: a user stops it, or an input shrinks, changes, vanishes or cannot be read.
import array
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import termios
import time

import pytest

from jobs import JOBS, bert, embd, files_below, make_job, strays_below
from robustness import COMMAND, MIB, contents, require_strace, run, strays, write_safetensors, write_sparse_file
from sparse_models import write_sparse_checkpoint, write_sparse_embd

OLD = b"what stood there before\n" * 20


@pytest.fixture
def large(tmp_path):
    """Booleans, which verify must read: a job long enough to be stopped in the middle, without space on the disk."""
    return write_sparse_file(tmp_path / "large.safetensors", "BOOL", 1, 3 << 30)


def bytes_read(pid):
    return int(pathlib.Path(f"/proc/{pid}/io").read_text().split()[1])


class Caught:
    """The command, paused once it has read that much, so that the next event certainly happens in the middle."""

    def __init__(self, *arguments, after=64 * MIB):
        self.process = subprocess.Popen([COMMAND, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))  # nohup ignores it
        while bytes_read(self.process.pid) < after:
            assert self.process.poll() is None, f"it ended before it was caught: {self.process.communicate()}"
            time.sleep(0.001)
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self, number=None):
        """Sends a signal and lets it run to its end; its status and its stderr."""
        if number is not None:
            self.process.send_signal(number)
        self.process.send_signal(signal.SIGCONT)
        _, words = self.process.communicate(timeout=300)
        return self.process.returncode, words


@pytest.mark.parametrize("number,status", [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_stopped_convert_leaves_the_old_file_and_nothing_else(tmp_path, large, number, status):
    target = tmp_path / "out.zt"
    target.write_bytes(OLD)
    job = Caught("convert", large, target, "--force")
    assert len(strays(tmp_path)) == 1, "it writes beside the target"
    assert job.go_on(number)[0] == status
    assert target.read_bytes() == OLD and strays(tmp_path) == []


@pytest.mark.parametrize("words", [
    ["convert", "{in}", "{out}.zt"], ["convert", "{in}", "{out}.zt", "--encoding", "zstd"], ["extract", "{in}", "w", "-o", "{out}.bin"],
    ["verify", "{in}"], ["hash", "{in}"], ["hash", "--sha256", "{in}"], ["inspect", "{in}", "--stats"]], ids=" ".join)
def test_ctrl_c_is_status_130_in_every_verb(tmp_path, large, words):
    job = Caught(*(word.replace("{in}", str(large)).replace("{out}", str(tmp_path / "out")) for word in words))
    assert job.go_on(signal.SIGINT)[0] == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.safetensors"]


@pytest.mark.parametrize("words", [
    ["{in}", "{out}/new.zt", "--to", "zt0"], ["{in}", "{out}/new.stb"], ["{in}", "{out}/new.stb", "--force"],
    ["{in}", "{out}/new", "--set", "hf.model_type=other", "--to", "hf"]], ids=" ".join)
def test_a_stopped_convert_to_another_container_leaves_nothing(tmp_path, words):
    """No file of a pair or a folder is left or has appeared."""
    there, forced, folder = tmp_path / "there", "--force" in words, words[-1] == "hf"
    there.mkdir()
    large = write_sparse_file(tmp_path / "large.safetensors", "F32", 4, 1 << 30)
    if folder:
        large = tmp_path / "in"
        large.mkdir()
        (large / "config.json").write_text('{"model_type": "other"}')
        (tmp_path / "large.safetensors").rename(large / "model.safetensors")
    if forced:
        done = run("convert", write_safetensors(tmp_path / "small.safetensors", {"old": [1, 2, 3]}), there / "new.stb")
        assert done.returncode == 0, done.stderr
    before = files_below(there)
    job = Caught("convert", *(word.replace("{in}", str(large)).replace("{out}", str(there)) for word in words))
    assert strays_below(there) != [], "it writes beside the target"
    assert job.go_on(signal.SIGINT)[0] == 130
    assert files_below(there) == before and strays_below(there) == []


def until(happened, process):
    while not happened():
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)


def opened_by(process):
    try:
        return {os.readlink(each) for each in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()}
    except FileNotFoundError:  # closed meanwhile
        return set()


def wait_for_sleep(process):
    """Waits until the process waits for something."""
    until(lambda: pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S", process)


@pytest.mark.parametrize("number,status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("words", [["convert", "-", "{out}"], ["embed", "{model}", "--input", "-", "-o", "{out}"]], ids=" ".join)
def test_waiting_for_standard_input_can_be_stopped(tmp_path, words, number, status):
    """A read of a pipe without data would not end: the signal was deferred, and a second one left a temporary."""
    embd.write(tmp_path / "model.weights", *bert())
    names = {"{model}": tmp_path / "model.weights", "{out}": tmp_path / ("out.zt" if words[0] == "convert" else "out.npy")}
    waiting = subprocess.Popen([COMMAND, *(str(names.get(word, word)) for word in words)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.write(waiting.stdin.fileno(), b"x")
    left = array.array("i", [1])
    until(lambda: fcntl.ioctl(waiting.stdin, termios.FIONREAD, left) == 0 and left[0] == 0, waiting)  # it has taken the byte
    wait_for_sleep(waiting)
    waiting.send_signal(number)
    assert waiting.wait(timeout=20) == status
    waiting.stdin.close()
    assert files_below(tmp_path).keys() == {"model.weights"} and strays(tmp_path) == []


def test_waiting_for_a_ledger_can_be_stopped(tmp_path):
    with open(tmp_path / "model.slm", "w"):
        pass
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    waiting = subprocess.Popen([COMMAND, "slm", "promotion-ledger", "append", tmp_path / "ledger", tmp_path / "model.slm"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: str(tmp_path) in opened_by(waiting), waiting)
    wait_for_sleep(waiting)
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(timeout=20) == 143
    os.close(held)
    assert sorted(files_below(tmp_path)) == ["model.slm"]


@pytest.mark.parametrize("name", JOBS)
def test_ctrl_c_while_it_writes(tmp_path, name):
    """At the first and the last call of each kind that changes the disk: all files or none, and no temporary."""
    require_strace()
    job = make_job(tmp_path, name)
    calls = job.system_calls()
    for call in ("pwrite64", "fsync", "renameat2", "renameat"):
        alike = [each for each in calls if each[0] == call]
        for _, count, line in {1: alike[0], len(alike): alike[-1]}.values() if alike else ():
            done = job.run_with(f"{call}:signal=INT:when={count}")
            whole = job.require_old_or_new(line)
            assert strays_below(job.there) == [], line
            assert done.returncode == 130 or (done.returncode == 0 and whole), (line, done.returncode, done.stderr)


def end_in_the_middle(job, how, model):
    """Stops the job, or cuts the .slm that it reads."""
    if how == "cut":
        os.truncate(model, 12 * MIB)
    status, said = job.go_on(signal.SIGINT if how == "stopped" else None)
    assert status == (130 if how == "stopped" else 4), (status, said)


@pytest.mark.parametrize("words", [["verify", "{in}"], ["hash", "{in}"], ["convert", "{in}", "{out}"],
                                   ["convert", "{in}", "{out}", "--quantize", "q4_0"]], ids=" ".join)
@pytest.mark.parametrize("how", ["stopped", "cut"])
def test_slm_in_the_middle(tmp_path, words, how):
    """The pass over the payload during opening, stopped, and on a file that shrinks."""
    model, target = tmp_path / "model.slm", tmp_path / "out.slm"
    assert run("slm", "fixture", "tinylm16m", "-o", model).returncode == 0
    job = Caught(*(word.replace("{in}", str(model)).replace("{out}", str(target)) for word in words), after=8 * MIB)
    end_in_the_middle(job, how, model)
    assert not target.exists() and strays(tmp_path) == []


READERS = [["verify", "{in}"], ["hash", "{in}"], ["hash", "--sha256", "{in}"], ["convert", "{in}", "{out}", "--force"],
           ["extract", "{in}", "w", "-o", "{out}", "--force"], ["extract", "{in}", "--glob", "w", "-o", "{out}.d"], ["inspect", "{in}", "--stats"]]
MAKERS = [words for words in READERS if words[0] in ("verify", "convert", "extract")]


@pytest.mark.parametrize("how", ["stopped", "cut"])
@pytest.mark.parametrize("words", [["embed", "{model}", "--input", "{in}", "-o", "{out}"],
                                   ["search", "{model}", "q", "--corpus", "{in}", "--vectors", "{out}"]], ids=" ".join)
def test_embedding_in_the_middle(tmp_path, words, how):
    """The weights are mapped: if the file shrinks, the process gets SIGBUS and cannot clean up. As after a kill, the next run cleans
    up."""
    model, texts, out = tmp_path / "model.weights", tmp_path / "texts.txt", tmp_path / "vectors.npy"
    embd.write(model, *bert())
    texts.write_text("word1 word2\n" * 400_000)
    names = {"{model}": model, "{in}": texts, "{out}": out}
    job = Caught(*(names.get(word, word) for word in words), after=texts.stat().st_size * (1 if "search" in words else 0.5))
    if how == "cut":
        os.truncate(model, 0)
    status, said = job.go_on(signal.SIGINT if how == "stopped" else None)
    assert status == (130 if how == "stopped" else 4), (status, said)
    assert sorted(files_below(tmp_path)) == ["model.weights", "texts.txt"]
    assert how == "cut" or strays(tmp_path) == []
    embd.write(model, *bert())
    texts.write_text("word1 word2\n")
    assert run(*(names.get(word, word) for word in words)).returncode == 0
    assert out.exists() and strays(tmp_path) == []


@pytest.mark.parametrize("how", ["stopped", "cut"])
@pytest.mark.parametrize("words", [["generate", "{model}", "--max-tokens", "200"], ["perplexity", "{model}", "--input", "{in}"],
                                   ["slm", "runtime-smoke", "{model}", "-o", "{out}"]], ids=" ".join)
def test_a_language_model_in_the_middle(tmp_path, words, how):
    model, text, out = tmp_path / "model.slm", tmp_path / "text.txt", tmp_path / "out"
    assert run("slm", "fixture", "tinylm16m", "-o", model).returncode == 0
    assert run("slm", "manifest", model, "--source-kind", "deterministic-smoke").returncode == 0
    text.write_text("the dog and the cat " * 50)
    before = sorted(path.name for path in tmp_path.iterdir())
    names = {"{model}": model, "{in}": text, "{out}": out}
    job = Caught(*(names.get(word, word) for word in words), after=8 * MIB)
    if how == "cut":
        os.truncate(model, 4096)
    status, said = job.go_on(signal.SIGINT if how == "stopped" else None)
    assert status == (130 if how == "stopped" else 4) and len(said.splitlines()) <= 1, (status, said)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def caught(words, large, target):
    target.write_bytes(OLD)
    return Caught(*(word.replace("{in}", str(large)).replace("{out}", str(target)) for word in words))


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_an_input_that_shrinks_is_status_4(tmp_path, large, words):
    job = caught(words, large, tmp_path / "out.zt")
    os.truncate(large, 100 * MIB)
    status, said = job.go_on()
    assert status == 4 and "shrank" in said, (status, said)
    assert contents(tmp_path / "out.zt") == OLD and strays(tmp_path) == []


@pytest.mark.parametrize("how", ["stopped", "cut"])
@pytest.mark.parametrize("words", [["append", "{zt}", "{in}"], ["khlnary", "pack", "{in}", "-o", "{out}/module"],
                                   ["extract", "{in}", "--glob", "*", "-o", "{out}"]], ids=" ".join)
def test_what_grows_or_has_many_files_in_the_middle(tmp_path, words, how):
    there, large = tmp_path / "there", write_sparse_file(tmp_path / "large.safetensors", "F32", 4, 2 << 30)
    there.mkdir()
    done = run("convert", write_safetensors(tmp_path / "small.safetensors", {"small": [1, 2, 3]}), there / "grown.zt")
    assert done.returncode == 0, done.stderr
    before = files_below(there)
    names = {"{in}": str(large), "{zt}": str(there / "grown.zt"), "{out}": str(there)}
    for name, path in names.items():
        words = [word.replace(name, path) for word in words]
    job = Caught(*words)
    if how == "cut":
        os.truncate(large, 100 * MIB)
    status, said = job.go_on(signal.SIGINT if how == "stopped" else None)
    assert status == (130 if how == "stopped" else 4) and ("shrank" in said) == (how == "cut"), (status, said)
    assert files_below(there) == before and strays_below(there) == []


@pytest.mark.parametrize("how", ["stopped", "cut"])
def test_adapting_in_the_middle(tmp_path, how):
    model, shift, target = tmp_path / "model.slm", tmp_path / "shift.adp1", tmp_path / "out.slm"
    deltas = write_safetensors(tmp_path / "deltas.safetensors", {"norm.weight": [0.25] * 512})
    for words in (["slm", "fixture", "tinylm16m", "-o", model], ["slm", "adapter", model, deltas, "--kind", "adp1", "-o", shift]):
        assert run(*words).returncode == 0
    job = Caught("slm", "adapt", model, shift, "-o", target, after=80 * MIB)  # what opening reads, and more
    end_in_the_middle(job, how, model)
    assert not target.exists() and strays(tmp_path) == []


TAIL = MIB  # of a large file, to be put back


@pytest.fixture(scope="module")
def large_files(tmp_path_factory):
    """kind -> a file of about 1 GiB, made on first use: (argument of the command, the file that shrinks)."""
    folder, made = tmp_path_factory.mktemp("large"), {}

    def make(kind):
        if kind == "weights":
            path = write_sparse_embd(folder / "model.weights", 1 << 30)
        elif kind == "bin":
            path = write_sparse_checkpoint(folder / "model.bin", 1 << 30)
        else:
            source = write_sparse_file(folder / "model.safetensors", "F32", 4, 1 << 30)
            if kind == "hf":
                (folder / "hf").mkdir()
                (folder / "hf/config.json").write_text('{"model_type": "other"}')
                return folder / "hf", source.rename(folder / "hf/model.safetensors")
            path = folder / f"model-{kind}.{'stb' if kind == 'stb' else 'zt'}"
            digest = () if kind == "stb" else ("--digest", "sha256")
            done = run("convert", source, path, "--to", kind, *digest)
            assert done.returncode == 0, done.stderr
            source.unlink()
        return path, path

    yield lambda kind: made.setdefault(kind, None) or made.update({kind: make(kind)}) or made[kind]
    shutil.rmtree(folder)


# verify reads no payload of an STB file or a folder, because there is nothing to check.
@pytest.mark.parametrize("kind,verb", [(kind, verb) for kind in ("zt", "zt0", "stb", "weights", "bin", "hf")
                                       for verb in ("verify", "hash", "convert") if (kind, verb) not in (("stb", "verify"), ("hf", "verify"))])
def test_each_container_that_shrinks_is_status_4(tmp_path, large_files, kind, verb):
    given, shrinks = large_files(kind)
    size, target = shrinks.stat().st_size, tmp_path / ("out.slm" if kind == "bin" else "out.zt")
    with open(shrinks, "rb") as file:
        file.seek(size - TAIL)
        tail = file.read()
    job = Caught(verb, given, *([target] if verb == "convert" else []))
    os.truncate(shrinks, 100 * MIB)
    status, said = job.go_on()
    with open(shrinks, "r+b") as file:
        file.seek(size - TAIL)
        file.write(tail)
    assert status == 4 and "shrank" in said, (status, said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", MAKERS, ids=" ".join)
@pytest.mark.parametrize("how", ["written to", "replaced", "removed"])
def test_an_input_that_changes_is_status_4(tmp_path, how, words):
    size = 256 * MIB if words[0] == "convert" else 1 << 30  # writing to the disk is slow enough to be caught
    large = write_sparse_file(tmp_path / "large.safetensors", "BOOL", 1, size)
    job = caught(words, large, tmp_path / "out.zt")
    if how == "written to":
        with open(large, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\1")
    elif how == "replaced":
        write_sparse_file(tmp_path / "other", "BOOL", 1, size).rename(large)
    else:
        large.unlink()
    status, said = job.go_on()
    assert status == 4 and str(large) in said, (status, said)
    assert contents(tmp_path / "out.zt") == OLD and strays(tmp_path) == []


@pytest.fixture
def without_rights(tmp_path):
    """A folder, and a function that runs the command there as an unprivileged user, because file modes do not restrict root."""
    if os.geteuid() != 0:
        yield tmp_path, lambda *words: run(*words)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o777)
        command = folder / "command"
        shutil.copy2(COMMAND, command)
        yield folder, lambda *words: subprocess.run([command, *map(str, words)], capture_output=True, text=True, timeout=60,
                                                    user=65534, group=65534, extra_groups=[])


@pytest.mark.parametrize("verb", ["inspect", "verify", "hash", "convert", "extract"])
def test_an_unreadable_file_is_status_4(without_rights, verb):
    folder, run_there = without_rights
    path = write_safetensors(folder / "secret.safetensors", {"w": [1, 2, 3]})
    path.chmod(0o000)
    words = {"convert": [path, folder / "out.zt"], "extract": [path, "w", "-o", folder / "w.bin"]}.get(verb, [path])
    done = run_there(verb, *words)
    assert done.returncode == 4 and "secret" in done.stderr and "permission denied" in done.stderr.lower(), done
    assert not (folder / "out.zt").exists() and not (folder / "w.bin").exists()


@pytest.mark.parametrize("verb", ["convert", "extract"])
def test_a_folder_that_takes_no_file_is_status_4(without_rights, verb):
    folder, run_there = without_rights
    path = write_safetensors(folder / "model.safetensors", {"w": [1, 2, 3]})
    path.chmod(0o644)
    closed = folder / "closed"
    closed.mkdir(mode=0o555)
    words = {"convert": [path, closed / "out.zt"], "extract": [path, "w", "-o", closed / "w.bin"]}[verb]
    done = run_there(verb, *words)
    assert done.returncode == 4 and "closed" in done.stderr, done
    assert list(closed.iterdir()) == []


@pytest.mark.parametrize("verb", ["inspect", "verify", "hash"])
def test_a_disk_that_cannot_be_read_is_status_4(tmp_path, verb):
    require_strace()
    path = write_safetensors(tmp_path / "model.safetensors", {"w": [1, 2, 3]})
    done = run(verb, path, "--threads", "1", prefix=["strace", "-qq", "-o", "/dev/null", "--inject=pread64:error=EIO"])
    assert done.returncode == 4 and "model.safetensors" in done.stderr, done.stderr
