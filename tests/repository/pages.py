#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the references of Markdown pages exist: relative links and their anchors, `paths` of the tree, targets of make, presets
of CMake; that each code block has a known kind (tests/cli/test_pages.py runs those of the command itself); that no page of docs/ is too long to read;
and that the site of `make site` has every page of docs/, and that of every format, in its navigation.

Checks itself in the same run: planted faults must be reported. Usage: pages.py [ROOT]
"""
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
# `sh` is a sketch: commands for files that only the reader has.
KINDS = {"console", "c", "cpp", "cmake", "js", "html", "json", "python", "sh", "text", "yaml"}
# In a block without a kind: how its lines may begin; otherwise it is a drawing.
PLAIN = re.compile(r"weighbridge |make |sudo (?:make|dpkg) |cmake |tar |man |export |g\+\+ |weighbridge-[\d.]+-linux|Content-|  |#|$")
TREE = ("src/", "python/", "docs/", "tests/", "tools/", "include/", "cli/", "web/", "bench/", "fuzz/", "corpus/", "examples/", "cmake/")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def anchors(text):
    """The anchors that hosting sites generate from the headings."""
    seen = {}
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", FENCE.sub("", text), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        yield name if count == 0 else f"{name}-{count}"


def wrong_links(root, page, text):
    for target in (first or second for first, second in LINK.findall(without_code(text))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (root / page).parent / urllib.parse.unquote(path) if path else root / page
        if not there.exists():
            yield f"the link to {target} leads nowhere"
        elif anchor and there.suffix == ".md" and anchor not in anchors(text if not path else there.read_text()):
            yield f"{path or page} has no heading for #{anchor}"


def wrong_names(root, text, targets, presets):
    code = FENCE.findall(text)
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", text))
    for span in spans:
        if span.startswith(TREE) and re.fullmatch(r"[\w./-]+", span) and not (root / span).exists():
            yield f"there is no {span}"
    lines = spans + [line for kind, block in code if kind in ("", "console", "sh") for line in block.splitlines()]
    for line in lines:
        for target in re.findall(r"(?:^|\bsudo |\$ )make ([a-z][a-z-]*)", line):
            if targets and target not in targets:
                yield f"make has no target {target}"
        for preset in re.findall(r"cmake --preset (\w+)", line):
            if preset not in presets:
                yield f"CMake has no preset {preset}"
    for kind, block in code:
        if kind and kind not in KINDS:
            yield f"no test knows blocks of kind {kind}"
        # Commands, not drawings: those of a block whose first line looks like one.
        if not kind and re.match(r"\$ ", block):
            yield "a block with what is printed has to be ```console, so that a test runs it"
        if not kind and re.match(r"(?:\w+ )?(?:weighbridge|make|cmake|sudo|pip|npm|apt)\b", block):
            yield from (f"no test knows the line: {line}" for line in block.splitlines() if not PLAIN.match(line))


def public_names(root):
    """What weighbridge exports to Python, modules included."""
    package = root / "python/weighbridge"
    names = re.search(r"^__all__ = (\[.*?\])", (package / "__init__.py").read_text(), re.M | re.S)[1]
    return {*json.loads(re.sub(r",\s*\]", "]", names)), *(path.name.removesuffix(".py") for path in package.iterdir() if path.name[0] != "_")}


def wrong_python(text, public):
    """Names of the Python package that a page's code uses, and that are not public."""
    blocks = "\n".join(block for kind, block in FENCE.findall(text) if kind == "python")
    spans = "\n".join(re.findall(r"`([^`\n]+)`", FENCE.sub("", text)))
    used = {*re.findall(r"(?<!\")\b(?:wb|weighbridge)\.([A-Za-z_]\w*)", blocks), *re.findall(r"\bwb\.([A-Za-z_]\w*)", spans)}
    for name in sorted(used - public - {"padding"}):  # wb.padding is a key of GGUF's metadata
        yield f"weighbridge has no public name {name} in Python"


def broken_fences(text):
    for line in text.splitlines():
        if re.fullmatch(r"``\w*", line):
            yield f"a fence has three backticks, not '{line}'"


# A page that a person reads has at most so many words; references that are made from tables, or compared with them, may have more.
WORDS = 2500
REFERENCES = {"command.md", "conformance.md", "formats.md", "options.md", "python-reference.md", "rules.md", "slm/records.md"}


def too_long(page, text):
    words = len(text.split())
    if page.startswith("docs/") and page[5:] not in REFERENCES and words > WORDS:
        yield f"{words:,} words are more than {WORDS:,}"


def check_page(root, page, text, targets, presets, public):
    python = () if page.startswith("web/") else wrong_python(text, public)  # the npm package is also called wb
    return [f"{page}: {wrong}" for wrong in (*python, *wrong_links(root, page, text), *broken_fences(text), *too_long(page, text),
                                             *wrong_names(root, text, targets, presets))]


def wrong_site(root, config, pages):
    """What the site's navigation names, beside the pages that there are."""
    for key in re.findall(r"^(\w+): [^\"'\[{|#\n][^#\n]*: ", config, re.M):
        yield f"mkdocs.yml: a text with a colon has to be in quotes: {key}"
    named = re.findall(r"^ +- .*: ([\w./-]+\.md)$", config.split("\nnav:\n")[1], re.M)
    made = {"docs/schemas/README.md"}  # by tools/docs_site.py
    for page in pages:
        if page.startswith(("docs/", "src/formats/")) and named.count(page) != 1:
            yield f"mkdocs.yml names {page} {named.count(page)} times"
    for page in named:
        if page not in made and not (root / page).is_file():
            yield f"mkdocs.yml names {page}, which is not there"


PLANTED_SITE = {
    "has to be in quotes": "a: b: c\nnav:\n  - Home: docs/README.md\n",
    "names docs/README.md 0 times": "a: b\nnav:\n  - Home: README.md\n",
    "names src/formats/stb/README.md 0 times": "a: b\nnav:\n  - Home: docs/README.md\n",
    "names docs/README.md 2 times": "a: b\nnav:\n  - Home: docs/README.md\n  - Jobs: docs/README.md\n",
    "which is not there": "a: b\nnav:\n  - Home: docs/README.md\n  - Jobs: docs/nowhere.md\n",
}
PLANTED = {
    "leads nowhere": "see [that](nowhere.md)\n",
    "no heading": "# One\n\nsee [that](#two)\n",
    "there is no": "see `src/nowhere/README.md`\n",
    "three backticks": "``python\nx\n``\n",
    "no public name": "```python\nx = wb.weigh(1)\n```\n",
    "no public name weigh ": "see `wb.weigh()`\n",
    "no target": "```\nmake everything-good\n```\n",
    "no preset": "`cmake --preset wishes`\n",
    "blocks of kind": "```powershell\nGet-Item\n```\n",
    "has to be": "```\n$ weighbridge formats\nmany\n```\n",
    "no test knows the line": "```\nmake build\nrm -rf something\n```\n",
    "words are more than": "so many " * (WORDS // 2 + 1),
}


# What weighbridge is, in the words that every front page uses.
TAGLINE = "inspect, verify, convert, compare and run model files"
TAGLINES = ("README.md", "CMakeLists.txt", "pyproject.toml", "mkdocs.yml", "docs/Doxyfile", "cli/help.cc", "python/weighbridge/__init__.py",
            "web/page/index.html", "web/page/src/welcome.ts", "web/api/package.json")


def wrong_taglines(texts):
    """The files, of (name, text), that say in other words what weighbridge is."""
    return [f"{name} does not say '{TAGLINE}'" for name, text in texts if TAGLINE not in text.lower()]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    targets = set(re.findall(r"^([a-z][a-z-]*):", (root / "Makefile").read_text(), re.M))
    presets = {preset["name"] for preset in json.loads((root / "CMakePresets.json").read_text())["configurePresets"]}
    public = public_names(root)
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "-z", "*.md"],
                            check=True, capture_output=True).stdout.decode().split("\0")
    pages = [page for page in listed if page and (root / page).is_file()]
    # The changelog names targets of its time.
    found = [wrong for page in pages for wrong in check_page(root, page, (root / page).read_text(),
                                                                             set() if page == "CHANGELOG.md" else targets, presets, public)]
    found += wrong_site(root, (root / "mkdocs.yml").read_text(), pages)
    found += wrong_taglines((name, (root / name).read_text()) for name in TAGLINES)
    for wrong in found:
        print(wrong)
    unreported = [words for words, text in PLANTED.items()
                  if not any(words in wrong for wrong in check_page(root, "docs/README.md", text, targets, presets, public))]
    planted_pages = ["docs/README.md", "src/formats/stb/README.md"]
    unreported += [words for words, text in PLANTED_SITE.items()
                   if not any(words in wrong for wrong in wrong_site(root, text, planted_pages))]
    unreported += [] if wrong_taglines([("README.md", "Opens files")]) else ["a tagline"]
    for words in unreported:
        print(f"pages.py did not report what was planted for '{words}'")
    planted = len(PLANTED) + len(PLANTED_SITE) + 1
    print(f"pages: {len(found)} violations on {len(pages)} pages; {planted - len(unreported)} of {planted} planted ones reported")
    return 1 if found or unreported else 0


if __name__ == "__main__":
    sys.exit(main())
