#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the style rules for every text file of the repository: license line, line length, white space, no paths of a machine; and
for the library's sentences: no flags of the command, no escapes; and that sources which comments name are there.

Checks itself in the same run: each rule must report the file planted for it. Usage: check.py [ROOT]
"""
import pathlib
import re
import subprocess
import sys

MAX_LINE = 120
SOURCES = {".h", ".cc", ".def", ".py", ".sh", ".cmake", ".js", ".ts", ".css"}
CODE = {".h", ".cc"}  # in .def files a line is a row of a table
SKIPPED_FOLDERS = {".git", "build", "corpus", "seeds", ".ccache", "__pycache__", ".pytest_cache"}
NO_SPDX = {"LICENSE", "NOTICE"}
# Split, so that this file does not report itself.
MACHINE_PATHS = re.compile("/" + "work/|/" + "root/|/" + "tmp/(?:build-|brief)")
# A flag of the command inside a text in quotes: "... (--limit memory=BYTES)".
FLAG_IN_TEXT = re.compile(r'"(?:[^"\\]|\\.)*(?<![\w-])--[a-z](?:[^"\\]|\\.)*"')
DISPLAY = {"src/base/display.cc",  # implements escape_for_display()
           "src/capi/c.cc"}  # shows the texts of errors to programs in C
# The body that a public class keeps to itself may be defined there: "struct Module::Rep {".
PUBLIC_NAMESPACE = re.compile(r"^namespace weighbridge(?:::(?:slm|khlnary|chain))? \{\n+(?!\n|struct \w+::\w+ \{)", re.M)
# Nothing is published yet, so a host or a repository of weighbridge is an invented one. A name space of SPDX is no address.
INVENTED = re.compile(r"https?://(?!spdx\.org/spdxdocs/)[^\s\"'<>)\]]*weighbridge", re.I)
LEFT_OVER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def needs_spdx(path):
    return path.suffix in SOURCES or path.name in {"CMakeLists.txt", "Makefile", "run"} and path.name not in NO_SPDX


def is_library(path):
    """Whether a front end could show text from this file; the library's tests may quote anything."""
    return path.parts[:1] == ("src",) and path.suffix in {".h", ".cc", ".def"} and not path.stem.endswith("_test")


def check_text(path, text):
    """What is wrong with a file, as (line, sentence)."""
    lines = text.splitlines()
    if needs_spdx(path) and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
        yield 1, "the first two lines have no 'SPDX-License-Identifier: Apache-2.0'"
    if text and not text.endswith("\n"):
        yield len(lines), "no newline at the end"
    if text.endswith("\n\n"):
        yield len(lines), "an empty line at the end"
    for number, line in enumerate(lines, 1):
        if line != line.rstrip() and path.suffix != ".md":
            yield number, "white space at the end of the line"
        if "\t" in line and path.suffix in SOURCES:
            yield number, "a tab"
        if len(line) > MAX_LINE and path.suffix in CODE and 'R"' not in line:  # a raw string cannot be broken
            yield number, f"{len(line)} columns, more than {MAX_LINE}"
        if MACHINE_PATHS.search(line):
            yield number, "a path of one machine"
        if INVENTED.search(line):
            yield number, "an address of weighbridge, which has none"
        if path.suffix in SOURCES and LEFT_OVER.search(line):
            yield number, "something left over to do"
        if is_library(path) and not line.lstrip().startswith("//"):
            if FLAG_IN_TEXT.search(line):
                yield number, "a flag of the command in a sentence of the library: say it as a Hint"
            if "escape_for_display(" in line and path.as_posix() not in DISPLAY:
                yield number, "an escape in the library: what shows a sentence escapes it"
        if path.suffix == ".h" and path.parts[:1] == ("include",) and re.match(r"\s*using namespace", line):
            yield number, "'using namespace' in a public header"
    if path.parts[:1] == ("src",) and path.suffix == ".h" and (opened := PUBLIC_NAMESPACE.search(text)):
        yield text.count("\n", 0, opened.start()) + 1, "internals in a namespace of the public headers"
    if path.suffix == ".h" and "#pragma once" not in text:
        yield 1, "no '#pragma once'"


def repository_files(root):
    """The files that git tracks or would add; without a repository, those outside the build folders."""
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
                                check=True, capture_output=True).stdout.decode().split("\0")
        paths = [pathlib.Path(name) for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [path.relative_to(root) for path in root.rglob("*")]
    for path in sorted(paths):
        if not SKIPPED_FOLDERS.intersection(path.parts) and (root / path).is_file() and not (root / path).is_symlink():
            yield path


def check_names(paths):
    """pytest runs the tests of several folders together, and tells them apart by the names of their files alone."""
    first = {}
    for path in paths:
        if path.parts[:1] == ("tests",) and path.name.startswith("test_") and path.suffix == ".py":
            if first.setdefault(path.name, path) != path:
                yield f"{path}:1: a test has this name already: {first[path.name]}"


SOURCE, WRAPPER = "include/weighbridge/source.h", "src/io/forwarding_source.h"


def check_forwarding(source, wrapper):
    """Every virtual member of Source must be overridden by ForwardingSource, on which all sources over another source rely."""
    members = re.findall(r"virtual [\w:<> ]+?\b(\w+)\(", source[source.index("\nclass Source {"):])
    body = wrapper[wrapper.index("class ForwardingSource "):]
    body = body[:body.index("\n};")]
    for member in members:
        if not re.search(rf"\b{member}\([^;{{]*override", body):
            yield f"{WRAPPER}:1: ForwardingSource does not forward {member}()"


# A source or header in a comment, and a script of this repository. Those of other projects:
NAMED = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+\.(?:h|cc|inc|def)|(?:tests|tools|bench|python|web)/(?:[\w-]+/)*[\w-]+\.py)\b(?![(\w])")
FOREIGN = re.compile(r"ggml/include/\w+\.h|(?:ggml-common|gguf|llama)\.h|linux/\w+\.h|caffe2/[\w/]+\.cc|src/format\.cc")


def check_named(path, text, ends):
    """A file may be named by the last parts of its path. `ends` has those of every file."""
    if path.suffix not in {".h", ".cc", ".inc", ".def"}:
        return
    for number, line in enumerate(text.splitlines(), 1):
        comment = "" if line.lstrip().startswith("#include") else line.partition("//")[2]
        for name in NAMED.findall(comment):
            if name not in ends and not FOREIGN.fullmatch(name):
                yield number, f"a comment names a file that is not there: {name}"


def ends_of(paths):
    return {"/".join(path.parts[i:]) for path in paths for i in range(len(path.parts))}


def check(root):
    paths = list(repository_files(root))
    found = list(check_names(paths))
    ends = ends_of(paths)
    if (root / SOURCE).is_file():
        found += check_forwarding((root / SOURCE).read_text(), (root / WRAPPER).read_text())
    for path in paths:
        data = (root / path).read_bytes()
        if b"\0" in data:
            continue
        if b"\r\n" in data:
            found.append(f"{path}:1: carriage returns")
        text = data.decode("utf-8")
        found += [f"{path}:{line}: {wrong}" for line, wrong in [*check_text(path, text), *check_named(path, text, ends)]]
    return found


HEAD = "// SPDX-License-Identifier: Apache-2.0\n"
PLANTED = {
    "no 'SPDX": ("src/a.cc", "int a;\n"),
    "no newline": ("src/a.cc", HEAD + "int a;"),
    "an empty line": ("src/a.cc", HEAD + "\n"),
    "white space": ("src/a.cc", HEAD + "int a; \n"),
    "a tab": ("src/a.cc", HEAD + "\tint a;\n"),
    "columns": ("src/a.cc", HEAD + "/" * (MAX_LINE + 1) + "\n"),
    "a path of one machine": ("README.md", "see /" + "root/notes\n"),
    "an address of weighbridge": ("docs/a.md", "curl -LO https" + "://weighbridge.example/install.sh\n"),
    "left over": ("src/a.cc", HEAD + "// TO" + "DO: everything\n"),
    "a flag of the command": ("src/a.def", HEAD + 'WB_RULE(kA, "a/a", "too large (Limits::memory, --limit memory=BYTES)")\n'),
    "an escape in the library": ("src/a.cc", HEAD + "auto a = escape_for_display(name);\n"),
    "using namespace": ("include/weighbridge/a.h", HEAD + "#pragma once\nusing namespace std;\n"),
    "internals in a namespace": ("src/chain/a.h", HEAD + "#pragma once\nnamespace weighbridge::chain {\n\nint a();\n}\n"),
    "pragma once": ("src/a.h", HEAD + "int a();\n"),
}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    found = check(root)
    for finding in found:
        print(finding)
    unreported = [words for words, (path, text) in PLANTED.items()
                  if not any(words in wrong for _, wrong in check_text(pathlib.Path(path), text))]
    if not list(check_names([pathlib.Path("tests/cli/test_a.py"), pathlib.Path("tests/interop/test_a.py")])):
        unreported.append("a test has this name already")
    planted = check_forwarding("\nclass Source {\n  virtual int a() const = 0;\n  virtual std::shared_ptr<const Place> b(int) const;\n};\n",
                               "class ForwardingSource : public Source {\n  int a() const override;\n};\n")
    if [wrong.split()[-1] for wrong in planted] != ["b()"]:
        unreported.append("does not forward")
    text = "// see core/a.h, b.cc and tests/c.py, but core/model/d.h, d.h, gguf.h and other.py\n#include \"a.h\"  // e.h\nint x;  // f.def\n"
    planted = check_named(pathlib.Path("src/a.cc"), text, ends_of([pathlib.Path("src/core/model/d.h")]))
    if [(line, wrong.split()[-1]) for line, wrong in planted] != [(1, "core/a.h"), (1, "b.cc"), (1, "tests/c.py"), (3, "f.def")]:
        unreported.append("names a file that is not there")
    for words in unreported:
        print(f"check.py did not report what was planted for '{words}'")
    print(f"repository: {len(found)} violations; {len(PLANTED) + 3 - len(unreported)} of {len(PLANTED) + 3} planted ones reported")
    return 1 if found or unreported else 0


if __name__ == "__main__":
    sys.exit(main())
