#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times growth: listing and opening 1 to 100,000 small tensors, and verify, hash and convert of 1 MiB to 1 GiB, in turns with peers.

usage: growth.py FOLDER [--ours COMMAND] [--roofs library_bench] [--peers FOLDER] [--python PYTHON] [-n TURNS] [--only WORD] [--json FILE]

FOLDER keeps the inputs (made when missing, about 2.8 GB). Opening is a function of the library, timed inside library_bench; everything
else is whole processes, start included. Warm page cache. Before the clock starts, the script counts the listed tensors, checks that
each verify succeeds, and compares content digests across the conversion."""
import json
import os

from results import Results, rounded
from turns import Peers, Turns, copy_and_sync, output, parser_of, run, write_safetensors

COUNTS = [10 ** i for i in range(6)]
MIB = [4 ** i for i in range(6)]
PART = 1 << 18  # bytes of a tensor where the size grows


def count_file(folder, count):
    path = os.path.join(folder, f"count-{count}.safetensors")
    write_safetensors(path, [(f"model.layers.{i // 100}.experts.{i % 100}.weight", "F32", [8, 8], 256) for i in range(count)])
    return path


def size_files(folder, mib):
    plain = os.path.join(folder, f"size-{mib}.safetensors")
    write_safetensors(plain, [(f"model.layers.{i // 10}.mlp.{i % 10}.weight", "F32", [256, 256], PART) for i in range((mib << 20) // PART)])
    return plain, plain.replace(".safetensors", ".sha256.zt")


def tensors(t, peers):
    for count in COUNTS:
        path = count_file(t.o.folder, count)
        listed = json.loads(output([t.o.ours, "inspect", "--json", path]).stdout)["files"][0]
        assert len(listed["tensors"]) == count, path
        t.job("list", f"list {count:,} tensor{'s' * (count > 1)}", peers.listing(t.o.ours, path), x=count)


def opening(results, program):
    """Opening, timed in the process of library_bench, which checks what it opens."""
    told = json.loads(output([program, "--benchmark_filter=open_file/", "--benchmark_format=json", "--benchmark_min_time=0.2",
                              "--benchmark_repetitions=3"]).stdout)
    times = {}
    for one in told["benchmarks"]:
        assert not one.get("error_occurred"), one
        if one["run_type"] == "iteration":
            _, form, count = one["name"].split("/")[:3]
            times.setdefault((form, int(count)), []).append(one["real_time"] / 1e3)  # it counts microseconds
    for (form, count), values in times.items():
        values.sort()
        results.row("open", f"open .{form}, {count:,} tensor{'s' * (count > 1)}",
                    {"median": rounded(values[len(values) // 2]), "best": rounded(values[0])}, x=count)


def sizes(t):
    out = os.path.join(t.out, "o.zt")
    for mib in MIB:
        plain, checked = size_files(t.o.folder, mib)
        if not os.path.exists(checked):
            assert run([t.o.ours, "convert", plain, checked, "--digest", "sha256", "--quiet"])[2] == 0
        assert run([t.o.ours, "verify", "--quiet", checked])[2] == 0
        digests = output([t.o.ours, "hash", plain, checked]).stdout.split()[::2]
        assert len(digests) == 2 and digests[0] == digests[1], digests
        size, what = mib << 20, f"{mib:,} MiB" if mib < 1024 else "1 GiB"
        more = {"size": size, "x": mib, "turns": t.o.turns * (3 if mib <= 16 else 1)}
        t.job("verify", f"verify SHA-256, {what}", {"ours": [t.o.ours, "verify", checked], "sha256sum": ["sha256sum", checked]}, **more)
        t.job("hash", f"hash, {what}", {"ours": [t.o.ours, "hash", plain], "sha256sum": ["sha256sum", plain]}, **more)
        t.job("convert", f"convert, {what}", {"ours": [t.o.ours, "convert", plain, out, "--quiet"],
                                              "cp + sync": copy_and_sync(plain, out)}, **more)


def main():
    o = parser_of(__doc__).parse_args()
    os.makedirs(o.folder, exist_ok=True)
    results = Results("growth", "Growth", o.ours, f"whole processes, warm page cache, medians of {o.turns} turns; opening inside a process")
    t = Turns(o, results)
    tensors(t, Peers(o, results))
    if o.roofs:
        opening(results, o.roofs)
    sizes(t)
    t.end()


if __name__ == "__main__":
    main()
