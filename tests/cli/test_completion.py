# SPDX-License-Identifier: Apache-2.0
"""Tests what the tab key offers in bash, zsh and fish. bash and zsh run on a terminal, so that names with blanks are completed as
they are for a user; fish has a command that lists completions."""
import os
import pty
import re
import select
import shutil
import subprocess
import time

import pytest

from conftest import COMMAND, weighbridge


def shell(name):
    path = shutil.which(name)
    if not path:
        pytest.skip(f"there is no {name} to try its completion in")
    return path


# The scripts run the command that is on the path.
PATH = os.path.dirname(COMMAND) + os.pathsep + os.environ["PATH"]


def script(tmp_path, name):
    path = tmp_path / f"completion.{name}"
    path.write_text(weighbridge("completion", name).stdout)
    return path


def bash(*typed):
    text = weighbridge("completion", "bash").stdout.replace("compopt ", ": ")
    words = " ".join(f"'{word}'" for word in typed)
    text += f"COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _weighbridge; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    done = subprocess.run([shell("bash"), "--norc"], input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                          env=os.environ | {"PATH": PATH})
    assert done.returncode == 0 and done.stderr == b"", done.stderr
    return done.stdout.decode().split()


@pytest.mark.parametrize("typed, offered", [
    (["in"], ["inspect", "info"]), (["ls", "--stat"], ["--stats"]), (["cat", "--sort", "na"], ["name"]), (["help", "inf"], ["info"]), (["he"], ["help"]), (["--v"], ["--version"]),
    (["slm", "fix"], ["fixture"]), (["slm", "fixture", "tiny-"], ["tiny-tied", "tiny-bpe"]),
    (["slm", "fixture", "tiny", ""], []), (["slm", "quality-gate", ""], ["runtime-smoke", "assistant-quality"]),
    (["slm", "promotion-ledger", ""], ["append", "verify", "show"]), (["slm", "adapter", "a", "b", "--k"], ["--kind"]),
    (["slm", "adapter", "--deci"], []), (["slm", "quality-gate", "assistant-quality", "--decis"], ["--decision"]),
    (["slm", "--quiet", "adapte"], ["adapter"]), (["slm", "adapter", "--kind", "a"], ["adp1", "asp1", "alr1"]),
    (["khlnary", "dis"], ["disassemble"]), (["evaluate", ""], ["sts"]), (["formats", ""], []),
    (["completion", "z"], ["zsh"]), (["completion", "bash", ""], []), (["help", "slm", "adapte"], ["adapter"]),
    (["help", "sl"], ["slm"]), (["help", "slm", "quality-gate", "run"], ["runtime-smoke"]),
    (["inspect", "--sort", "=", "n"], ["name"]), (["inspect", "--sort", "="], ["name", "size", "dtype", "shape", "layout", "offset"]),
    (["convert", "a", "b", "--allow", "name,prec"], ["name,precision"]), (["hash", "a", "--limit", "mem"], ["memory="]),
    (["inspect", "--stat"], ["--stats"]), (["completion", "f"], ["fish"]), (["convert", "a", "b", "--allow", "prec"], ["precision"]),
    (["convert", "--to", "safet"], ["safetensors"]), (["inspect", "--sort=na"], ["--sort=name"]),
    (["convert", "a", "b", "--zt-version", "1.2"], ["1.2", "1.2.0"]), (["extract", "a", "w", "--stat"], []),
])
def test_bash_offers_words(typed, offered):
    assert bash("weighbridge", *typed) == offered


def on_tab(program, start, typed, words, tmp_path):
    """The words after the tab key is pressed and the line sent, in an interactive shell."""
    (tmp_path / "a b.zt").touch()
    environment = {"PATH": PATH, "HOME": str(tmp_path), "TERM": "dumb", "PS1": "> "}
    parent, child = pty.openpty()
    process = subprocess.Popen(program, stdin=child, stdout=child, stderr=child, cwd=tmp_path, env=environment, start_new_session=True)
    os.close(child)

    def until(mark, seconds=20):
        text, end = b"", time.monotonic() + seconds
        while mark not in text and time.monotonic() < end:
            if select.select([parent], [], [], 0.2)[0]:
                text += os.read(parent, 65536)
        assert mark in text, text
        return text.decode(errors="replace")

    try:
        os.write(parent, (start + "; echo rea''dy\n").encode())
        until(b"ready")
        os.write(parent, typed.encode() + b"\t")
        if typed.endswith(words[-1]):
            time.sleep(0.3)  # there is nothing to wait for: the key has to add nothing
        else:
            until(words[-1][-4:].encode())
        os.write(parent, b" \n")
        return re.findall(r"\{([^}]*)\}", until(b"{end}"))[:-1]
    finally:
        process.kill()
        process.wait(60)
        os.close(parent)


SAYS = "weighbridge() { printf '{%s}' \"$@\"; echo '{''end}'; }"
TABS = [("weighbridge inspect a", ["inspect", "a b.zt"]), ("weighbridge ls a", ["ls", "a b.zt"]), ("weighbridge l", ["ls"]), ("weighbridge a\\ b", ["a b.zt"]), ("weighbridge slm fix", ["slm", "fixture"]),
        ("weighbridge slm fixture tiny-t", ["slm", "fixture", "tiny-tied"]), ("weighbridge slm quality-gate r", ["slm", "quality-gate", "runtime-smoke"]),
        ("weighbridge formats a", ["formats", "a"]), ("weighbridge slm fixture a", ["slm", "fixture", "a"]),
        ("weighbridge slm adapt --force a", ["slm", "adapt", "--force", "a b.zt"]), ("weighbridge help slm adm", ["help", "slm", "admission-record"])]


@pytest.mark.parametrize("typed, words", TABS)
def test_bash_on_a_terminal(typed, words, tmp_path):
    start = f"bind 'set bell-style none'; source '{script(tmp_path, 'bash')}'; {SAYS}"
    assert on_tab([shell("bash"), "--norc", "--noprofile", "-i"], start, typed, words, tmp_path) == words


@pytest.mark.parametrize("typed, words", TABS)
def test_zsh_on_a_terminal(typed, words, tmp_path):
    start = f"unsetopt beep; autoload -Uz compinit; compinit -u -D; source '{script(tmp_path, 'zsh')}'; {SAYS}"
    assert on_tab([shell("zsh"), "-f", "-i"], start, typed, words, tmp_path) == words


def fish(tmp_path, line):
    (tmp_path / "a b.zt").touch()
    done = subprocess.run([shell("fish"), "--no-config", "-c", f"source {script(tmp_path, 'fish')}; complete -C '{line}'"], cwd=tmp_path,
                          env=os.environ | {"HOME": str(tmp_path), "PATH": PATH}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [offered.split("\t")[0] for offered in done.stdout.splitlines()]


@pytest.mark.parametrize("line, offered", [
    ("weighbridge insp", ["inspect"]), ("weighbridge l", ["ls"]), ("weighbridge cat --sort na", ["name"]), ("weighbridge info a", [r"a\ b.zt"]), ("weighbridge slm fix", ["fixture"]), ("weighbridge slm fixture tiny-", ["tiny-bpe", "tiny-tied"]),
    ("weighbridge slm fixture tiny ", []), ("weighbridge slm promotion-ledger ", ["append", "show", "verify"]),
    ("weighbridge completion bash ", []), ("weighbridge formats ", []), ("weighbridge help slm adapte", ["adapter"]),
    ("weighbridge slm adapter --deci", []), ("weighbridge slm quality-gate assistant-quality --decis", ["--decision"]),
    ("weighbridge inspect --sort na", ["name"]), ("weighbridge inspect a", [r"a\ b.zt"]), ("weighbridge extract a w", []),
])
def test_fish_offers(line, offered, tmp_path):
    assert [word.replace("\\ ", " ") for word in sorted(fish(tmp_path, line))] == [word.replace("\\ ", " ") for word in sorted(offered)]
