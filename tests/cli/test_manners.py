# SPDX-License-Identifier: Apache-2.0
# Tests behavior that all verbs share: exit statuses, pipes, terminals, signals, escapes, help and completion.
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

from conftest import COMMAND, floats, safetensors, validated, weighbridge
from tables import action_verbs, verbs
from terminal import Terminal, on_terminal
from waiting import in_the_middle, stopped


def test_version_and_help():
    assert re.match(r"weighbridge \d+\.\d+\.\d+\n", weighbridge("--version").stdout)
    assert "Exit status" in weighbridge("--help").stdout
    for verb in verbs():
        text = weighbridge(verb, "--help").stdout
        assert text.startswith(f"usage: weighbridge {verb}") and "--json" in text
        behind = ["x"] if verb not in action_verbs() else []  # where the first word has to be an action
        assert text == weighbridge("help", verb).stdout == weighbridge(verb, *behind, "--help").stdout


@pytest.mark.parametrize("arguments,word", [
    (["inpsect", "f"], "'inspect'"), (["--bogus"], "verb"), (["inspect"], "FILE"), (["convert", "a", "b.zt", "c"], "-o OUT"),
    (["inspect", "a", "--sorted"], "--sort"), (["inspect", "a", "--sort"], "KEY"), (["inspect", "a", "--sort", "nam"], "'name'"),
    (["inspect", "a", "--json=3"], "--json"), (["inspect", "a", "--sort", "name", "--sort", "size"], "more than once"),
    (["verify", "a", "--stats"], "--stats"), (["completion", "bsh"], "'bash'"), (["inspect", "a", "--sort="], "--sort"),
    (["convert", "a", "b.zt", "--allow", "attribute,nam"], "'name'"), (["formats", "x"], "'x'"),
    (["convert", "a", "b.zt", "--level", "99"], "19"), (["convert", "a", "b.zt", "--cast", "i8"], "bf16"), (["inspect", "a", "-x\x1b[31m"], "\\x1b"),
])
def test_misuse_is_one_sentence_and_status_2(arguments, word):
    done = weighbridge(*arguments, status=2)
    assert done.stdout == "" and word in done.stderr
    assert done.stderr.startswith("weighbridge: ") and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


def test_two_dashes_end_the_flags(tmp_path):
    path = tmp_path / "-q.safetensors"
    path.write_bytes(safetensors({"--help": ("F32", [1], floats(1))}))
    weighbridge("inspect", "--", "-q.safetensors", cwd=tmp_path)
    weighbridge("extract", "-o", "out", "--", "-q.safetensors", "--help", cwd=tmp_path)
    assert (tmp_path / "out").read_bytes() == floats(1)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path, fifo, "/dev/null"):
        for verb in ("inspect", "verify", "hash"):
            done = weighbridge(verb, path, status=2)
            assert str(path) in done.stderr
    weighbridge("verify", tmp_path, tmp_path / "absent", status=4)


def test_an_absent_file_is_status_4(tmp_path):
    for verb in ("inspect", "verify", "hash"):
        assert "absent" in weighbridge(verb, tmp_path / "absent", status=4).stderr
    value = validated(weighbridge("hash", tmp_path / "absent", "--json", status=4).stdout, "hash")["files"][0]
    assert value["findings"][0]["kind"] == "io"


def test_a_closed_pipe_is_no_error(tmp_path):
    path = tmp_path / "many.safetensors"
    path.write_bytes(safetensors({f"tensor.{i}": ("F32", [1], floats(i)) for i in range(20000)}))
    for arguments in (["inspect", path], ["inspect", path, "--json"], ["extract", path, "tensor.1", "-o", "-"]):
        read, write = os.pipe()
        os.close(read)
        done = weighbridge(*arguments, stdout=write)
        os.close(write)
        assert done.stderr == ""


def test_a_full_or_closed_output_is_status_4(sample):
    with open("/dev/full", "wb") as full:
        for arguments in (["inspect", sample], ["formats"], ["hash", sample], ["extract", sample, "steps", "-o", "-"], ["--help"]):
            assert "standard output" in weighbridge(*arguments, stdout=full, status=4).stderr
    closed = subprocess.run(["sh", "-c", '"$0" inspect "$1" >&-', COMMAND, sample], stderr=subprocess.PIPE, timeout=60)
    assert closed.returncode == 4


def test_closed_descriptors_do_not_mix_text_into_a_file(sample, tmp_path):
    out = tmp_path / "w.bin"
    subprocess.run(["sh", "-c", '"$0" extract "$1" steps -o "$2" <&- >&- 2>&-', COMMAND, sample, out], timeout=60)
    assert not out.exists() or len(out.read_bytes()) == 8


def test_colors_only_where_they_are_wanted(sample):
    assert "\x1b[" in on_terminal("verify", sample, NO_COLOR="")
    assert "\x1b[" not in on_terminal("verify", sample, NO_COLOR="1")
    assert "\x1b[" not in on_terminal("verify", sample, NO_COLOR="", TERM="dumb")
    assert "\x1b[" not in weighbridge("verify", sample).stdout


def test_output_does_not_depend_on_the_locale(sample):
    texts = {weighbridge("inspect", sample, "--stats", env={**os.environ, "LC_ALL": locale}).stdout
             for locale in ("C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8")}
    assert len(texts) == 1


@pytest.fixture
def large(tmp_path):
    """A sparse file of 6 GiB, large enough to interrupt the job."""
    size = 6 << 30
    header = safetensors({"w": ("U8", [0], b"")})
    text = header[8:].rstrip(b" ").replace(b'"shape":[0]', b'"shape":[%d]' % size).replace(b"[0,0]", b"[0,%d]" % size)
    text += b" " * (-len(text) % 8)
    path = tmp_path / "large.safetensors"
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + size)
    return path


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(large, tmp_path, number):
    for arguments in (["convert", large, tmp_path / "out.zt", "--encoding", "zstd", "--level", "15"],
                      ["extract", large, "w", "-o", tmp_path / "out.bin"], ["hash", large]):
        process = subprocess.Popen([COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        in_the_middle(process)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert os.listdir(tmp_path) == ["large.safetensors"]


@pytest.mark.parametrize("words", [["convert", "{in}", "{out}.zt", "--encoding", "zstd", "--level", "19"], ["convert", "{in}", "{out}.zt"],
                                   ["convert", "{in}", "{out}/", "--max-shard-size", "1GB", "--set", "hf.model_type=other"], ["extract", "{in}", "w", "-o", "{out}.bin"],
                                   ["extract", "{in}", "--glob", "*", "--raw", "-o", "{out}/deep"], ["hash", "{in}"], ["hash", "--sha256", "{in}"],
                                   ["verify", "{in}", "--sha256", "0" * 64], ["inspect", "{in}", "--stats"]], ids=" ".join)
def test_an_interrupted_verb_takes_no_second_of_processor_time_more_and_leaves_nothing(large, tmp_path, words):
    run = subprocess.Popen([COMMAND, *(word.replace("{in}", str(large)).replace("{out}", str(tmp_path / "out")) for word in words)],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    in_the_middle(run)
    _, took = stopped(run, signal.SIGINT)
    assert run.returncode == 130 and os.listdir(tmp_path) == ["large.safetensors"]
    assert took < 1, "the whole job takes several, dropping what was written included"


def test_n_is_a_count_where_there_is_one_to_give(sample, tmp_path):
    """`search -n 3` was told that search takes no --dry-run."""
    assert "-n, --top N" in weighbridge("search", "--help").stdout and "-n, --max-tokens N" in weighbridge("generate", "--help").stdout
    assert "dry-run" not in weighbridge("search", sample, "-n", "3", "q", status=2).stderr
    weighbridge("convert", sample, tmp_path / "x.zt", "-n", status=2)  # it was --dry-run
    assert not (tmp_path / "x.zt").exists()


def test_unknown_targets_name_what_can_be_written(sample, tmp_path):
    said = weighbridge("convert", sample, tmp_path / "x.tflite", status=2).stderr
    assert ".safetensors, .gguf, .zt," in said and "or / (a Hugging Face folder)" in said and "try --to FORMAT" in said
    assert "expected safetensors, gguf, zt" in weighbridge("convert", sample, tmp_path / "x", "--to", "tflite", status=2).stderr


def test_a_long_job_shows_its_progress_on_a_terminal_only(large):
    """The job without a terminal is the older of two: it would have shown its own by then."""
    piped = subprocess.Popen([COMMAND, "hash", large], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    in_the_middle(piped)
    terminal = Terminal("hash", large)
    terminal.read(r"hash \[=* *\] [^\r]*/s[^\r]* left")
    assert stopped(piped, signal.SIGINT)[0] == (b"", b"")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.close() == 130


def test_completion_scripts():
    offered = weighbridge("__complete", "").stdout
    assert offered.startswith("words\n") and all(f"\n{verb}\t" in offered for verb in verbs())
    assert "\n--dry-run\tprint the plan" in weighbridge("__complete", "convert", "--").stdout
    for shell in ("bash", "zsh", "fish"):
        script = weighbridge("completion", shell).stdout
        assert validated(weighbridge("completion", shell, "--json").stdout, "completion")["script"] == script
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=script.encode(), check=True, timeout=60)


def test_formats():
    out = weighbridge("formats").stdout
    assert "safetensors" in out and ".zt" in out
    value = validated(weighbridge("formats", "--json").stdout, "formats")
    assert {f["name"] for f in value["formats"]} >= {"safetensors", "zt"}


def test_hash(sample, broken):
    out = weighbridge("hash", sample).stdout
    assert re.fullmatch(rf"wb2:[0-9a-f]{{64}}  {re.escape(str(sample))}\n", out)
    plain = weighbridge("hash", "--sha256", sample).stdout.split()[0]
    assert plain == hashlib.sha256(sample.read_bytes()).hexdigest()
    assert len({out.split()[0], plain, weighbridge("hash", "--no-names", sample).stdout.split()[0]}) == 3
    both = validated(weighbridge("hash", sample, broken, "--json", status=1).stdout, "hash")["files"]
    assert both[0]["digest"] == out.split()[0] and both[0]["of"] == "content" and "findings" in both[1]


def test_renaming_changes_only_the_digest_with_names(sample, tmp_path):
    renamed = tmp_path / "renamed.safetensors"
    renamed.write_bytes(sample.read_bytes().replace(b"steps", b"stepz"))
    digest = lambda path, *flags: weighbridge("hash", path, *flags).stdout.split()[0]
    assert digest(sample) != digest(renamed)
    assert digest(sample, "--no-names") == digest(renamed, "--no-names")


def test_tensors_that_cannot_be_interpreted(strange, broken, sample, tmp_path):
    assert "unsupported" in weighbridge("inspect", strange).stdout
    value = validated(weighbridge("inspect", strange, "--json", "--stats").stdout, "inspect")["files"][0]
    assert {t["name"]: t["supported"] for t in value["tensors"]} == {"good": True, "odd": False}
    out = weighbridge("verify", strange, status=3).stdout
    assert "ok (zt, 2 tensors (1 unsupported), " in out
    assert validated(weighbridge("verify", strange, "--json", status=3).stdout, "verify")["files"][0]["valid"] is True
    weighbridge("verify", strange, broken, status=1)
    weighbridge("verify", sample, strange, status=3)
    weighbridge("hash", strange, status=3)
    weighbridge("extract", strange, "odd", "--dense", "-o", tmp_path / "x", status=3)
    weighbridge("extract", strange, "good", "-o", tmp_path / "x")
    weighbridge("convert", strange, tmp_path / "out.safetensors", status=3)


def test_a_limit_is_named_with_the_flag_that_raises_it(tmp_path):
    path = tmp_path / "two.safetensors"
    path.write_bytes(safetensors({"a": ("U8", [1], b"1"), "b": ("U8", [1], b"2")}))
    refused = weighbridge("inspect", path, "--limit", "tensors=1", status=1)
    assert refused.stderr.rstrip().endswith("; raise it with --limit tensors=COUNT")
    [finding] = validated(weighbridge("inspect", path, "--limit", "tensors=1", "--json", status=1).stdout, "inspect")["files"][0]["findings"]
    assert finding["kind"] == "limit" and finding["hint"] == {"what": "limit", "name": "tensors", "value": None}
    weighbridge("inspect", path, "--limit", "tensors=1M")


def test_a_limit_that_is_none_is_misuse(tmp_path):
    for text in ("tensors", "tensors=", "tensors=0", "tensors=1Q", "tensors=-1", "tensor=5", "depth=2K"):
        weighbridge("inspect", "-", "--limit", text, status=2)


@pytest.mark.parametrize("text", ["\x9b31m", "\u202egnp", "\u2028x", "\ufeff", "\x7f", "\u200b", "\U000e0041"])
def test_no_json_has_a_text_of_a_file_that_controls_a_terminal(tmp_path, text):
    """`diff --json` had C1 controls and marks of direction as they are."""
    folder = tmp_path / text
    folder.mkdir()
    a, b = folder / f"a{text}.safetensors", folder / "b.safetensors"
    for path, name in ((a, text), (b, text + "y")):
        path.write_bytes(safetensors({name: ("F32", [1], floats(1)), "w": ("F32", [1], floats(2 if path == a else 3))}, {name: name, "k": text + path.name}))
    broken = folder / "c.safetensors"
    broken.write_bytes(a.read_bytes()[:-1])
    for status, arguments in ((0, ("inspect", a)), (0, ("inspect", a, "--stats")), (0, ("verify", a)), (1, ("verify", broken)), (0, ("doctor", a)),
                              (1, ("diff", a, b)), (0, ("explain", a, "@40")), (0, ("hash", a)), (0, ("convert", a, folder / "o.zt", "--dry-run")),
                              (0, ("extract", a, "w", "-o", folder / "w.npy")), (0, ("edit", a, "--set", "x=y", "-i", "--dry-run")),
                              (0, ("convert", a, folder / "o.zt")), (2, ("extract", a, text + "z", "-o", folder / "x.npy"))):
        said = weighbridge(*arguments, "--json", status=status)
        for out in (said.stdout, said.stderr):
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]", out), (arguments, out)
        json.loads(said.stdout or "{}")
    found = json.loads(weighbridge("diff", a, b, "--json", status=1).stdout)
    assert found["a"]["path"] == str(a) and {"key": "k", "a": text + a.name, "b": text + b.name} in found["metadata"]
