#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every number with a unit of time or size that README.md, SECURITY.md and the public headers state is a row of promises.tsv,
and that the test which the row names exists.

A promise without a test goes stale unseen. Numbers in transcripts (```console), which
tests/cli/test_pages.py compares, and in a comment "# <...>" are shown output. Checks
itself in the same run: each rule must report what is planted for it. Usage: promises.py [ROOT]"""
import collections
import csv
import pathlib
import re
import sys

TABLE = "tests/repository/promises.tsv"
COLUMNS = ["name", "value", "unit", "where", "test"]
PAGES = ["README.md", "SECURITY.md"]
UNITS = {"ns": "ns", "us": "us", "µs": "us", "μs": "us", "ms": "ms", "s": "s", "second": "s", "minute": "min", "min": "min",
         "hour": "h", "day": "d", "byte": "bytes", "%": "%", "percent": "%", "times": "times",
         **{f"{prefix}{kind}": f"{prefix}{kind}" for prefix in "KMGTP" for kind in ("B", "iB")}, "kB": "kB"}
WORDS = {word: str(value) for value, word in enumerate("one two three four five six seven eight nine ten eleven twelve".split(), 1)}
WORDS |= {"a": "1", "an": "1", "half a": "0.5", "half an": "0.5"}
# Not in "UTF-8 bytes", "q8_0", "0.1.2" or "wb::A4".
FIGURE = re.compile(r"(?<![\w.,:+-])(\d[\d,]*(?:\.\d+)?)[\s-]*(%|(?:" + "|".join(sorted(UNITS, key=len, reverse=True)).replace("%|", "") +
                    r")s?\b)(?!-)", re.S)
# In words only with times: "one byte" is a thing, and so is "a second" where no word of measure goes before it.
SPELLED = re.compile(r"(?:\b(?:than|within|most|least|under|over|after|up\s+to)\s+(?=an?\s)|\b(?!an?\s))\b(" +
                     "|".join(WORDS).replace(" ", r"\s+") + r")[\s-]+(second|minute|hour|day)s?\b", re.I)
TRANSCRIPT = re.compile(r"^```console\n.*?^```$|# <[^\n]*>$", re.M | re.S)
COMMENT = re.compile(r"//.*?$|/\*.*?\*/", re.M | re.S)
MARKS = re.compile(r"^\s*\*(?!/)|/\*+<?|\*+/|//[/!]?<?", re.M)  # of comments


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def prose(path, text):
    """The text with everything that is no statement blanked out, line for line."""
    if path.suffix == ".md":
        return TRANSCRIPT.sub(blank, text)
    out, end = "", 0
    for match in COMMENT.finditer(text):
        out += re.sub(r"[^\n]", " ", text[end:match.start()]) + MARKS.sub(blank, match[0])
        end = match.end()
    return out


def stated(path, text):
    """Each number with a unit as (line, value, unit)."""
    text = prose(path, text)
    for match in FIGURE.finditer(text):
        unit = match[2] if match[2] in UNITS else match[2].removesuffix("s")
        yield text.count("\n", 0, match.start()) + 1, match[1].replace(",", ""), UNITS[unit]
    for match in SPELLED.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, WORDS[" ".join(match[1].lower().split())], UNITS[match[2].lower()]


def has_test(root, named):
    """Whether "file::name" is there: a TEST of Suite.Name, or a test function of Python."""
    file, _, name = named.partition("::")
    path = root / file
    if not name or not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return re.search(rf"^\s*def {re.escape(name)}\(", text, re.M) is not None
    suite, _, case = name.partition(".")
    return re.search(rf"^(?:TYPED_)?TEST(?:_[FP])?\(\s*{re.escape(suite)},\s*{re.escape(case)}\)", text, re.M) is not None


def rows_of(text):
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def check(root, texts, table):
    """What is wrong, as sentences; `texts` are the files by path, `table` is the text of promises.tsv."""
    rows = rows_of(table)
    if rows and list(rows[0]) != COLUMNS:
        yield f"{TABLE}: the columns are {', '.join(rows[0])}, not {', '.join(COLUMNS)}"
        return
    for name, times in collections.Counter(row["name"] for row in rows).items():
        if times > 1:
            yield f"{TABLE}: {times} rows have the name '{name}'"
    listed = {(where, row["value"], row["unit"]): row for row in rows for where in row["where"].split()}
    said = set()
    for path, text in texts.items():
        for line, value, unit in stated(path, text):
            said.add((path.as_posix(), value, unit))
            if (path.as_posix(), value, unit) not in listed:
                yield f"{path}:{line}: {value} {unit} is promised, and {TABLE} has no row for it"
    for (where, value, unit), row in listed.items():
        if (where, value, unit) not in said:
            yield f"{TABLE}: {row['name']}: {where} does not say {value} {unit}"
    for row in rows:
        for test in row["test"].split() or [""]:
            if not has_test(root, test):
                yield f"{TABLE}: {row['name']}: there is no test '{test}'"


HEADER = "\t".join(COLUMNS) + "\n"
SELF = "tests/repository/promises.py::has_test"
# What must be reported, by a word of the sentence: the file, its text, the table.
PLANTED = {
    "1 s is promised": ("SECURITY.md", "It takes less than a second, in a second thread.\n", HEADER),
    "10 s is promised": ("include/weighbridge/a.h", "/// waits for ten seconds, in a second thread\n", HEADER),
    "64 MiB is promised": ("README.md", "```console\nat 5 ms\n```\nIt takes 64 MiB, less than UTF-8 bytes.\n", HEADER),
    "4096 bytes is promised": ("include/weighbridge/a.h", "int a = 3;  ///< of at most 4,096\n/// bytes\n", HEADER),
    "50 % is promised": ("README.md", "50% of 0.1.2\n", HEADER),
    "77 MiB is promised": ("include/weighbridge/c.h", "int a; /** Takes at most\n * 77 MiB. */\nint b;\n", HEADER),
    "12 s is promised": ("include/weighbridge/c.h", "/** Waits for twelve\n * seconds. */\n", HEADER),
    "1 min is promised": ("SECURITY.md", "It takes less than a\nminute.\n", HEADER),
    "10 min is promised": ("SECURITY.md", "It takes ten\nminutes.\n", HEADER),
    "99 MiB is promised": ("SECURITY.md", "It reads a 99-MiB file.\n", HEADER),
    "5 us is promised": ("SECURITY.md", "It takes 5 µs.\n", HEADER),
    "0.5 h is promised": ("SECURITY.md", "It takes half an hour.\n", HEADER),
    "does not say 4 MiB": ("README.md", "Nothing.\n", HEADER + f"a\t4\tMiB\tREADME.md\t{SELF}\n"),
    "there is no test 'tests/repository/promises.py::none'": (
        "README.md", "In 4 MiB.\n", HEADER + "a\t4\tMiB\tREADME.md\ttests/repository/promises.py::none\n"),
    "there is no test ''": ("README.md", "In 4 MiB.\n", HEADER + "a\t4\tMiB\tREADME.md\t\n"),
    "rows have the name": ("README.md", "In 4 MiB.\n", HEADER + 2 * f"a\t4\tMiB\tREADME.md\t{SELF}\n"),
}
# What is no promise.
SILENT = ("A second thread reads UTF-8 bytes of q4_0 in a 64-bit build of 0.1.2; one byte a day.\n"
          "print(m)  # <Model of 5 MiB>\n```console\n$ a\n5 ms, 64 MiB\n```\n")


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    paths = [*map(pathlib.Path, PAGES), *sorted(path.relative_to(root) for path in root.glob("include/weighbridge/*.h"))]
    found = list(check(root, {path: (root / path).read_text(encoding="utf-8") for path in paths},
                       (root / TABLE).read_text(encoding="utf-8")))
    for finding in found:
        print(finding)
    unreported = [words for words, (path, text, table) in PLANTED.items()
                  if not any(words in wrong for wrong in check(root, {pathlib.Path(path): text}, table))]
    unreported += [f"nothing, but reported: {wrong}" for wrong in check(root, {pathlib.Path("README.md"): SILENT}, HEADER)]
    for words in unreported:
        print(f"promises.py did not report what was planted for '{words}'")
    print(f"promises: {len(found)} violations; {len(PLANTED) - len(unreported)} of {len(PLANTED)} planted ones reported")
    return 1 if found or unreported else 0


if __name__ == "__main__":
    sys.exit(main())
