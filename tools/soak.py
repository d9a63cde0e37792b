#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One process that goes over a lake of model files for minutes (`make soak` makes one): opens, verifies, hashes, converts and compares what it meets,
sound or broken, in random order. Its memory and its open files, looked at each minute, must not grow from the first third
of the time to the last.

usage: soak.py LAKE [--minutes 30] [--seed 1]      needs the package weighbridge

Prints a line a minute, and at the end the commit and the sums. Exits with 1 if memory or files have grown, or if an exception was not one of the package's own."""
import argparse
import collections
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time

import sections
import weighbridge as wb

TARGETS = ["gguf", "npz", "pt", "safetensors", "zt"]  # by extension
LOSSES = ["attribute", "attribute-type", "extra", "tokenizer", "name", "shape", "layout", "dtype", "precision", "alias", "unsupported", "overflow", "part"]
GROWTH = 1.1  # of the median memory


def resident():
    """MiB of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def inspect(path, _):
    with wb.open(path) as model:
        return [(name, model[name].shape) for name in model]


def verify(path, _):
    return wb.verify(path).valid


def hashed(path, _):
    return wb.hash(path)


def convert(path, chance):
    with tempfile.TemporaryDirectory() as folder:
        wb.convert(path, os.path.join(folder, f"out.{chance.choice(TARGETS)}"), allow=LOSSES)


def compare(path, chance):
    return wb.diff(path, chance.choice(PATHS)).equal


def diagnose(path, _):
    return wb.doctor(path).condition


PATHS = []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lake", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    PATHS.extend(sorted(str(path) for path in o.lake.rglob("*") if path.is_file()))
    chance = random.Random(o.seed)
    jobs = [inspect, verify, hashed, convert, compare, diagnose]
    done, refused, strange = collections.Counter(), collections.Counter(), []
    samples = []
    begin = told = time.monotonic()
    while (now := time.monotonic()) - begin < 60 * o.minutes:
        job, path = chance.choice(jobs), chance.choice(PATHS)
        try:
            job(path, chance)
            done[job.__name__] += 1
        except wb.Error:
            refused[job.__name__] += 1
        except Exception as error:  # pylint: disable=broad-exception-caught
            strange.append(f"{job.__name__} {path}: {type(error).__name__}: {error}")
        if now - told >= 60:
            told = now
            samples.append((resident(), len(os.listdir("/proc/self/fd"))))
            print(f"{(now - begin) / 60:3.0f} min: {sum(done.values()):,} done, {sum(refused.values()):,} refused, "
                  f"{samples[-1][0]:.1f} MiB, {samples[-1][1]} open files", flush=True)
    print(f"commit {sections.commit()}")
    print("done", dict(sorted(done.items())), "refused", dict(sorted(refused.items())))
    faults = sorted(set(strange))
    third = max(1, len(samples) // 3)
    if len(samples) >= 3:
        for i, what in enumerate(("memory", "open files")):
            first, last = (statistics.median(sample[i] for sample in part) for part in (samples[:third], samples[-third:]))
            print(f"{what}: {first:.1f} in the first third, {last:.1f} in the last")
            if last > first * GROWTH:
                faults.append(f"{what} grew")
    print("\n".join(faults) or "nothing grew, and every exception was one of the package's own")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
