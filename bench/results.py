#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The common JSON form of the results of every benchmark in this folder, and the facts that all of them state.

{"schema": 2, "bench": NAME, "title": ..., "machine": {...}, "build": {...}, "method": SENTENCE, "peers": {NAME: VERSION},
 "left_out": [SENTENCE, ...], "roofs": {NAME: {"value": NUMBER, "unit": UNIT, "what": SENTENCE}}, "rows": [ROW, ...]}

machine: {"kind", "cpu", "cores", "memory_gib", "kernel"}. The kind is what report.py keeps apart: the maker of the processor and the widest
instructions that the kernels know, such as "Intel with AVX512-FP16".
ROW: {"group", "job", "unit": "ms" or a rate such as "tokens/s", "ours": FIGURES, "peers": {NAME: FIGURES}}, and if they apply
"x" (the position on the axis of a growth chart), "bytes" (processed), "roof": {"name", "fraction", "asked"}.
FIGURES: {"median", "best"}; ours may have "asked", the target, as an upper bound. A peer's also has "ratio" and "ratio_of_best": our time
divided by the peer's, even if the unit is a rate, so below 1 ours is faster; its "asked" is the target ratio. A file contains no date and
no path.

usage: results.py WEIGHBRIDGE      prints the facts of this machine and this build, for benchmarks in other languages"""
import json
import os
import platform
import statistics
import subprocess
import sys

SCHEMA = 2
MAKERS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD"}
WIDEST = {"avx512_fp16": "AVX512-FP16", "avx512_bf16": "AVX512-BF16", "avx512_vnni": "AVX512-VNNI", "avx512f": "AVX-512", "avx2": "AVX2"}


def kind_of(maker, flags):
    """The kind of a machine, from the fields vendor_id and flags of /proc/cpuinfo; other architectures have neither."""
    widest = next((name for flag, name in WIDEST.items() if flag in flags), "")
    return MAKERS.get(maker, maker or platform.machine()) + (f" with {widest}" if widest else "")


def machine():
    facts = {}
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {"kind": kind_of(facts.get("vendor_id", ""), facts.get("flags", "").split()), "cpu": facts.get("model name") or platform.machine(),
            "cores": os.cpu_count(), "memory_gib": round(memory), "kernel": platform.release().split("-")[0]}


def build(command):
    """The facts that `weighbridge --version --json` prints."""
    said = subprocess.run([command, "--version", "--json"], capture_output=True, text=True)
    try:
        told = json.loads(said.stdout)
    except json.JSONDecodeError:
        sys.exit(f"{command} --version --json does not say which build it is: build it anew")
    return {key: told[key] for key in ("version", "commit", "compiler", "paths")}


def ratio(ours, theirs, unit):
    """Our time divided by theirs."""
    return rounded(ours / theirs if is_time(unit) else theirs / ours)


def is_time(unit):
    return unit in ("ms", "MiB")


def rounded(value):
    """Four significant digits, more than any of these figures has."""
    return float(f"{value:.4g}")


def figures(values, unit="ms"):
    """Median and best of all turns."""
    return {"median": rounded(statistics.median(values)), "best": rounded((min if is_time(unit) else max)(values))}


class Results:
    """The results of one benchmark. Prints each row at once, as a JSON line."""

    def __init__(self, bench, title, command, method):
        self.told = {"schema": SCHEMA, "bench": bench, "title": title, "machine": machine(), "build": build(command), "method": method,
                     "peers": {}, "left_out": [], "roofs": {}, "rows": []}

    def peer(self, name, version):
        self.told["peers"][name] = version

    def leave_out(self, sentence):
        self.told["left_out"].append(sentence)
        print(f"left out: {sentence}", flush=True)

    def roof(self, name, value, unit, what):
        self.told["roofs"][name] = {"value": rounded(value), "unit": unit, "what": what}

    def row(self, group, job, ours, peers=None, unit="ms", roof=None, **more):
        """ours and each of peers: FIGURES, or None for a peer that failed. roof: (name, value in its unit, target or None)."""
        row = {"group": group, "job": job, "unit": unit, "ours": ours, "peers": {}}
        for name, theirs in (peers or {}).items():
            if theirs:
                row["peers"][name] = {**theirs, "ratio": ratio(ours["median"], theirs["median"], unit),
                                      "ratio_of_best": ratio(ours["best"], theirs["best"], unit)}
            else:
                self.leave_out(f"{name} could not do this: {job}")
        if roof and roof[0] in self.told["roofs"]:
            row["roof"] = {"name": roof[0], "fraction": rounded(roof[1] / self.told["roofs"][roof[0]]["value"])}
            if roof[2]:
                row["roof"]["asked"] = roof[2]
        row.update({key: value for key, value in more.items() if value is not None})
        self.told["rows"].append(row)
        print(json.dumps(row), flush=True)
        return row

    def asked(self, row, peer, at_most):
        """The target of a row, if the peer took part."""
        if peer in row["peers"]:
            row["peers"][peer]["asked"] = at_most

    def write(self, path):
        if not path:
            return
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(self.told, file, indent=1)
            file.write("\n")
        os.replace(path + ".part", path)


if __name__ == "__main__":
    print(json.dumps({"schema": SCHEMA, "machine": machine(), "build": build(sys.argv[1])}))
