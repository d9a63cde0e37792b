# SPDX-License-Identifier: Apache-2.0
"""Tests tools/minutes.py, tools/sections.py and the record of tools/stages.sh, with a small log of ninja, a trace of clang and stages."""
import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOG = """# ninja log v5
0\t4000\t1\tsrc/core/CMakeFiles/wb_core.dir/old.cc.o\ta
5\t2005\t1\tsrc/core/CMakeFiles/wb_core.dir/view.cc.o\tb
5\t3005\t1\tsrc/core/CMakeFiles/core_test.dir/view_test.cc.o\tc
5\t905\t1\tsrc/formats/gguf/CMakeFiles/wb_gguf_cases.dir/cases.cc.o\td
5\t1005\t1\tcli/CMakeFiles/wb_command.dir/main.cc.o\te
5\t505\t1\tfuzz/CMakeFiles/replay_open.dir/open.cc.o\tf
5\t6005\t1\tsrc/base/CMakeFiles/wb_precompiled_sources.dir/cmake_pch.hxx.gch\tg
5\t305\t1\tweighbridge\th
5\t105\t1\tsrc/core/libwb_core.a\ti
5\t205\t1\tpages/completion.bash\tj
5\t205\t1\tpages/completion.zsh\tj
9\t1009\t1\tsrc/core/CMakeFiles/wb_core.dir/old.cc.o\ta
broken\tline
"""


@pytest.fixture
def minutes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setattr(sys, "path", list(sys.path))  # the tool adds bench/
    spec = importlib.util.spec_from_file_location("minutes", ROOT / "tools/minutes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_step_counts_once_and_as_it_last_ran(minutes):
    """ninja keeps the lines of earlier runs, and has a line for each output of a step."""
    steps = dict(minutes.steps_of(LOG))
    assert steps["src/core/CMakeFiles/wb_core.dir/old.cc.o"] == 1.0
    assert sum(output.startswith("pages/") for output in steps) == 1
    assert len(steps) == 10


def test_steps_belong_to_rooms(minutes):
    rows = {row.split(" | ")[0].strip("| "): [cell.strip(" |") for cell in row.split(" | ")[1:]]
            for row in minutes.rooms_table(minutes.steps_of(LOG)).splitlines()}
    assert rows["src/core"] == ["2", "3.0", "1", "3.0", "6.0"]
    assert rows["src/formats"] == ["", "", "1", "0.9", "0.9"]
    assert rows["cli"] == ["1", "1.0", "", "", "1.0"]
    assert rows["fuzz"] == ["", "", "1", "0.5", "0.5"]
    assert rows["precompiled headers"][-1] == "6.0"
    assert rows["linking"][-1] == "0.4"
    assert rows["all"] == ["4", "10", "3", "4.4", "15"]
    assert list(rows)[-1] == "all"


def test_the_most_expensive_files_come_first(minutes):
    table = minutes.files_table(minutes.steps_of(LOG)).splitlines()
    assert table[2:4] == ["| src/core/view_test.cc | 3.0 |", "| src/core/view.cc | 2.0 |"]


def event(name, detail, ts, dur):
    return {"ph": "X", "name": name, "ts": ts, "dur": dur, "args": {"detail": detail}}


def test_time_of_nested_headers_and_templates_counts_once(minutes, tmp_path):
    header = str(ROOT / "include/weighbridge/model.h")
    for name, events in (("a", [event("Source", header, 0, 9000), event("Source", "/usr/include/c++/12/vector", 1000, 6000),
                                event("InstantiateClass", "std::vector<std::pair<int, long>>", 9500, 3000),
                                event("InstantiateFunction", "std::vector<int>::operator<=><char>", 9600, 1000),
                                event("InstantiateClass", "std::vector<int>", 20000, 500), {"ph": "X", "name": "Total Source", "ts": 0, "dur": 1}]),
                         ("b", [event("Source", "/usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../../../include/c++/12/vector", 0, 2000)])):
        (tmp_path / f"{name}.cc.json").write_text(json.dumps({"traceEvents": events}))
    headers, templates, count = minutes.traces(tmp_path)
    assert count == 2
    assert dict(headers) == {"weighbridge/model.h": [1, 3000], "vector": [2, 8000]}
    assert templates["std::vector"] == [1, 2500]
    assert templates["std::vector::operator<=>"] == [1, 1000]
    assert minutes.most_table(headers, "header", False).splitlines()[2] == "| vector | 2 | 0.0 |"


def test_the_last_run_of_each_stage_is_shown(minutes):
    records = [["test", "unit tests", "90.0", "160.0", "2026-11-01", "abc", "0"], ["part-fuzz", "fuzz", "9.0", "8.0", "2026-11-01", "abc", "3"],
               ["test", "unit tests", "70.0", "130.0", "2026-11-02", "def", "0"]]
    assert minutes.stages_table(records).splitlines()[2:] == [
        "| `make check-long PART=fuzz` | fuzz | 9.0 | 8.0 | 2026-11-01, abc, **failed (3)** |",
        "| `make test` | unit tests | 70 | 130 | 2026-11-02, def |"]


def test_stages_are_recorded_with_their_processor_time_and_status(minutes, tmp_path):
    work = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'"
    done = subprocess.run([ROOT / "tools/stages.sh", "test", "busy", work, "idle", "true", "wrong", "exit 3", "never", "true"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 3
    assert "== Stages of test\n" in done.stdout and "wrong: FAILED" in done.stdout
    busy, idle, wrong = minutes.lines_of(tmp_path / "build/stages.tsv", 7)
    assert [busy[1], idle[1], wrong[1]] == ["busy", "idle", "wrong"]
    assert float(busy[3]) >= 0.3 and float(idle[3]) < 0.3
    assert [busy[6], idle[6], wrong[6]] == ["0", "0", "3"]


def test_what_a_measured_command_took_is_recorded(minutes, tmp_path, monkeypatch):
    monkeypatch.setattr(minutes, "BUILD", tmp_path)
    monkeypatch.setattr(minutes.sections, "commit", lambda: "abc")
    minutes.measure("busy", sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass")
    (row,) = minutes.lines_of(tmp_path / "minutes.tsv", 5)
    assert row[0] == "busy" and float(row[2]) >= 0.3 and row[4] == "abc"
    with pytest.raises(SystemExit, match="failed with status 3"):
        minutes.measure("wrong", sys.executable, "-c", "raise SystemExit(3)")
    assert len(minutes.lines_of(tmp_path / "minutes.tsv", 5)) == 1


def test_a_page_keeps_what_is_written_by_hand_and_what_was_not_measured(minutes):
    begin = "<!-- generated by tools/minutes.py: {} -->\n"
    page = f"by hand\n\n{begin.format('rooms')}old\n<!-- end -->\n\n{begin.format('stages')}kept\n<!-- end -->\nend\n"
    assert minutes.sections.replace(page, "tools/minutes.py", {"rooms": "new \\1\n", "stages": None}) == page.replace("old\n", "new \\1\n")
    with pytest.raises(SystemExit, match="the page has the sections rooms, stages"):
        minutes.sections.replace(page, "tools/minutes.py", {"rooms": "new"})


def test_the_page_has_each_section_of_the_tool(minutes, monkeypatch):
    monkeypatch.setattr(minutes, "machine", lambda: "")
    text = (ROOT / minutes.PAGE).read_text(encoding="utf-8")
    assert minutes.sections.replace(text, "tools/minutes.py", dict.fromkeys(minutes.tables())) == text
