#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation as a site: build/site, which works from file:// without a network. Called by `make
docs-site`.

The pages are written for readers of the repository. This copies them to build/docs-site, in their folders, with what MkDocs needs:
- lists as Python-Markdown reads them: an empty line before each, and four columns for what belongs to an item;
- links to headers lead to the C++ reference if `make site` has made it; links to other files of the sources become plain text.
Then it runs MkDocs, which fails on a link or an anchor that leads nowhere, and checks in the result that every file which a page loads is
part of the site. Usage: docs_site.py MKDOCS, the program.
"""
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES, SITE, REFERENCE = ROOT / "build/docs-site", ROOT / "build/site", ROOT / "build/reference"
COPIED = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "src/**/README.md", "bench/NOTES.md", "web/README.md", "web/api/README.md", "corpus/README.md"]
FILES = ["docs/charts/*/*.svg", "docs/images/*", "docs/schemas/*.json", "LICENSE"]
LINK = re.compile(r"(`+[^`]*`+)|(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
ITEM = re.compile(r"([-*]|\d+\.) ")


def lists(text):
    """The lists of CommonMark as those of Python-Markdown."""
    made, inside, fence, before, paragraphs = [], False, False, "", False
    for line in text.split("\n"):
        fence_here = re.match(r" *```", line)
        if fence and not inside:
            fence = not fence_here
            made.append(line)
            continue
        if ITEM.match(line):
            if before.strip() and (not inside or paragraphs):
                made.append("")
            inside, paragraphs = True, False
        elif inside and not line.strip():
            paragraphs = True  # of the item, unless it ends here
        elif inside and line.strip() and not line.startswith(" "):
            # A line right after an item continues it; after an empty line the list is over.
            inside = before.strip() != "" and not fence_here and not line.startswith(("#", "|"))
        if inside and line.startswith(" "):
            if re.match(r"  ? ?([-*]|\d+\.) ", line) and before.strip() and not re.match(r" +([-*]|\d+\.) ", before):
                made.append("")
            depth = len(line) - len(line.lstrip(" "))
            line = " " * (4 if depth < 4 else depth * 2) + line.lstrip(" ")
        if fence_here:
            fence = not fence
        made.append(line)
        before = line
    return "\n".join(made)


def header_page(path):
    """The page of a header in Doxygen's reference."""
    name = pathlib.PurePath(path).name.replace("_", "__").replace(".", "_8")
    return f"reference/{name}.html" if (REFERENCE / f"{name}.html").is_file() else None


def relink(page, text, staged):
    """Links as they have to be on the site; `page` and `staged` are paths below the root."""
    def to(target):
        path, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target) or not path:
            return target
        there = os.path.normpath(page.parent / path)
        if there in staged:
            return target
        found = next((f"{there}/{name}" for name in ("README.md", "index.md") if f"{there}/{name}" in staged), None) or header_page(there)
        return found and os.path.relpath(found, page.parent) + (f"#{anchor}" if anchor else "")

    def replaced(match):
        code, image, words, target = match.groups()
        if code:
            return code
        new = to(target)
        return f"{image}[{words}]({new})" if new else words

    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.M | re.S)
    return "".join(part if i % 2 else LINK.sub(replaced, part) for i, part in enumerate(parts))


def schemas():
    """A page for docs/schemas, which is a folder in the repository."""
    rows = []
    for path in sorted((ROOT / "docs/schemas").glob("*.json")):
        schema = json.loads(path.read_text())
        about = schema.get("description") or schema.get("title") or ""
        rows.append(f"| [{path.name}]({path.name}) | {html.escape(about)} |")
    return "\n".join(["# What `--json` prints", "", "JSON Schema of what each verb prints.", "", "| schema | of |", "| --- | --- |", *rows, ""])


def stage():
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = sorted({path.relative_to(ROOT) for pattern in COPIED for path in ROOT.glob(pattern)})
    files = sorted({path.relative_to(ROOT) for pattern in FILES for path in ROOT.glob(pattern)})
    staged = {path.as_posix() for path in pages + files} | {"docs/schemas/README.md"}
    for page in pages:
        (PAGES / page).parent.mkdir(parents=True, exist_ok=True)
        (PAGES / page).write_text(lists(relink(page, (ROOT / page).read_text(), staged)))
    for path in files:
        (PAGES / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, PAGES / path)
    (PAGES / "docs/schemas/README.md").write_text(schemas())
    assets = PAGES / "assets-of-the-site"
    shutil.copytree(ROOT / "docs/site", assets)
    reference = (REFERENCE / "index.html").is_file()
    if reference:
        shutil.copytree(REFERENCE, PAGES / "reference")
    else:
        (PAGES / "reference").mkdir()
        (PAGES / "reference/index.html").write_text("<!doctype html><title>C++ reference</title><p>Run <code>make site</code>, then "
                                                    "<code>make site</code>: Doxygen's pages are copied here.</p>\n")
    return reference


def loaded(page):
    """What a page of the site loads or links to."""
    text = page.read_text(encoding="utf-8", errors="replace")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    for tag, attributes in re.findall(r"<(script|link|img|iframe|a|source)\b([^>]*)>", text):
        for target in re.findall(r'\b(?:href|src)="([^"]*)"', attributes):
            yield tag, attributes, html.unescape(target)


def wrong_in_site():
    for page in sorted(SITE.rglob("*.html")):
        if "reference" in page.relative_to(SITE).parts[:1]:
            continue  # Doxygen's own
        for tag, attributes, target in loaded(page):
            if re.match(r"(https?:)?//", target):
                if tag != "a" and 'rel="canonical"' not in attributes:
                    yield f"{page.relative_to(SITE)} loads {target}"
            elif not re.match(r"[a-z]+:|#|$", target):
                path = target.partition("#")[0].partition("?")[0]
                if page.name != "404.html" and not (page.parent / path).exists():
                    yield f"{page.relative_to(SITE)} leads to {target}, which is not there"
    for sheet in SITE.rglob("*.css"):
        if re.search(r"url\([\"']?(https?:)?//", sheet.read_text(errors="replace")):
            yield f"{sheet.relative_to(SITE)} loads from a network"


def main():
    reference = stage()
    # Not --quiet, with which MkDocs does not count warnings, so that --strict lets them pass. The variable turns off a notice of the theme.
    done = subprocess.run([sys.argv[1], "build", "--strict", "--config-file", ROOT / "mkdocs.yml", "--site-dir", SITE], cwd=ROOT,
                          env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print("\n".join(line for line in done.stdout.splitlines() if not line.startswith("INFO")))
        return done.returncode
    wrong = list(wrong_in_site())
    for each in wrong:
        print(each)
    if wrong:
        return 1
    print(f"build/site/index.html: {sum(1 for _ in SITE.rglob('*.html'))} pages"
          f"{'' if reference else ', without the C++ reference, which make site makes'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
