#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times common jobs on 1 GiB and on 100,000 tensors, in turns with the peers in one run.

usage: processes.py FOLDER [--ours COMMAND] [--roofs library_bench] [--peers FOLDER] [--python PYTHON] [-n TURNS] [--only WORD] [--json FILE]

FOLDER keeps the inputs (made when missing, about 7 GB). Peers are optional: `zt` (ztensor-cli) and `amn` (anamnesis, feature cli)
below --peers or in PATH, `safetensors` in --python; a missing peer is left out. Every result is checked before the clock starts. Warm
page cache. Rates are also given as a fraction of the machine's roof, measured in the same run."""
import hashlib
import json
import os
import struct
import subprocess
import sys

from results import Results
from turns import GIB, Peers, Turns, add_roofs, copy_and_sync, output, parser_of, run, write_safetensors

WHAT = {"k": "1 GiB in 1,000 tensors", "one": "1 GiB in one tensor", "kk": "100,000 tensors"}


def inputs(folder):
    os.makedirs(folder, exist_ok=True)
    specs = {
        "one": [("w", "F32", [16384, 16384], GIB)],
        "k": [(f"model.layers.{i // 10}.mlp.{i % 10}.weight", "BF16", [512, 1024], 1 << 20) for i in range(1000)],
        "kk": [(f"model.layers.{i // 100}.experts.{i % 100}.weight", "F32", [8, 8], 256) for i in range(100000)],
    }
    for name, tensors in specs.items():
        write_safetensors(os.path.join(folder, name + ".safetensors"), tensors)


def check_answers(o):
    """Makes the inputs, and checks every result that is timed later."""
    inputs(o.folder)
    st = lambda name: os.path.join(o.folder, name)
    for name, count in (("one", 1), ("k", 1000), ("kk", 100000)):
        source, target, back = st(name + ".safetensors"), st(name + ".check.zt"), st(name + ".check.safetensors")
        listed = json.loads(output([o.ours, "inspect", "--json", source]).stdout)["files"][0]
        assert len(listed["tensors"]) == count, name
        for command in ([o.ours, "convert", source, target, "--force", "--quiet"], [o.ours, "verify", "--quiet", target],
                        [o.ours, "convert", target, back, "--force", "--quiet"]):
            assert run(command)[2] == 0, command
        digests = output([o.ours, "hash", source, target, back]).stdout.split()[::2]
        assert len(set(digests)) == 1, (name, digests)
        if name != "kk":
            # The generator orders its header differently from the reference writer, so this compares payloads, not files.
            header = struct.unpack("<Q", open(source, "rb").read(8))[0]
            assert listed["tensors"][0]["parts"][0]["offset"] == 8 + header
        print(json.dumps({"checked": name, "zt_bytes": os.path.getsize(target)}), flush=True)
        os.unlink(back)
        if name == "kk":
            assert os.path.getsize(target) <= 38_000_000, os.path.getsize(target)
        os.unlink(target)
    digest = hashlib.sha256()
    with open(st("one.safetensors"), "rb") as file:
        while block := file.read(1 << 22):
            digest.update(block)
    assert output([o.ours, "hash", "--file", st("one.safetensors")]).stdout.split()[0] == digest.hexdigest()
    for name in ("one", "k"):
        for kind in ("sha256", "crc32c"):
            target = st(f"{name}.{kind}.zt")
            if not os.path.exists(target):
                assert run([o.ours, "convert", st(name + ".safetensors"), target, "--digest", kind, "--quiet"])[2] == 0


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--check", action="store_true", help="only make the inputs and check the answers")
    o = parser.parse_args()
    if o.check:
        check_answers(o)
        return
    # In its own process: a child's peak memory starts at its parent's.
    subprocess.run([sys.executable, __file__, o.folder, "--ours", o.ours, "--check"], check=True)
    results = Results("containers", "Containers", o.ours, f"whole processes, warm page cache, medians of {o.turns} turns")
    t, peers = Turns(o, results), Peers(o, results)
    add_roofs(results, o.roofs)
    list_files(t, peers)
    convert(t, peers)
    check_files(t)
    t.end()


def list_files(t, peers):
    for name, what, asked, turns in (("kk", "100,000", 0.4, 1), ("k", "1,000", 0.6, 3)):
        row = t.job("list", f"list {what} tensors", peers.listing(t.o.ours, t.path(name + ".safetensors")), turns=turns * t.o.turns)
        if row:
            t.results.asked(row, "amn", asked)


def convert(t, peers):
    out = os.path.join(t.out, "o.zt")
    for name in ("k", "one", "kk"):
        path = t.path(name + ".safetensors")
        size = 0 if name == "kk" else GIB
        ours = [t.o.ours, "convert", path, out, "--quiet"]
        rows = [(t.job("convert to .zt", f"convert {WHAT[name]}", {"ours": ours, "cp + sync": copy_and_sync(path, out),
                                                                   "zt": peers.zt_convert(path, out)}, size=size), 1.3)]
        if name != "kk":
            rows.append((t.job("convert to .zt", f"convert {WHAT[name]}, SHA-256", {
                "ours": ours + ["--digest", "sha256"], "cp + sync": copy_and_sync(path, out)}, size=size), 1.7))
        for row, asked in rows:
            if row and name == "k":
                t.results.asked(row, "cp + sync", asked)
            elif row and name == "kk":
                row["ours"]["asked"] = 1000


def check_files(t):
    for name in ("k", "one"):
        asked = {"sha256": 0.9} if name == "k" else {}
        for kind, title in (("sha256", "SHA-256"), ("crc32c", "CRC-32C")):
            row = t.job("verify", f"verify {title}, {WHAT[name]}", {"ours": [t.o.ours, "verify", t.path(f"{name}.{kind}.zt")]}, size=GIB,
                        roof=(kind, asked.get(kind)))
            if row and name == "k" and kind == "crc32c":
                row["ours"]["asked"] = 179  # 6 GB/s


if __name__ == "__main__":
    main()
