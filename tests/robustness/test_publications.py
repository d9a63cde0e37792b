# SPDX-License-Identifier: Apache-2.0
# Two processes publish into one folder by every pair of the command's ways. Nobody waits longer than the other's work, nobody is told
# an untruth, and files that belong together are of one run. src/io/publication_test.cc has the same for threads, and all ways of the library.
import itertools
import subprocess
import time

import pytest

from jobs import files_below, strays_below
from robustness import COMMAND, require_strace, write_safetensors

# Each change of a name takes so long that the other run comes in between.
SLOW = ["strace", "-f", "-qq", "-o", "/dev/null", "--inject=renameat:delay_enter=50000", "--inject=renameat2:delay_enter=50000"]
SLACK = 4  # seconds, of a busy machine; less than the ten that a run waits for another one at most

# The words of a run: `source` is the model, `number` tells the two runs apart. Several ways write the same names.
WAYS = {
    "convert": lambda source, there, number: ["convert", source, there / "a.safetensors", "--force"],
    "edit": lambda source, there, number: ["edit", source, "--set", f"run={number}", "-o", there / "a.safetensors", "--force"],
    "sidecar": lambda source, there, number: ["convert", source, there / "pack-0.stb", "--force"],
    "pack": lambda source, there, number: ["khlnary", "pack", source, "-o", there, "--force"],
    "shards": lambda source, there, number: ["convert", source, f"{there}/", "--to", "safetensors", "--max-shard-size", "16", "--force"],
    "tensor": lambda source, there, number: ["extract", source, "t0", "-o", there / "t0.npy", "--force"],
    "tensors": lambda source, there, number: ["extract", source, "--glob", "*", "-o", there, "--force"],
}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    made = []
    for number in (1, 2):
        folder = tmp_path_factory.mktemp(f"source{number}")
        made.append(write_safetensors(folder / "pack.safetensors", {f"t{i}": [number, i] for i in range(3)}))
    return made


@pytest.fixture(scope="module")
def alone(sources, tmp_path_factory):
    """(way, number) -> the files of a run with nobody beside it, and the seconds that it took."""
    require_strace()
    out = {}
    for (way, words), number in itertools.product(WAYS.items(), (1, 2)):
        there = tmp_path_factory.mktemp(way)
        for _ in range(2):  # the second replaces what the first has written
            begin = time.monotonic()
            subprocess.run([*SLOW, COMMAND, *map(str, words(sources[number - 1], there, number))], check=True, capture_output=True)
        out[way, number] = files_below(there), time.monotonic() - begin
    return out


@pytest.mark.parametrize("ways", itertools.combinations_with_replacement(WAYS, 2), ids=" and ".join)
def test_two_processes_publish_into_one_folder(tmp_path, sources, alone, ways):
    there = tmp_path / "there"
    there.mkdir()
    commands = [[COMMAND, *map(str, WAYS[way](source, there, number))] for way, source, number in zip(ways, sources, (1, 2))]
    for words in commands:  # so that each replaces files
        subprocess.run(words, check=True, capture_output=True)
    begin = time.monotonic()
    runs = [subprocess.Popen([*SLOW, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for words in commands]
    said = [run.communicate(timeout=60)[1] for run in runs]
    took = time.monotonic() - begin
    assert [run.returncode for run in runs] == [0, 0], said
    assert took < sum(alone[each][1] for each in zip(ways, (1, 2))) + SLACK, said
    found = files_below(there)
    (first, _), (second, _) = (alone[each] for each in zip(ways, (1, 2)))
    both = first.keys() & second.keys()
    assert any(all(found[name] == files[name] for name in both) for files in (first, second)), f"{sorted(both)} are of two runs"
    assert {name: data for name, data in found.items() if name not in both} == \
        {name: data for name, data in (first | second).items() if name not in both}
    assert strays_below(there) == []
