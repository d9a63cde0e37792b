#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times every conversion between containers that store payload plainly, and verify of each checksum kind, in turns with their
yardsticks in one run: `cp` and `sync` of the output, and the serial checksum chains of .slm where they must run.

usage: pairs.py FOLDER --ours COMMAND --samples SAMPLE_FILES --roofs LIBRARY_BENCH [-n TURNS] [--only WORD] [--json FILE]

FOLDER keeps the inputs that SAMPLE_FILES makes (about 3 GB). The digests of input and output are compared before the clock starts."""
import os
import subprocess

from results import Results, rounded
from turns import Turns, add_roofs, copy_and_sync, output, parser_of, run

PLAIN, BERT, LLAMA = ("safetensors", "zt", "zt0", "stb"), ("zt", "embd"), ("zt", "slm")
KINDS = {"plain": (PLAIN, "256 tensors of 1 MiB"), "bert110m": (BERT, "BERT encoder, 436 MB"), "llama110m": (LLAMA, "Llama decoder, 536 MB")}
CHAINS = "the serial checksums alone"
ASKED = {("slm", "slm"): 1.15, ("zt", "slm"): 1.15, ("slm", "zt"): 1.15}


def check(o, source, target, to):
    assert run([o.ours, "convert", source, target, "--to", to, "--force", "--quiet"])[2] == 0, (source, to)
    digests = output([o.ours, "hash", "--no-names", source, target]).stdout.split()[::2]
    assert len(digests) == 2 and digests[0] == digests[1], (source, to, digests)


def add_chains(results, row, count, size):
    """The time of the serial checksums alone: to open the source, to seal the output, to read it back."""
    theirs = rounded(count * size / results.told["roofs"]["slm"]["value"] * 1e3)
    row["peers"][CHAINS] = {"median": theirs, "best": theirs, "ratio": rounded(row["ours"]["median"] / theirs),
                            "ratio_of_best": rounded(row["ours"]["best"] / theirs)}


def convert(t, group, kind, source, to):
    o, name = t.o, t.path(f"{kind}.{source}")
    job = f".{source} to .{to}"
    if not t.wants(job):
        return
    t.fresh()
    target = os.path.join(t.out, "o." + to)
    check(o, name, target, to)
    size = os.path.getsize(target)
    row = t.job(group, job, {"ours": [o.ours, "convert", name, target, "--to", to, "--quiet"],
                             "cp + sync": copy_and_sync(name, target)}, size=size)
    count = (source == "slm") + 2 * (to == "slm")
    if count and "slm" in t.results.told["roofs"]:
        add_chains(t.results, row, count, size)
        t.results.asked(row, CHAINS, ASKED[source, to])


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--samples", required=True, help="the program sample_files")
    o = parser.parse_args()
    subprocess.run([o.samples, o.folder], check=True)
    results = Results("pairs", "Every pair of containers", o.ours, f"whole processes, warm page cache, medians of {o.turns} turns")
    t = Turns(o, results)
    add_roofs(results, o.roofs)
    for kind, (formats, group) in KINDS.items():
        for source in formats:
            for to in formats:
                convert(t, group, kind, source, to)
    for name, title, kind in (("bert110m.embd", "verify CRC-32, .weights of 436 MB", "crc32"),
                              ("llama110m.slm", "verify .slm of 536 MB", "slm")):
        t.job("verify", title, {"ours": [o.ours, "verify", t.path(name)]}, size=os.path.getsize(t.path(name)), roof=(kind, None))
    t.end()


if __name__ == "__main__":
    main()
