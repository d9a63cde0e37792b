# SPDX-License-Identifier: Apache-2.0
"""Tests the transcripts in README.md and the pages of docs/ against the command's output, each page's commands in order in one folder.
Every other command line on a page must use existing verbs and flags, and the C++ on the pages must compile. Two pages have their own
tests: embedding.md (tests/interop/test_minilm.py) and slm/walk.md (tests/interop/test_slm_chain.py)."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

from conftest import COMMAND, ROOT, TEST_DATA
from tables import action_verbs, other_names, help_of, pages, verbs

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
OF_OTHERS = {"embedding.md", "walk.md"}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)


def sample(folder):
    program = pathlib.Path(COMMAND).resolve().parent / "examples/sample_model"
    if not program.is_file():
        pytest.skip(f"{program.name} is not built beside the command, and makes the file that the pages speak of")
    subprocess.run([program, folder / "sample.safetensors"], check=True, capture_output=True)


def stories(folder):
    data = TEST_DATA / "llama"
    for name in ["stories260K.bin", "tok512.bin"]:
        if not (data / name).is_file():
            pytest.skip(f"llama/{name} is not in ../shared/data or $WEIGHBRIDGE_TEST_DATA")
        shutil.copy(data / name, folder)


def tiny(folder):
    """The sample of the repository: in examples/, as the README has it, and by itself."""
    (folder / "examples").mkdir()
    for there in (folder / "examples", folder):
        shutil.copy(ROOT / "examples/sample.safetensors", there)


def nothing(_):
    """For pages that make all files they need."""


def signing(folder):
    sample(folder)
    if shutil.which("openssl") is None:
        pytest.skip("the program openssl, which makes keys, is not installed")
    for line in re.search(r"^```sh\n(openssl .*?)^```", (ROOT / "docs/signing.md").read_text(), re.M | re.S)[1].splitlines():
        subprocess.run(["bash", "-c", line], cwd=folder, check=True, capture_output=True)


# Page, a word that only the blocks of this walk have, and the files that the walk needs.
WALKS = [("README.md", "", tiny), ("docs/recipes.md", "", tiny), ("docs/pickles.md", "", tiny), ("docs/ci.md", "", tiny),
         ("docs/policies.md", "", sample), ("docs/checking.md", "", sample), ("docs/doctor.md", "", sample), ("docs/editing.md", "", sample), ("docs/comparing.md", "", sample),
         ("docs/signing.md", "", signing), ("docs/converting.md", "", sample), ("docs/gguf.md", "", sample),
         ("docs/generation.md", "stories", stories), ("docs/generation.md", "tiny", nothing)]


def walked(text, word):
    """The blocks of a page that a test runs: transcripts, and command lines without output."""
    for kind, block in BLOCK.findall(text):
        if word in block and (kind == "console" or not kind and block.startswith("weighbridge ")):
            yield kind, block


def commands_of(text, word):
    """Pairs of a command and its output on the page; None if the page shows no output."""
    for kind, block in walked(text, word):
        if kind == "console":
            yield from (tuple(part.split("\n", 1)) for part in re.split(r"^\$ ", block, flags=re.M)[1:])
        else:
            yield from ((line, None) for line in block.splitlines())


def shown(printed, wanted):
    """Whether a page shows the actual output; "..." at the end of a line stands for the rest of it."""
    printed, wanted = printed.split("\n"), wanted.split("\n")
    return len(printed) == len(wanted) and all(
        line.startswith(want[:-3].rstrip()) if want.endswith("...") else line == want for line, want in zip(printed, wanted))


@pytest.mark.parametrize("page, word, prepare", WALKS, ids=[f"{page}-{word}" for page, word, _ in WALKS])
def test_a_page_shows_what_is_printed(page, word, prepare, tmp_path):
    if pathlib.Path(COMMAND).name != "weighbridge":
        pytest.skip(f"{COMMAND} is not called weighbridge, as on the pages")
    prepare(tmp_path)
    path = f"{pathlib.Path(COMMAND).resolve().parent}{os.pathsep}{os.environ['PATH']}"
    commands = list(commands_of((ROOT / page).read_text(), word))
    assert len(commands) >= 2, "a page without commands proves nothing"
    for command, wanted in commands:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=os.environ | {"PATH": path, "COLUMNS": "200", "XDG_CACHE_HOME": str(tmp_path)},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        if wanted is None:
            assert done.returncode == 0, (command, done.stdout)
        else:
            assert shown(done.stdout, wanted), (command, done.stdout, wanted)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in OF_OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_terminal_on_a_page_is_run_by_one_test(page):
    text, name = page.read_text(), str(page.relative_to(ROOT))
    all_blocks = list(walked(text, ""))
    run = [block for walk, word, _ in WALKS if walk == name for block in walked(text, word)]
    assert sorted(all_blocks) == sorted(run)


def test_a_difference_on_a_page_is_seen():
    assert shown("one\ntwo, three\n", "one\ntwo, ...\n")
    assert not shown("one\ntwo, three\n", "one\ntwo\n")
    assert not shown("one\n", "one\ntwo\n")


def has_flag(help_text, flag):
    return re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", help_text) is not None


def lines_of_the_command(text):
    """Every call of the command in a block or in `code`, without the prompt, comments, and what follows a pipe."""
    code = [line for kind, block in BLOCK.findall(text) if kind in ("", "console")
            for line in re.findall(r"^(?:\$ )?(weighbridge .*)$", re.sub(r"\\\n(?:> )?\s*", "", block), re.M)]
    code += re.findall(r"`(weighbridge [^`]*)`", BLOCK.sub("", text))
    for line in code:
        words = shlex.split(line, comments=True)
        yield words[1:next((at for at, word in enumerate(words) if word in {"|", ">", ">>", "&&", "||", ";"}), len(words))]


def wrong_with(words):
    """The first word of a command line that does not exist; None if all exist."""
    verb = [words[0]] if not words[0].startswith("-") and words[0] != "VERB" else []
    text = help_of(*verb)
    if text is None or verb and verb[0] not in verbs():
        return f"no verb {words[0]}"
    if words[0] in action_verbs() and len(words) > 1:
        text = help_of(*words[:2]) or help_of(*words[:3])  # some actions have steps
        if text is None:
            return f"no action {words[1]}"
    for word in words:
        if word == "--":
            break
        flag = re.match(r"--?[A-Za-z][\w-]*", word)
        if flag and not has_flag(text, flag[0]) and flag[0] not in ("--help", "--json"):
            return f"no flag {flag[0]}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_calls_is_there(page):
    """Checks verbs and flags of each command line. A flag by itself must belong to some verb."""
    text = page.read_text()
    for words in lines_of_the_command(text):
        assert wrong_with(words) is None, (words, wrong_with(words))
    every = "".join(help_of(*words) for words in pages())
    others = (ROOT / "python/weighbridge/ray/__main__.py").read_text()  # the flags of `python -m weighbridge.ray`
    for flag in re.findall(r"`(--[a-z][\w-]*)", text):
        assert has_flag(every, flag) or flag in other_names() or f'"{flag}"' in others, flag


def test_the_messages_of_the_page_of_troubles_are_messages():
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "docs/troubleshooting.md").read_text(), re.M)
    quoted = [words for row in rows if "says" not in row for words in re.findall(r"`([a-z][a-z ]+)`", row, re.I) if " " in words]
    sources = "".join(path.read_text() for folder in ("src", "cli") for path in (ROOT / folder).glob("**/*") if path.suffix in (".cc", ".def"))
    assert len(quoted) >= 8 and [words for words in quoted if words not in sources] == []


def test_the_python_of_the_page_of_moves_is_there():
    calls = re.findall(r"\b(?:wb|weighbridge)\.((?:\w+\.)*)(\w+)\(|\)\.(\w+)\(", (ROOT / "docs/moving.md").read_text())
    source = "".join(path.read_text() for path in (ROOT / "python/weighbridge").glob("**/*.py"))
    names = {function or method for _, function, method in calls}
    assert {"load_file", "GGUFReader", "open", "numpy", "torch"} <= names
    assert [name for name in names if not re.search(rf"^\s*(?:def|class) {name}\b|\b{name} =", source, re.M)] == []


def test_a_call_of_what_is_not_there_is_seen():
    assert wrong_with(["convert", "a", "b", "--encoding", "zstd"]) is None
    for words in [["transmogrify", "a"], ["convert", "a", "b", "--enc"], ["slm", "forge"], ["hash", "-Z", "a"], ["--hepl"]]:
        assert wrong_with(words) is not None, words


def test_the_sample_is_what_its_program_makes(tmp_path):
    program = pathlib.Path(COMMAND).resolve().parent / "examples/sample_model"
    if not program.is_file():
        pytest.skip("sample_model is not built beside the command")
    subprocess.run([program, "--tiny", tmp_path / "sample.safetensors"], check=True)
    assert (tmp_path / "sample.safetensors").read_bytes() == (ROOT / "examples/sample.safetensors").read_bytes()


def test_the_minutes_of_the_readme_are_those_that_were_measured():
    measured = re.search(r"^\| the command \(`make build`\) \| (\d+) \|", (ROOT / "docs/internals/minutes.md").read_text(), re.M)[1]
    assert 2 * 60 < int(measured) <= 3 * 60 and "in three minutes on two cores" in (ROOT / "README.md").read_text()


def test_the_c_of_the_pages_compiles(tmp_path):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler:
        pytest.skip("there is no C compiler")
    blocks = [block for page in PAGES for kind, block in BLOCK.findall(page.read_text()) if kind == "c"]
    assert blocks
    program = tmp_path / "page.c"

    def compiles(text):
        program.write_text(text)
        return subprocess.run([compiler, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT}/include", program],
                              capture_output=True, text=True)

    for block in blocks:
        done = compiles(block)
        assert done.returncode == 0, done.stderr
    assert compiles(blocks[0].replace("wb_", "wb_no_", 1)).returncode != 0, "what does not compile went unnoticed"


def test_the_cpp_of_the_pages_compiles(tmp_path):
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if not compiler:
        pytest.skip("there is no C++ compiler")
    blocks = [block for page in PAGES for kind, block in BLOCK.findall(page.read_text()) if kind == "cpp"]
    assert len(blocks) >= 4
    includes, bodies = set(), []
    for block in blocks:
        includes |= set(re.findall(r"^#include .*$", block, re.M))
        body = re.sub(r"^(#include|namespace wb).*$", "", block, flags=re.M)
        # A whole program keeps its main(), renamed; other statements become a function.
        bodies.append(body.replace("int main()", f"int main{len(bodies)}()") if "int main()" in body
                      else f"void block{len(bodies)}() {{\n{body}\n}}")
    program = tmp_path / "pages.cc"
    program.write_text("\n".join(sorted(includes) + ["namespace wb = weighbridge;", "void use(auto&&...) {}", *bodies]))

    def compiles():
        return subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT}/include", program], capture_output=True, text=True)

    done = compiles()
    assert done.returncode == 0, done.stderr
    program.write_text(program.read_text().replace("wb::", "wb::no_", 1))
    assert compiles().returncode != 0, "what does not compile went unnoticed"
