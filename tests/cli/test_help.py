# SPDX-License-Identifier: Apache-2.0
"""Tests the help of every verb and action, the length of its lines, and the messages for unknown words."""
import os
import re

import pytest

from conftest import floats, safetensors, weighbridge
from tables import action_verbs, actions, groups, pages, rows, verbs
from terminal import on_terminal


def test_help_explains_itself():
    text = weighbridge("help", "help").stdout
    assert text.startswith("usage: weighbridge help [VERB [ACTION]]\n") and "Examples:" in text
    assert text == weighbridge("help", "--help").stdout and all(len(line) <= 80 for line in text.splitlines())
    for example in re.findall(r"^  weighbridge (help .*)$", text, re.M):
        weighbridge(*example.split())
    assert "did you mean" in weighbridge("help", "convrt", status=2).stderr


def test_the_help_lists_the_groups_in_order():
    assert list(groups()) == ["Files", "Models", "Specialist", "Shell"]


def test_the_help_lists_every_row_of_the_tables():
    assert sorted(row.split(",")[0] for row in rows("verb", "WB_VERB")) == sorted(verbs())
    for verb in action_verbs():
        mine = [row for row in rows("action", "WB_ACTION") if row.startswith(verb + ",")]
        named = [re.findall(r'\.(?:name|step) = "([a-z-]+)"', row) for row in mine]
        assert sorted(named) == sorted(actions(verb)) and named, verb
    assert {row.split(",")[0] for row in rows("action", "WB_ACTION")} == set(action_verbs())


def test_no_line_is_wider_than_80_columns():
    for arguments in [[], ["--help"], *([*words, "--help"] for words in pages())]:
        for line in weighbridge(*arguments).stdout.splitlines():
            assert len(line) <= 80 and line == line.rstrip(), (arguments, line)


@pytest.mark.parametrize("columns, widest", [(60, 60), (100, 100), (200, 100), (20, 40)])
def test_lines_are_as_wide_as_the_terminal_but_not_wider_than_100(columns, widest):
    for words in (["convert"], ["slm"], ["khlnary", "assemble"]):
        flowing = [line for line in on_terminal(*words, "--help", columns=columns).splitlines() if " " in line.strip()]
        wide = [line for line in flowing if len(line) > widest]
        assert all("weighbridge " in line or "[flags]" in line for line in wide) or columns < 60, wide
        assert widest - 15 < max(len(line) for line in flowing)


def test_alone_it_is_ten_lines():
    lines = weighbridge().stdout.splitlines()
    assert len(lines) <= 12 and sum(line != "" for line in lines) <= 10
    for verb in verbs():
        assert any(re.search(rf"(?<= ){verb}(?= |$)", line) for line in lines), verb


def test_h_is_short_and_help_has_groups():
    """convert's 43 flags were one list, and -h printed as much as --help."""
    long, short = (weighbridge("convert", flag).stdout for flag in ("--help", "-h"))
    headings = re.findall(r"^([A-Z.][^\n]*):$", long, re.M)
    assert {"Tensors", "Values", "For .gguf", "General"} <= set(headings), headings
    assert short.count("\n") < long.count("\n") / 2 and "--cast" in short and "--imatrix" not in short and "--no-sandbox" not in short
    for verb in verbs():
        rows = [line for line in weighbridge(verb, "-h").stdout.splitlines() if line.startswith("  -") or line.startswith("      --")]
        assert all(len(line) <= 80 for line in rows), verb
        for line in rows:  # "--wide  on a terminal" said nothing
            text = line.split("  ")[-1]
            assert not re.fullmatch("(when|with|on|for) [^:]*[^.]|.* or", text), (verb, line)


def test_the_help_of_patch_has_no_empty_list():
    """patch --help ended with "Example:" and had "Flags of every action:", each above nothing."""
    for flag in ("-h", "--help"):
        text = weighbridge("patch", flag).stdout
        assert text.startswith("usage: weighbridge patch ACTION ...") and "Flags of every action:\n\n" not in text
    assert "Examples:\n  weighbridge patch fold" in text


def test_the_help_of_an_action_is_its_own():
    for words in pages():
        text = weighbridge(*words, "--help").stdout
        assert text.startswith("usage: weighbridge " + " ".join(words)) and "--json" in text and "Example" in text
        assert text == weighbridge("help", *words).stdout == weighbridge("--help", *words).stdout
    text = weighbridge("slm", "adapter", "--help").stdout
    assert "--kind" in text and "--decision" not in text and "the package to write" in text


def test_the_flags_of_help_are_those_that_are_taken():
    """Every flag of any action is accepted by the actions whose help has it, and refused by the others."""
    flag = r"^  (?:-\w,|   ) (--[a-z0-9-]+)( [A-Z=]+)?"
    helps = {tuple(words): dict(re.findall(flag, weighbridge(*words, "--help").stdout.split("\nExample")[0], re.M))
             for words in pages()}
    for verb in action_verbs():
        mine = {words: flags for words, flags in helps.items() if words[0] == verb and len(words) > 1}
        every = {name: value for flags in mine.values() for name, value in flags.items()}
        for words, flags in mine.items():
            for name, value in every.items():
                if name not in flags:
                    done = weighbridge(*words, "a", name, *(["1"] if value else []), status=2)
                    assert re.search(rf"takes no {name}\b", done.stderr), (words, name, done.stderr)


@pytest.mark.parametrize("arguments, sentence", [
    (["slm", "adapter", "a"], "slm adapter needs DELTAS; usage: weighbridge slm adapter BASE DELTAS"),
    (["slm", "adapter", "a", "b", "-o", "c"], "slm adapter needs --kind adp1, asp1 or alr1"),
    (["slm", "fixture", "tny", "-o", "x"], "slm fixture has no 'tny'; did you mean 'tiny'?"),
    (["slm", "quality-gate", "runtime-smok", "m"], "slm quality-gate has no 'runtime-smok'"),
    (["slm", "promotion-ledger"], "slm promotion-ledger needs append, verify or show"),
    (["slm", "zzz", "--help"], "slm has no action 'zzz'"),
    (["help", "slm", "fixtur"], "did you mean 'fixture'?"),
    (["help", "inspect", "extra"], "not also 'extra'"),
    (["evaluate", "st", "m", "c"], "evaluate has no action 'st'; did you mean 'sts'?"),
    (["convert", "a"], "convert needs OUT: 'weighbridge convert IN OUT', or -o OUT"),
    (["convert", "a", "b", "c"], "with several IN, convert needs -o OUT"),
    (["convert", "a", "b", "--to", "tz"], "did you mean 'zt'?"),
    (["extract", "a", "b", "--dense", "f99"], "expected bool"),
    (["similarity", "m", "a"], "similarity needs another TEXT"),
    (["list"], "did you mean 'inspect'?"), (["validate"], "did you mean 'verify'?"), (["version"], "did you mean '--version'?"),
    (["-v"], "'-V'"), (["--verison"], "'--version'"),
    (["hash", "a", "--limit", "foo=1"], "--limit has no 'foo': expected input, memory, header, tensors, decoded, work, output or depth"),
    (["generate", "m", "--temperature", "x"], "--temperature must be a number, at least 0, not 'x'"),
    (["generate", "m", "--temperature", "-1"], "--temperature must be a number, at least 0, not '-1'"),
    (["generate", "m", "--top-p", "0"], "--top-p must be a number above 0, at most 1, not '0'"),
    (["generate", "m", "--top-k", "1025"], "--top-k must be a whole number from 1 to 1024, not '1025'"),
    (["generate", "m", "--seed", "-1"], "--seed must be a whole number, at least 0, not '-1'"),
    (["slm", "import-receipt", "m", "--at", "yesterday"], "--at must be a time like 2026-01-31T12:00:00Z, not 'yesterday'"),
    (["convert", "a", "b.zt", "--zt-version", "9"], "--zt-version cannot be '9'"),
    (["convert", "a", "b.zt", "--keep-gqa"], "--keep-gqa applies only to slm, and the output is zt"),
    (["convert", "a", "b.slm", "--quantize-norms"], "--quantize-norms has no effect without --quantize"),
    (["tokenize", "m", "hi", "--offsets"], "--offsets has no effect without --json"),
    (["tokenize", "m", "hi", "--input-format", "jsonl"], "--input-format has no effect without --input"),
    (["search", "m", "q"], "search needs --corpus FILE; usage: weighbridge search MODEL QUERY... --corpus FILE [flags]"),
    (["extract", "a", "w"], "extract needs -o OUT; usage: weighbridge extract FILE [TENSOR] -o OUT [flags]"),
    (["extract", "a", "w", "-o", "x", "--part", "data", "--dense"], "--part and --dense cannot be used together"),
    (["slm", "import-receipt", "m", "--check", "--at", "2026-01-31T12:00:00Z"], "--check and --at cannot be used together"),
    (["embed", "m", "t", "--normalise", "--no-normalise"], "--normalize and --no-normalize cannot be used together"),
    (["convert", "a", "b.slm", "--quantise", "q9"], "--quantize cannot be 'q9'"),
])
def test_a_mistake_is_named(tmp_path, arguments, sentence):
    done = weighbridge(*arguments, status=2, cwd=tmp_path)
    assert sentence in done.stderr and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr


def test_a_verb_with_actions_alone_lists_them():
    for verb in action_verbs():
        done = weighbridge(verb, status=2)
        assert done.stdout == "" and all(f"  {' '.join(words)} " in done.stderr for words in actions(verb))
        assert all(len(line) <= 80 for line in done.stderr.splitlines())


def test_a_file_that_is_there_is_recognized(tmp_path):
    (tmp_path / "s.safetensors").write_bytes(safetensors({"layer.weight": ("F32", [1], floats(1))}))
    here = {"cwd": tmp_path}
    for words in (["s.safetensors"], ["ls", "s.safetensors"], ["cat", "s.safetensors"], ["info", "s.safetensors"]):
        assert weighbridge(*words, **here).stdout == weighbridge("inspect", "s.safetensors", **here).stdout
    assert weighbridge("s.safetensors", "--json", **here).stdout == weighbridge("inspect", "s.safetensors", "--json", **here).stdout
    assert weighbridge("help", "ls").stdout == weighbridge("inspect", "--help").stdout
    assert "the first word must be a verb or a file" in weighbridge("--nothing", status=2, **here).stderr
    assert "did you mean 's.safetensors'?" in weighbridge("inspect", "s.safetensor", status=4, **here).stderr
    assert "did you mean" not in weighbridge("inspect", "nothing-like-it", status=4, **here).stderr
    assert "did you mean" not in weighbridge("inspect", "tb.safetensors", status=4, **here).stderr  # one extension makes no two names alike
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "did you mean" not in weighbridge("inspect", "pip.gguf", status=4, **here).stderr

    extract = ["extract", "s.safetensors", "-o", "x"]
    assert "inspect FILE" in weighbridge(*extract, "zzzzzzzzzz", status=2, **here).stderr
    assert "--only" in weighbridge(*extract, "layer.*", status=2, **here).stderr


def test_colors_can_be_asked_for(tmp_path):
    path = tmp_path / "s.safetensors"
    path.write_bytes(safetensors({"w": ("F32", [1], floats(1))}))
    assert "\x1b[" in weighbridge("verify", path, "--color=always").stdout
    assert "\x1b[" not in weighbridge("verify", path, "--color", "auto").stdout
    assert "\x1b[" not in on_terminal("verify", path, "--color=never", NO_COLOR="")
    assert "did you mean 'never'?" in weighbridge("verify", path, "--color", "nevr", status=2).stderr


@pytest.mark.parametrize("words, sentence", [
    (["extract", "m.st", "A", "--output=", "keep.safetensors"], "--output has an empty value"),
    (["verify", "--color=", "m.st"], "--color has an empty value"),
    (["extract", "m.st", "A", "--force=true", "-o", "x"], "--overwrite takes no value"),
])
def test_an_equals_sign_takes_no_word_that_follows(tmp_path, words, sentence):
    (tmp_path / "keep.safetensors").write_bytes(b"mine")
    assert sentence in weighbridge(*words, status=2, cwd=tmp_path).stderr
    assert (tmp_path / "keep.safetensors").read_bytes() == b"mine"


def test_an_empty_verb_has_no_nearest_one():
    for words in ([""], ["help", ""]):
        assert "nearest" not in weighbridge(*words, status=2).stderr


@pytest.mark.parametrize("words", [["slm", "quality-gate", "--help"], ["help", "slm", "promotion-ledger"]])
def test_help_of_an_action_with_steps_lists_them(words):
    assert words[1 if words[0] == "slm" else 2] in weighbridge(*words).stdout


def test_a_file_whose_name_begins_like_a_flag(tmp_path):
    (tmp_path / "-dash.safetensors").touch()
    said = weighbridge("verify", "-dash.safetensors", status=2, cwd=tmp_path).stderr
    assert "the file of that name is './-dash.safetensors'" in said
