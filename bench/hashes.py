#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times `hash` over 1 GiB beside the programs that people use for it: `openssl dgst -sha256` and `b3sum` (BLAKE3), if they are in PATH.

usage: hashes.py FOLDER [--ours COMMAND] [--roofs library_bench] [-n TURNS] [--json FILE]

FOLDER keeps the inputs of processes.py, which are made when missing. The digests differ, so each program must print the same twice."""
import shutil

from processes import WHAT, inputs
from results import Results
from turns import GIB, Turns, add_roofs, output, parser_of

PEERS = {"openssl": ["openssl", "dgst", "-sha256"], "b3sum": ["b3sum"]}


def main():
    o = parser_of(__doc__).parse_args()
    inputs(o.folder)
    results = Results("hashes", "Digests", o.ours, f"whole processes, warm page cache, medians of {o.turns} turns")
    t = Turns(o, results)
    add_roofs(results, o.roofs)
    there = {name: argv for name, argv in PEERS.items() if shutil.which(argv[0])}
    for name in PEERS:
        if name in there:
            results.peer(name, output([name, "version" if name == "openssl" else "--version"]).stdout.split()[1])
        else:
            results.leave_out(f"{name}: no such command in $PATH")
    for name in ("k", "one"):
        path = t.path(name + ".safetensors")
        commands = {"ours": [o.ours, "hash", path]} | {peer: [*argv, path] for peer, argv in there.items()}
        for argv in commands.values():
            assert output(argv).stdout == output(argv).stdout != "", argv
        t.job("hash", f"hash {WHAT[name]}", commands, size=GIB, roof=("sha256", 0.85 if name == "k" else None))
    t.end()


if __name__ == "__main__":
    main()
