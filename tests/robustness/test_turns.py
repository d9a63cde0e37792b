# SPDX-License-Identifier: Apache-2.0
# Tests several runs that write one output: they take turns, so that it is complete and no finished run's work is lost. Also tests
# output folders: links that lead out of them, and syncing of new folders to disk.
import os
import re
import subprocess

import pytest

from jobs import bert, embd, files_below, strays_below
from robustness import COMMAND, done, require_strace, run, write_safetensors

# Delays each run at the point where it would be overtaken.
SLOW = ["strace", "-f", "-qq", "-o", "/dev/null", "--inject=renameat:delay_enter=300000", "--inject=renameat2:delay_enter=300000"]


def together(*commands):
    """Runs them concurrently; their statuses and messages."""
    running = [subprocess.Popen([*SLOW, COMMAND, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for words in commands]
    ended = [each.communicate(timeout=120) for each in running]
    return [each.returncode for each in running], [words for _, words in ended]


def test_of_two_appends_none_is_lost(tmp_path):
    require_strace()
    target = tmp_path / "grown.zt"
    done("convert", write_safetensors(tmp_path / "first.safetensors", {"first": [1, 2, 3]}), target)
    sources = [write_safetensors(tmp_path / f"{name}.safetensors", {name: [4, 5]}) for name in "ab"]
    statuses, words = together(*(["append", target, source] for source in sources))
    assert 0 in statuses and set(statuses) <= {0, 4}, (statuses, words)
    assert 4 not in statuses or "changed while it was read" in "".join(words), words
    listed = run("inspect", target, "--json").stdout
    assert [name in listed for name in ('"a"', '"b"')] == [status == 0 for status in statuses]
    assert strays_below(tmp_path) == []


@pytest.mark.parametrize("kind", ["hf", "stb"])
def test_files_that_belong_together_are_of_one_run(tmp_path, kind):
    require_strace()
    there, alone = tmp_path / "there", []
    there.mkdir()
    for seed in (1, 2):
        if kind == "hf":
            embd.write(tmp_path / f"{seed}.weights", *bert(seed=seed))
            words = ["convert", tmp_path / f"{seed}.weights", there / "model", "--to", "hf", "--force"]
        else:
            source = write_safetensors(tmp_path / f"{seed}.safetensors", {f"{seed}.{i}": [seed, i] for i in range(3)})
            words = ["convert", source, there / "out.stb", "--force"]
        done(*words)
        alone.append((words, files_below(there)))
    assert alone[0][1] != alone[1][1]
    statuses, words = together(*(words for words, _ in alone))
    assert statuses == [0, 0], words
    assert files_below(there) in [files for _, files in alone] and strays_below(there) == []


def test_what_is_extracted_over_files_is_of_one_run(tmp_path):
    require_strace()
    there, alone = tmp_path / "there", []
    for value in (1, 2):
        source = write_safetensors(tmp_path / f"{value}.safetensors", {f"t{i}": [value] for i in range(4)})
        words = ["extract", source, "--glob", "*", "-o", there, "--force"]
        done(*words)
        alone.append((words, files_below(there)))
    statuses, words = together(*(words for words, _ in alone))
    assert statuses == [0, 0], words
    assert files_below(there) in [files for _, files in alone] and strays_below(there) == []


@pytest.mark.parametrize("name", ["config.json", "1_Pooling", "model.safetensors"])
def test_a_folder_is_not_written_through_links(tmp_path, name):
    embd.write(tmp_path / "a.weights", *bert())
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    out.mkdir()
    if name == "1_Pooling":
        elsewhere.mkdir()
        (elsewhere / "config.json").write_text("precious\n")
    else:
        elsewhere.write_text("precious\n")
    (out / name).symlink_to(elsewhere)
    before = files_below(tmp_path)
    refused = run("convert", tmp_path / "a.weights", out, "--to", "hf", "--force")
    assert refused.returncode == 2 and f"'{out / name}' is a symbolic link" in refused.stderr, refused.stderr
    assert files_below(tmp_path) == before and strays_below(tmp_path) == []


@pytest.mark.parametrize("words", [["extract", "{in}", "--glob", "*", "-o", "{out}/p/q/r"], ["convert", "{in}", "{out}/p", "--set", "hf.model_type=other", "--to", "hf"]],
                         ids=" ".join)
def test_the_disk_has_each_folder_that_was_made(tmp_path, words):
    """The entries of new folders are synced to their parents."""
    require_strace()
    source = write_safetensors(tmp_path / "in.safetensors", {"a": [1], "b": [2]})
    out = tmp_path / "out"
    out.mkdir()
    words = [word.replace("{in}", str(source)).replace("{out}", str(out)) for word in words]
    finished = run(*words, prefix=["strace", "-qq", "-y", "-e", "trace=fsync", "-o", tmp_path / "trace"])
    assert finished.returncode == 0, finished.stderr
    synced = set(re.findall(r"fsync\(\d+<([^>]*)>", (tmp_path / "trace").read_text()))
    made = [folder for folder, _, _ in os.walk(out) if folder != str(out)]
    assert made and {os.path.dirname(folder) for folder in made} <= synced, synced


@pytest.mark.parametrize("words", [["convert", "{in}", "{out}", "--digest", "sha256"], ["verify", "{in}"]], ids=" ".join)
def test_threads_that_cannot_be_had_are_done_without(tmp_path, words):
    """It used to be reported as an internal error."""
    require_strace()
    source = write_safetensors(tmp_path / "in.safetensors", {str(i): [i] * 100 for i in range(50)})
    words = [word.replace("{in}", str(source)).replace("{out}", str(tmp_path / "out.zt")) for word in words]
    for first in (1, 3):
        calls = f"clone3,clone:error=EAGAIN:when={first}+"
        had = run(*words, "--threads", "8", prefix=["strace", "-f", "-qq", "-o", tmp_path / "trace", f"--inject={calls}"])
        assert had.returncode == 0 and "EAGAIN" in (tmp_path / "trace").read_text(), had.stderr
        (tmp_path / "out.zt").unlink(missing_ok=True)


def test_a_sidecar_that_cannot_be_looked_up_is_no_fault_of_the_program(tmp_path):
    source = write_safetensors(tmp_path / "in.safetensors", {"0": [1, 2]})
    loop, long = tmp_path / "loop.stb", tmp_path / ("l" * 248 + ".stb")
    loop.with_suffix(".khm.json").symlink_to("loop.khm.json")
    refused = run("convert", source, loop)
    assert refused.returncode == 2 and "exists" in refused.stderr, refused.stderr
    assert run("convert", source, loop, "--force").returncode == 0
    assert sorted(files_below(tmp_path)) == ["in.safetensors", "loop.stb"]
    done("convert", source, long)
    done("verify", long)
    assert sorted(files_below(tmp_path)) == ["in.safetensors", long.name, "loop.stb"] and strays_below(tmp_path) == []
