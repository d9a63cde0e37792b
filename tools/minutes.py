#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where the minutes of builds and tests go. Prints the tables of docs/internals/minutes.md, or writes them into it.

usage: minutes.py [--build] [--trace] [--measure TITLE COMMAND...] [--page]

--build              first builds everything from nothing in a temporary folder, without the compiler cache, and records its processor time
--trace              first builds build/trace by clang with -ftime-trace
--measure TITLE ...  first runs a command and records its processor time
--page               write the tables into docs/internals/minutes.md; one for which nothing is recorded stays as it is

Reads what is in build/: the last --build and --measure (minutes.tsv, ninja.log), or ninja's log of build/release; the traces of build/trace; the
last run of each stage (stages.tsv, by tools/stages.sh)."""
import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import sections

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))
import results  # noqa: E402

BUILD = ROOT / "build"
PAGE = "docs/internals/minutes.md"
MOST = 10  # rows of a list of the most expensive
# The command alone, as `make build`, and then what tests and documentation add.
STEPS = (("the command (`make build`)", "OFF", ["weighbridge"]), ("then all tests and tools", "ON", []))


# ---- measuring ----

def measure(title, *command, **more):
    """Runs a command and records its time."""
    def used():
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime
    before, begin = used(), time.monotonic()
    done = subprocess.run(command, cwd=ROOT, check=False, **more)
    if done.returncode:
        sys.exit(f"{title} failed with status {done.returncode}; nothing is recorded")
    row = (title, f"{time.monotonic() - begin:.1f}", f"{used() - before:.1f}", str(datetime.date.today()), sections.commit())
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "minutes.tsv", "a", encoding="utf-8") as file:
        print(*row, sep="\t", file=file)
    print(f"{title}: {row[1]} s, of all processors {row[2]} s", flush=True)


def build():
    environment = os.environ | {"CCACHE_DISABLE": "1"}
    with tempfile.TemporaryDirectory(prefix="weighbridge-minutes-") as folder:
        for title, tests, targets in STEPS:
            subprocess.run(["cmake", "--preset", "release", "-B", folder, f"-DWEIGHBRIDGE_TESTS={tests}"], cwd=ROOT, check=True,
                           stdout=subprocess.DEVNULL)
            measure(title, "cmake", "--build", folder, "-j", str(os.cpu_count()), *(["--target", *targets] if targets else []), env=environment)
        shutil.copy(pathlib.Path(folder) / ".ninja_log", BUILD / "ninja.log")


def trace():
    folder = BUILD / "trace"
    subprocess.run(["cmake", "--preset", "quick", "-B", folder, "-DCMAKE_CXX_FLAGS=-ftime-trace"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "-j", str(os.cpu_count())], check=True, env=os.environ | {"CCACHE_DISABLE": "1"})


# ---- ninja's log ----
# Files are named without marks of code: the page says what was measured, and a file that goes since then need not be there.

def steps_of(log):
    """(output, seconds) of the last run of each step. A step with several outputs has a line for each."""
    last = {}
    for line in log.splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and not fields[0].startswith("#"):
            last[fields[3]] = (fields[4], int(fields[0]), (int(fields[1]) - int(fields[0])) / 1000)
    steps = {(command, begin): (output, seconds) for output, (command, begin, seconds) in sorted(last.items(), reverse=True)}
    return list(steps.values())


def place_of(output):
    """(room, kind) of an output: kind is source, test or other."""
    target = re.search(r"CMakeFiles/([^/]+)\.dir/", output)
    if not target or not output.endswith(".o"):
        if output.endswith((".gch", ".pch")):
            return "precompiled headers", "source"
        return "linking" if "." not in pathlib.PurePath(output).name or output.endswith((".a", ".so")) else "pages and the rest", "other"
    parts = output.split("/")
    room = "/".join(parts[:2]) if parts[0] == "src" else parts[0] if parts[0] != "CMakeFiles" else "fmt"
    if "cmake_pch" in output or "precompiled_" in output:
        return "precompiled headers", "source"
    return room, "test" if re.search(r"_(test|cases)$", target[1]) or parts[0] in ("tests", "fuzz") else "source"


def name_of(output):
    """The source of an object as the tree names it."""
    return re.sub(r"CMakeFiles/[^/]+\.dir/", "", output).removesuffix(".o")


def rooms_table(steps):
    rooms = collections.defaultdict(lambda: {"source": [0, 0.0], "test": [0, 0.0], "other": [0, 0.0]})
    for output, seconds in steps:
        room, kind = place_of(output)
        for key in (room, "all"):
            rooms[key][kind][0] += 1
            rooms[key][kind][1] += seconds
    def cells(room):
        found = rooms[room]
        in_all = sum(seconds for _, seconds in found.values())
        return [room, *(figure for kind in ("source", "test") for figure in
                        ((found[kind][0], whole(found[kind][1])) if found[kind][0] else ("", ""))), whole(in_all)]
    order = sorted((room for room in rooms if room != "all"), key=lambda room: -sum(seconds for _, seconds in rooms[room].values()))
    return sections.table(["room", "sources", "s", "tests and cases", "s", "all, s"], [cells(room) for room in [*order, "all"]], range(1, 6))


def files_table(steps):
    compiled = sorted(((seconds, name_of(output)) for output, seconds in steps if output.endswith(".o")), reverse=True)
    return sections.table(["file", "s"], [[name, f"{seconds:.1f}"] for seconds, name in compiled[:MOST]], [1])


# ---- clang's traces ----

def exclusive(events):
    """detail -> [times, microseconds without those of the events inside], for events of one thread that nest."""
    sums = collections.defaultdict(lambda: [0, 0])
    open_events = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while open_events and open_events[-1]["ts"] + open_events[-1]["dur"] <= event["ts"]:
            open_events.pop()
        detail = event["args"]["detail"]
        sums[detail][0] += 1
        sums[detail][1] += event["dur"]
        if open_events:
            sums[open_events[-1]["args"]["detail"]][1] -= event["dur"]
        open_events.append(event)
    return sums


def template_of(detail):
    """The name of a template without its arguments."""
    name, depth = [], 0
    for at, letter in enumerate(detail):
        operator = "".join(name).endswith(("operator", "operator<", "operator-", "operator<=", "operator>"))
        if letter == "<" and not operator:
            depth += 1
        elif letter == ">" and depth and detail[at - 1] != "-":
            depth -= 1
        elif depth == 0:
            name.append(letter)
    return "".join(name)


def shown_path(path):
    """A header as a source would include it."""
    path = os.path.normpath(path)
    for place in (f"{ROOT}/include/", f"{ROOT}/"):
        if path.startswith(place):
            return path.removeprefix(place)
    return re.sub(r"^(/usr)?/(local/)?(include|lib/gcc|lib/llvm-\d+)/(c\+\+/\d+/|.*/include/)?", "", path)


def traces(folder):
    """(headers, templates) of all traces: name -> [traces with it, microseconds]."""
    headers, templates = (collections.defaultdict(lambda: [0, 0]) for _ in range(2))
    count = 0
    for path in sorted(folder.rglob("*.cc.json")):
        events = [event for event in json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
                  if event.get("ph") == "X" and "detail" in event.get("args", {})]
        count += 1
        for into, names, key in ((headers, ("Source",), shown_path), (templates, ("InstantiateClass", "InstantiateFunction"), template_of)):
            here = collections.defaultdict(int)
            for detail, (_, spent) in exclusive(event for event in events if event["name"] in names).items():
                here[key(detail)] += spent
            for name, spent in here.items():
                into[name][0] += 1
                into[name][1] += spent
    return headers, templates, count


def most_table(found, what, code):
    rows = sorted(found.items(), key=lambda item: (-item[1][1], item[0]))[:MOST]
    return sections.table([what, "sources", "s"], [[f"`{name}`" if code else name, count, f"{spent / 1e6:.1f}"] for name, (count, spent) in rows], [1, 2])


# ---- stages ----

def goal_words(goal):
    return f"`make check-long PART={goal.removeprefix('part-')}`" if goal.startswith("part-") else f"`make {goal}`"


def lines_of(path, width):
    """Records of a file of the tools, without broken lines."""
    if not path.is_file():
        return []
    return [fields for fields in (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()) if len(fields) == width]


def stages_table(records):
    last = {}
    for goal, title, *rest in records:
        last.pop((goal, title), None)  # the order of the last run
        last[goal, title] = rest
    rows, before = [], None
    for goal in dict.fromkeys(goal for goal, _ in last):
        for (of, title), (seconds, processors, date, commit, status) in last.items():
            if of == goal:
                rows.append(["" if goal == before else goal_words(goal), title, whole(float(seconds)), whole(float(processors)),
                             f"{date}, {commit}" + ("" if status == "0" else f", **failed ({status})**")])
                before = goal
    return sections.table(["command", "stage", "s", "of all processors, s", "when"], rows, [2, 3])


def builds_table(records):
    last = {}
    for title, *rest in records:
        last[title] = rest
    return sections.table(["what", "s", "of all processors, s", "when"],
                          [[title, whole(float(seconds)), whole(float(processors)), f"{date}, {commit}"]
                           for title, (seconds, processors, date, commit) in last.items()], [1, 2])


# ---- the page ----

def whole(seconds):
    return f"{seconds:,.0f}" if seconds >= 10 else f"{seconds:.1f}"


def machine():
    facts = results.machine()
    versions = []
    for compiler in ("c++", "clang++-16"):
        if shutil.which(compiler):
            versions.append(subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout.splitlines()[0])
    return (f"{re.sub(r'[(](R|TM)[)]', '', facts['cpu'])}, {facts['cores']} cores, {facts['memory_gib']} GiB; {'; '.join(versions)}; "
            f"{sections.measured()}.\n")


def tables():
    """Section -> text, or None if nothing is recorded."""
    made = dict.fromkeys(("machine", "builds", "rooms", "files", "headers", "templates", "stages"))
    made["machine"] = machine()
    if records := lines_of(BUILD / "minutes.tsv", 5):
        made["builds"] = builds_table(records)
    log = next((path for path in (BUILD / "ninja.log", BUILD / "release/.ninja_log") if path.is_file()), None)
    if log:
        steps = steps_of(log.read_text(encoding="utf-8"))
        made["rooms"], made["files"] = rooms_table(steps), files_table(steps)
    headers, templates, count = traces(BUILD / "trace")
    if count:
        made["headers"], made["templates"] = most_table(headers, f"header, in {count} sources", False), most_table(templates, "template", True)
    if records := lines_of(BUILD / "stages.tsv", 7):
        made["stages"] = stages_table(records)
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--measure", nargs=argparse.REMAINDER, metavar=("TITLE", "COMMAND"))
    o = parser.parse_args()
    if o.measure is not None:
        if len(o.measure) < 2:
            parser.error("--measure needs a title and a command, after the other options")
        measure(*o.measure)
    if o.build:
        build()
    if o.trace:
        trace()
    made = tables()
    for name, text in made.items():
        print(f"== {name}\n{text or 'nothing is recorded'}")
    if o.page:
        sections.write(PAGE, "tools/minutes.py", made)


if __name__ == "__main__":
    main()
