# SPDX-License-Identifier: Apache-2.0
# Tests what a user at a terminal sees: lines that fit, the progress bar, Ctrl-C, and what is left afterwards.
import os
import re
import signal
import struct
import subprocess

import pytest

from conftest import COMMAND, ROOT, floats, safetensors, weighbridge, ztensor
from terminal import Terminal, on_terminal
from waiting import in_the_middle, until

ERASE = "\x1b[J"


def bars(text):
    """The drawn bars, which leave the cursor at the beginning of the line."""
    return re.findall(r"\x1b\[J([^\r\n]+)\r(?!\n)", text)


def sparse_file(path, sizes, dtype="U8"):
    """A file of zeros that takes no room: name -> bytes."""
    header = {name: (dtype, [0], b"") for name in sizes}
    text, offset = safetensors(header)[8:].rstrip(b" ").decode(), 0
    for name, size in sizes.items():
        text = text.replace(f'"{name}":{{"dtype":"{dtype}","shape":[0],"data_offsets":[0,0]}}',
                            f'"{name}":{{"dtype":"{dtype}","shape":[{size}],"data_offsets":[{offset},{offset + size}]}}')
        offset += size
    data = text.encode() + b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(data)) + data)
        file.truncate(8 + len(data) + offset)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """More than is read before a test has seen what it wants to see."""
    return sparse_file(tmp_path_factory.mktemp("large") / "large.safetensors", {"w": 64 << 30}, "BOOL")


def interrupted(terminal):
    terminal.process.send_signal(signal.SIGINT)
    status = terminal.close()
    assert status == 130, (status, terminal.text)
    return terminal.text


# ---- the bar ----


# At 60 columns the rate appears only if the other figures are short, so it is not checked there.
@pytest.mark.parametrize("columns,rate", [(30, False), (40, False), (60, None), (80, True), (200, True)])
def test_the_bar_ends_before_the_line_does(large, columns, rate):
    terminal = Terminal("hash", large, columns=columns)
    terminal.read(r"(\x1b\[J[^\r\n]+\r[^\n]*){4}")
    drawn = bars(interrupted(terminal))
    assert len(drawn) >= 4 and all(len(bar) < columns for bar in drawn)
    assert all(bar.endswith(" left") for bar in drawn if columns >= 40), drawn
    assert rate is None or any("/s" in bar for bar in drawn) == rate


def test_a_bar_that_became_too_wide_leaves_nothing(large):
    terminal = Terminal("hash", large, columns=200)
    terminal.read(r"hash \[")
    terminal.resize(25)
    terminal.read(r"\x1b\[Jhash [^\r\n\[]+\r")
    interrupted(terminal)
    # Each bar leaves the cursor at its beginning, so that erasing to the end of the screen removes all of it.
    assert all(piece.endswith("\r") for piece in terminal.text.split("\r" + ERASE)[1:-1])
    assert len(bars(terminal.text)[-1]) < 25


def test_a_terminal_without_a_cursor_gets_no_bar(large):
    """Of two jobs, the one that began later shows its bar, and the other none."""
    dumb = Terminal("hash", large, TERM="dumb")
    in_the_middle(dumb.process)
    other = Terminal("hash", large)
    other.read(r"hash \[")
    interrupted(other)
    assert "[" not in interrupted(dumb)


def test_the_bar_of_several_files_names_the_one_it_is_at(sample, large):
    terminal = Terminal("verify", sample, large)
    terminal.read(r"verify large.safetensors \[")
    interrupted(terminal)


def test_a_result_is_shown_before_the_next_file_is_read(sample, large):
    terminal = Terminal("verify", sample, large)
    terminal.read(r"ok \(safetensors, 4 tensors")
    assert terminal.process.poll() is None, "the second file takes longer"
    interrupted(terminal)


def test_the_bar_of_a_conversion_says_whether_it_writes_or_checks(tmp_path):
    terminal = Terminal("convert", sparse_file(tmp_path / "in.safetensors", {"w": 1 << 28}), tmp_path / "out.zt")
    terminal.linger()
    assert terminal.close() == 0
    drawn = bars(terminal.text)
    assert any("convert writing [" in bar for bar in drawn) or any("convert checking [" in bar for bar in drawn), drawn
    assert all(" of 256 MiB" in bar for bar in drawn if " of " in bar), drawn


def test_extracting_many_tensors_shows_a_bar(tmp_path):
    path = sparse_file(tmp_path / "in.safetensors", {f"w{i}": 64 << 20 for i in range(6)})
    terminal = Terminal("extract", path, "--glob", "*", "--raw", "-o", tmp_path / "out")
    terminal.linger()
    assert terminal.close() == 0
    drawn = bars(terminal.text)
    assert drawn and any(" of 384 MiB" in bar for bar in drawn), drawn


def test_the_result_follows_the_bar_on_its_line(tmp_path):
    terminal = Terminal("hash", sparse_file(tmp_path / "in.safetensors", {"w": 1 << 29}))
    terminal.linger()
    assert terminal.close() == 0
    assert re.search("left" + r"\s*\r" + re.escape("\r" + ERASE) + "wb2:[0-9a-f]{64}  ", terminal.text), terminal.text


# ---- Ctrl-C ----


@pytest.mark.parametrize("arguments", [["hash"], ["verify"]])
def test_an_interrupted_bar_is_taken_away(large, arguments):
    terminal = Terminal(*arguments, large)
    terminal.read(r"\[=* *\] ")
    assert interrupted(terminal).endswith("\r" + ERASE)


def test_a_bar_that_is_just_being_drawn_is_taken_away(large):
    for _ in range(5):
        terminal = Terminal("hash", large)
        terminal.read(re.escape(ERASE))
        assert interrupted(terminal).endswith("\r" + ERASE)


def test_an_interrupt_before_the_bar_ends_the_line(large):
    for _ in range(10):  # a busy machine may let half a second pass before the signal, and a bar is drawn
        terminal = Terminal("hash", large)
        in_the_middle(terminal.process, 1 << 20)
        text = interrupted(terminal)
        if not bars(text):
            break
    assert not bars(text) and text.endswith("\n")


@pytest.mark.parametrize("there", [False, True])
def test_extracting_many_tensors_leaves_nothing_when_interrupted(tmp_path, there):
    path = sparse_file(tmp_path / "in.safetensors", {f"w{i}": 100 << 20 for i in range(60)})
    out = tmp_path / "deep/out"
    if there:
        out.mkdir(parents=True)
        (out / "w0.bin").write_bytes(b"old")
    process = subprocess.Popen([COMMAND, "extract", path, "--glob", "*", "--raw", "--force", "-o", out])
    until(lambda: list(tmp_path.rglob("w1.bin")), process)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    if there:
        assert os.listdir(out) == ["w0.bin"] and (out / "w0.bin").read_bytes() == b"old"
    else:
        assert os.listdir(tmp_path) == ["in.safetensors"]


def test_what_a_killed_extraction_left_the_next_one_removes(tmp_path):
    path = sparse_file(tmp_path / "in.safetensors", {f"w{i}": 100 << 20 for i in range(60)})
    process = subprocess.Popen([COMMAND, "extract", path, "--glob", "*", "--raw", "-o", tmp_path / "out"])
    until(lambda: list(tmp_path.rglob("w1.bin")), process)
    process.kill()
    process.wait(60)
    assert len(os.listdir(tmp_path)) == 2
    weighbridge("extract", path, "--glob", "w1", "--raw", "-o", tmp_path / "out")
    assert sorted(os.listdir(tmp_path)) == ["in.safetensors", "out"] and os.listdir(tmp_path / "out") == ["w1.bin"]


def test_a_replaced_file_keeps_its_mode(sample, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "steps.bin").write_bytes(b"private")
    (out / "steps.bin").chmod(0o600)
    assert "--overwrite replaces it" in weighbridge("extract", sample, "--glob", "steps", "--raw", "-o", out, status=2).stderr
    weighbridge("extract", sample, "--glob", "steps", "--raw", "-o", out, "--force")
    assert (out / "steps.bin").stat().st_mode & 0o777 == 0o600 and len((out / "steps.bin").read_bytes()) == 8


# ---- tables ----


@pytest.fixture
def named(tmp_path):
    path = tmp_path / "named.safetensors"
    path.write_bytes(safetensors({"n" * 300 + ".weight": ("F32", [2, 3], floats(*range(6))), "字" * 60: ("F32", [1], floats(1)),
                                  "short": ("F32", [1], floats(1)), "blank ": ("F32", [1], floats(1))}))
    return path


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_row_is_a_line_of_the_terminal(named, columns):
    rows = on_terminal("inspect", named, columns=columns).split("\n")
    wide = [row for row in rows[2:] if len(row) + row.count("字") > columns]
    assert not wide, wide
    assert any("...." in row or "n...n" in row or re.search(r"n\.\.\.n*\.weight", row) for row in rows)
    assert "layout" not in rows[2]


@pytest.fixture
def layers(tmp_path):
    """Names that differ in the middle, with a layout and shapes that take much of a line."""
    path = tmp_path / "layers.zt"
    names = [f"encoder.layer.{n}.attention.self.{part}.weight" for n in range(12) for part in ("query", "key", "value")]
    shape = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    path.write_bytes(ztensor({name: ("dense", shape, {"data": ("f32", floats(1))}) for name in names}
                             | {"other": ("sparse_coo", [2, 3], {"values": ("f32", floats(5, 7)), "coords": ("u64", b"\0" * 32)})}))
    return path


@pytest.mark.parametrize("columns", [60, 72, 80])
def test_different_tensors_look_different_in_80_columns(layers, columns):
    lines = on_terminal("inspect", layers, "--no-check", columns=columns).split("\n")
    rows = [line.split("  ")[0] for line in lines if re.search(r"f32 .*\[", line)]
    assert len(rows) == 37 and len(set(rows)) == 37, rows
    assert max(map(len, lines[2:])) <= columns and "layout" not in "\n".join(lines), "the layout goes first"
    wide = on_terminal("inspect", layers, "--no-check", "--wide", columns=columns).replace("\r", "").replace("\n", "")
    assert "encoder.layer.11.attention.self.value.weight" in wide and "sparse_coo" in wide and "..." not in wide


@pytest.mark.parametrize("columns", [24, 40, 60, 80, 100, 120, 200])
def test_statistics_fit_the_terminal_and_say_what_is_not_shown(columns):
    """The rows were up to twice as wide as the terminal, with names in full beside names cut to nonsense."""
    path = ROOT / "examples/sample.safetensors"
    lines = on_terminal("inspect", path, "--stats", columns=columns).split("\n")
    head = next(i for i, line in enumerate(lines) if line.startswith("name "))
    rows = lines[head:head + 25]
    assert len(rows) == 25 and max(map(len, rows)) <= columns, rows
    names = [row.split()[0] for row in rows[1:]]
    assert len(set(names)) == 24, names
    omitted = [line for line in lines if line.startswith("not shown: ")]
    heads = ["dtype", "shape", "size", "min", "max", "mean", "std", "nan", "inf", "zero", "values"]
    missing = set(heads) - set(rows[0].split())
    assert omitted == [] if not missing else set(omitted[0].split(";")[0][len("not shown: "):].split(", ")) == missing
    if columns >= 80:
        assert {"min", "max", "mean", "std", "values"} <= set(rows[0].split()) and all("embeddings" in name for name in names[:4])
    wide = on_terminal("inspect", path, "--stats", "--wide", columns=columns)
    assert all(head in wide for head in heads) and "-0.0499852" in wide and "not shown" not in wide


def test_a_pipe_gets_names_whole_and_every_column(named):
    text = weighbridge("inspect", named).stdout
    assert "n" * 300 + ".weight" in text and "字" * 60 in text and "layout" in text and "..." not in text


def test_a_layout_that_says_something_is_shown(sparse):
    assert "sparse_coo" in on_terminal("inspect", sparse)


def test_a_blank_at_a_names_end_can_be_seen(named):
    assert "'blank '  " in weighbridge("inspect", named).stdout


def test_formats_fit_the_terminal():
    lines = on_terminal("formats").split("\n")
    assert max(map(len, lines)) <= 80 and any("title" in line for line in lines)
    assert "title" in weighbridge("formats").stdout.split("\n")[0]


def test_losses_are_folded_at_the_terminals_edge(sparse, tmp_path):
    terminal = Terminal("convert", sparse, tmp_path / "out.safetensors", "--dry-run")
    assert terminal.close() == 1
    assert all(len(line) <= 80 for line in terminal.text.split("\r\n") if line.startswith("  "))


# ---- bytes ----


def test_bytes_of_a_tensor_do_not_go_to_a_terminal(sample):
    assert "-o FILE" in on_terminal("extract", sample, "steps", "-o", "-", status=2)
    assert weighbridge("extract", sample, "steps", "-o", "-", text=False).stdout == struct.pack("<q", -7)
