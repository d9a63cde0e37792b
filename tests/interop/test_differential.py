# SPDX-License-Identifier: Apache-2.0
"""Changed files, read by weighbridge and by the published packages: a file that weighbridge accepts (`verify` 0 or 3) has the tensors, the
values and the named globals that the package reads. Where the package refuses what weighbridge accepts, that is counted, not a failure.

Seconds in `make check`, with fixed seeds. DIFFERENTIAL_SECONDS=600 (`make interop PEER=differential`) tries new files for so long in each family;
DIFFERENTIAL_SEED=N repeats a run; files that fail are kept in DIFFERENTIAL_KEEP (build/differential).

What reads pickles runs in a process without network, programs and files to write, whose find_class records names and gives it nothing that does
anything: tests/interop/differential."""
import collections
import json
import os
import pathlib
import pickle
import random
import subprocess
import sys
import time

import pytest

from interop_tools import COMMAND, ROOT, np

DIFFERENTIAL = pathlib.Path(__file__).resolve().parent / "differential"
sys.path.insert(0, str(DIFFERENTIAL))
for package in ("numpy", "onnx", "h5py", "gguf", "safetensors"):
    pytest.importorskip(package, reason=f"{package} is missing: tools/python-environments.sh makes the environment")
import compare  # noqa: E402
import families  # noqa: E402

READ_DUMP = pathlib.Path(os.environ.get("WEIGHBRIDGE_READ_DUMP") or pathlib.Path(COMMAND).parent / "tests/programs/read_dump")
if not READ_DUMP.exists():
    pytest.skip(f"{READ_DUMP} is missing: builds with tests make it", allow_module_level=True)

SECONDS = float(os.environ.get("DIFFERENTIAL_SECONDS") or 0)
SEED = os.environ.get("DIFFERENTIAL_SEED") or (str(random.SystemRandom().randrange(10**6)) if SECONDS else "check")
KEEP = pathlib.Path(os.environ.get("DIFFERENTIAL_KEEP") or ROOT / "build/differential")
TORCH = pathlib.Path(os.environ.get("TORCH_PYTHON") or ROOT / "build/venv-torch/bin/python")
FILES = 600  # of each family, without DIFFERENTIAL_SECONDS
BATCH = 120


@pytest.mark.parametrize("family", families.FAMILIES)
def test_readers_of_changed_files_agree(family):
    python = TORCH if family.startswith("torch") and TORCH.exists() else sys.executable
    try:
        run = compare.Run(family, SEED, READ_DUMP, python, KEEP).start()
    except compare.Missing as error:
        pytest.skip(f"{error}: make interop PEER=differential makes an environment with it")
    until, index = time.monotonic() + SECONDS, 0
    try:
        while index < FILES or time.monotonic() < until:
            run.batch(range(index, index + BATCH))
            index += BATCH
    finally:
        run.close()
    seconds = time.monotonic() - until + SECONDS
    build = json.loads(subprocess.run([COMMAND, "--version", "--json"], check=True, capture_output=True, text=True).stdout)
    print(f"\n{family}, commit {build['commit'][:8]}, seed {SEED}: {run.tried:,} files in {seconds:.0f} s ({run.tried / seconds:.0f} each second), {run.accepted:,} accepted")
    for (reader, said), count in run.refused.most_common(20):
        print(f"  {reader} refuses {count} of them: {said}")
    for (reader, said), count in run.worse.items():
        print(f"  {reader} ends or hangs on {count} of them: {said}")
    kinds = collections.Counter((found.reader, found.kind) for found in run.found)
    assert not run.found, f"seed {SEED}: {dict(kinds)}, kept in {KEEP}: " + "; ".join(f"{each.index}: {each.reader} {each.kind}: {each.said!r}" for each in run.found[:5])
    assert run.accepted > run.tried // 50  # or nothing was compared


def test_a_planted_difference_is_found(tmp_path):
    path = tmp_path / "w.pkl"
    path.write_bytes(pickle.dumps({"w": np.arange(3), "epoch": 7}, 4))
    weighbridge = compare.Weighbridge(READ_DUMP, tmp_path)
    reader = compare.Lines([sys.executable, "-B", str(DIFFERENTIAL / "readers.py"), "pickle-c"], 60, tmp_path, True)
    try:
        ours, theirs = weighbridge.files([path])[0], reader.ask([path])[0]
        assert list(compare.differences("pickle-c", ours, theirs, weighbridge.judges)) == []
        dtype, shape, digest = theirs["tensors"]["w"]
        for kind, change in [("global", {"globals": [["os", "system"]]}), ("global", {"globals": [["mine", "Thing"]], "refuses": "differential: mine.Thing"}),
                             ("tensor", {"tensors": {"w": [dtype, shape, digest[::-1]]}}), ("tensor", {"tensors": {"w": [dtype, [3, 1], digest]}}),
                             ("tensor", {"tensors": {"w": ["i32", shape, digest]}}), ("tensor", {"tensors": {"w": [None, shape, None]}}), ("more", {"tensors": {}}),
                             ("missing", {"tensors": {**theirs["tensors"], "b": [dtype, shape, digest]}}), ("value", {"values": {"epoch": 8}}),
                             ("value", {"values": {"epoch": True}}), ("tensor", {"doubles": ["w"]}), ("refused", {"refuses": "ValueError: no"})]:
            found = list(compare.differences("pickle-c", ours, {**theirs, **json.loads(json.dumps(change))}, weighbridge.judges))
            assert [each[0] for each in found] == [kind], (change, found)
    finally:
        weighbridge.lines.stop()
        reader.stop()


def test_nothing_runs_in_the_process_that_unpickles(tmp_path):
    script = """
import os, sys
sys.path.insert(0, sys.argv[1])
from confine import confine
held = confine(1 << 30)
for what in (lambda: os.system("touch " + sys.argv[2] + "/ran") and 1 / 0, lambda: open(sys.argv[2] + "/written", "w"), lambda: os.mkdir(sys.argv[2] + "/made"),
             lambda: os.execv("/bin/true", ["true"]), lambda: __import__("socket").socket()):
    try:
        what()
        print("did not fail")
    except (OSError, ZeroDivisionError):
        pass
print(len(held))
"""
    done = subprocess.run([sys.executable, "-c", script, DIFFERENTIAL, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if done.stdout != "3\n":
        pytest.skip(f"no landlock or seccomp here: {done.stdout!r}")
    assert not any(tmp_path.iterdir())
