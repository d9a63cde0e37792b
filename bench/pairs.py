#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times every conversion between containers that store payload plainly, and verify of each checksum kind, in turns with their
yardsticks in one run: `cp` and `sync` of the output, or the serial checksum chain of .slm where one must run.

usage: pairs.py FOLDER --ours COMMAND --samples SAMPLE_FILES --roofs LIBRARY_BENCH [-n TURNS] [--only WORD] [--json FILE]

FOLDER keeps the inputs that SAMPLE_FILES makes (about 3 GB). The digests of input and output are compared before the clock starts."""

import argparse
import json
import os
import shutil
import subprocess

from processes import Bench, output, roofs, run

PLAIN, BERT, LLAMA = ("safetensors", "zt", "zt0", "stb"), ("zt", "embd"), ("zt", "slm")


def check(o, source, target, to):
    assert run([o.ours, "convert", source, target, "--to", to, "--force", "--quiet"])[2] == 0, (source, to)
    digests = output([o.ours, "hash", "--no-names", source, target]).stdout.split()[::2]
    assert len(digests) == 2 and digests[0] == digests[1], (source, to, digests)


def chains(source, to, size, rate):
    """Seconds that the serial checksums alone take: to open the source, to seal the output, to read it back."""
    count = (1 if source.endswith(".slm") else 0) + (2 if to == "slm" else 0)
    return count * size / rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ours", required=True)
    parser.add_argument("--samples", required=True)
    parser.add_argument("--roofs", required=True)
    parser.add_argument("-n", dest="turns", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    o = parser.parse_args()
    subprocess.run([o.samples, o.folder], check=True)
    b = Bench(o)
    roof = roofs(o.roofs)
    for name, formats in (("plain", PLAIN), ("bert110m", BERT), ("llama110m", LLAMA)):
        for source in (b.path(f"{name}.{f}") for f in formats):
            for to in formats:
                job = f"{os.path.basename(source)} to {to}"
                if o.only and o.only not in job:
                    continue
                b.fresh()
                target = os.path.join(b.out, "o." + to)
                check(o, source, target, to)
                size = os.path.getsize(target)
                commands = {"ours": [o.ours, "convert", source, target, "--to", to, "--quiet"],
                            "cp + sync": ["sh", "-c", 'cp "$1" "$2" && sync "$2"', "sh", source, target]}
                b.job(job, commands, size=size)
                chain = chains(source, to, size, roof["slm"])
                if chain:
                    b.rows[-1]["ours"]["to_chains"] = round(b.rows[-1]["ours"]["ms"] / 1e3 / chain, 3)
                    print(json.dumps({job: b.rows[-1]["ours"]["to_chains"]}), flush=True)
    for name, kind in (("bert110m.embd", "crc32"), ("llama110m.slm", "slm")):
        b.job(f"verify {kind}, {name}", {"ours": [o.ours, "verify", b.path(name)]}, size=os.path.getsize(b.path(name)),
              roof=roof.get(kind))
    shutil.rmtree(b.out, ignore_errors=True)
    if o.json:
        with open(o.json, "w") as file:
            json.dump({"roofs": roof, "rows": b.rows}, file, indent=1)


if __name__ == "__main__":
    main()
