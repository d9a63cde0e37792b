# SPDX-License-Identifier: Apache-2.0
# What a killed run left, found by a run without the key that its journal is marked with: without a home, from another home, and as
# another user. Nothing is undone by itself, nothing is lost, other names can be written, and whoever trusts the journal gets the old
# files back. test_kill.py and test_edit_kill.py kill runs with a home.
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from jobs import files_below, make_job, only_files, strays_below
from robustness import COMMAND, done, require_strace, run, write_safetensors
from test_edit_kill import Edit
from test_kill import changing

# Files that belong together, set aside first; and files that are exchanged one by one.
TOGETHER, EXCHANGED = ["hf-force", "pack-force"], ["extract-glob-force"]
NOBODY = 65534


class Finder:
    """Runs the command as somebody who has not the key of the killed run."""

    def __init__(self, who, folder):
        self.who, self.folder = who, folder
        self.environment = dict(os.environ)
        self.options = {}
        if who == "another home":
            self.environment["XDG_STATE_HOME"] = str(folder / "another")
            (folder / "another").mkdir()
        else:
            for name in ("XDG_STATE_HOME", "HOME"):
                self.environment.pop(name, None)
        if who == "another user":
            if os.geteuid() != 0:
                pytest.skip("only root can become another user")
            home = folder / "nobody"
            home.mkdir()
            os.chown(home, NOBODY, NOBODY)
            self.environment["HOME"] = str(home)
            self.options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
            shutil.copy2(COMMAND, folder / "command")

    def run(self, *words, folder):
        command = COMMAND
        if self.options:
            command = self.folder / "command"
            for path in [folder, *folder.rglob("*")]:
                if path.is_dir():
                    path.chmod(0o777)
        return subprocess.run([command, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                              env=self.environment, **self.options)


@pytest.fixture
def place():
    """A folder that every user can enter."""
    with tempfile.TemporaryDirectory() as name:
        pathlib.Path(name).chmod(0o755)
        yield pathlib.Path(name)


def journals(folder):
    """Those of whole runs: what is in a temporary folder is published only into it."""
    return [path for path in folder.rglob(".weighbridge-*.journal") if path.stat().st_size > 0 and path.parent.suffix != ".tmp"]


def held(folder):
    """What the files of a folder hold, under whatever names."""
    return {path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("who", ["no home", "another home", "another user"])
@pytest.mark.parametrize("name", TOGETHER + EXCHANGED)
def test_a_journal_without_the_key_is_not_undone_by_itself(place, name, who):
    require_strace()
    job = make_job(place, name)
    finder = Finder(who, place)
    other = write_safetensors(place / "other.safetensors", {"w": [1, 2, 3]})
    seen = set()
    for call, count, line in changing("", job.system_calls()):
        where = f"killed at {line}"
        job.run_with(f"{call}:signal=KILL:when={count}")
        left = journals(job.there)
        if not left or (state := job.left_behind()) in seen:
            continue
        seen.add(state)
        folder, old = left[0].parent, {data for data in job.old.values() if data is not None}
        before = only_files(files_below(job.there))

        refused = finder.run(*job.arguments, folder=job.there)
        assert refused.returncode == 4, f"{where}: {refused.returncode} {refused.stdout} {refused.stderr}"
        assert left[0].name in refused.stderr and "--recover --trust-journal" in refused.stderr, f"{where}: {refused.stderr}"
        assert only_files(files_below(job.there)) == before and old <= held(job.there), where

        written = finder.run("convert", other, folder / "another.zt", folder=job.there)
        assert written.returncode == 0 and left[0].name in written.stderr, f"{where}: {written.stderr}"
        (folder / "another.zt").unlink()
        assert left[0].exists() and old <= held(job.there), where

        said = finder.run("doctor", folder, "--recover", folder=job.there)
        assert said.returncode == 4 and "not a journal of yours" in said.stdout, f"{where}: {said.stdout} {said.stderr}"
        assert only_files(files_below(job.there)) == before, where
        trusted = finder.run("doctor", folder, "--recover", "--trust-journal", folder=job.there)
        assert trusted.returncode == 0 and "remove" in trusted.stdout, f"{where}: {trusted.stdout} {trusted.stderr}"
        assert only_files(files_below(job.there)) == only_files(job.old), where
        assert [stray for stray in strays_below(job.there) if not stray.endswith(".tmp")] == [], where
        job.require_clean_next_run(where)
    assert seen, "no kill left a journal"


@pytest.mark.parametrize("name", TOGETHER + EXCHANGED)
def test_a_run_that_was_killed_without_a_home(place, name, monkeypatch):
    """Its journal has no mark, so that nobody undoes it by itself, not even the same user without a home."""
    require_strace()
    job = make_job(place, name)
    calls = changing("", job.system_calls())
    seen = set()
    for call, count, line in calls:
        with monkeypatch.context() as bare:
            for variable in ("XDG_STATE_HOME", "HOME"):
                bare.delenv(variable, raising=False)
            job.run_with(f"{call}:signal=KILL:when={count}")
            left = journals(job.there)
            if not left or (state := job.left_behind()) in seen:
                continue
            seen.add(state)
            refused = run(*job.arguments)
            assert refused.returncode == 4 and "state folder" in refused.stderr, f"{line}: {refused.stderr}"
        refused = run(*job.arguments)
        assert refused.returncode == 4 and "not marked with this user's key" in refused.stderr, f"{line}: {refused.stderr}"
        assert run("doctor", left[0].parent, "--recover", "--trust-journal").returncode == 0
        assert only_files(files_below(job.there)) == only_files(job.old), line
        job.require_clean_next_run(line)
    assert seen


@pytest.mark.parametrize("who", ["no home", "another home", "another user"])
def test_an_edit_without_the_key_is_not_undone_by_itself(place, who):
    require_strace()
    edit = Edit(place, "zt shrinks")
    finder = Finder(who, place)
    at = next(count for call, count, line in edit.calls() if call == "ftruncate")
    edit.run_with(f"ftruncate:signal=KILL:when={at}")
    edit.there.chmod(0o777)
    edit.file.chmod(0o666)
    mixed = edit.file.read_bytes()
    assert mixed not in (edit.old, edit.new)
    for words in (["--recover"], ["--set", "a=b", "--in-place"], ["--undo"]):
        refused = finder.run("edit", edit.file, *words, folder=edit.there)
        assert refused.returncode == 4 and ".weighbridge-edit.journal" in refused.stderr, refused.stderr
    other = write_safetensors(place / "other.safetensors", {"w": [1, 2, 3]})
    assert finder.run("convert", other, edit.there / "another.zt", folder=edit.there).returncode == 0
    trusted = finder.run("edit", edit.file, "--recover", "--trust-journal", folder=edit.there)
    if who == "another user":
        # The journal holds parts of the file, and only its owner can read it.
        assert trusted.returncode == 4 and edit.file.read_bytes() == mixed
        trusted = run("edit", edit.file, "--recover")
    assert trusted.returncode == 0 and "write" in trusted.stdout and "remove" in trusted.stdout, trusted
    assert edit.file.read_bytes() == edit.old


def test_without_a_home_an_edit_is_undone_if_that_is_trusted(tmp_path, monkeypatch):
    path = write_safetensors(tmp_path / "model.safetensors", {"w": [1, 2, 3]})
    done("convert", path, tmp_path / "roomy.safetensors", "--reserve", "512")
    path = tmp_path / "roomy.safetensors"
    old = path.read_bytes()
    for variable in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(variable, raising=False)
    done("edit", path, "--set", "author=me", "--in-place")
    refused = run("edit", path, "--undo")
    assert refused.returncode == 4 and "--undo --trust-journal" in refused.stderr
    done("edit", path, "--undo", "--trust-journal")
    assert path.read_bytes() == old
