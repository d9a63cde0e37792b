#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times functions of the library inside one process: opening, finding a name, checksums and decoding block types on one core; and the
products of the embedding runtime as a fraction of what one core can multiply and add in registers, measured in the same run.

usage: functions.py --library LIBRARY_BENCH --embed EMBED_BENCH --cli WEIGHBRIDGE [--seconds 0.3] [-n 3] [--json FILE]

The programs check their results before the clock starts. Products have the (m, n, k) of all-MiniLM-L6-v2."""
import argparse
import json
import re
import subprocess

from results import Results, figures

KERNELS = {"product_f32": "product in f32", "product_half": "product in f16", "product_i8": "product in int8", "attention": "attention in f32"}
ROOFS = {"product_f32": "f32 on one core", "product_half": "f16 on one core", "product_i8": "int8 on one core", "attention": "f32 on one core"}
CHECKSUMS = {"sha256": "SHA-256, one message", "crc32c": "CRC-32C", "crc32": "CRC-32", "xxh3": "XXH3-128", "slm": "the checksum of .slm"}
OPENED_IN_US = {1000: 150, 100000: 15000}  # targets


def measured(program, filter_, o):
    """name -> the repetitions of one benchmark."""
    text = subprocess.run([program, f"--benchmark_filter={filter_}", f"--benchmark_min_time={o.seconds}", "--benchmark_format=json",
                           f"--benchmark_repetitions={o.turns}"], check=True, capture_output=True, text=True).stdout
    found = {}
    for one in json.loads(re.sub(r"\binf\b", "0", text))["benchmarks"]:
        if one["run_type"] == "iteration" and not one.get("error_occurred"):
            found.setdefault(one["name"], []).append(one)
    return found


def library(results, o):
    to_us = {"ns": 1e-3, "us": 1, "ms": 1e3}
    for name, all_ in measured(o.library, "^open_file/[a-z]+/(1000|100000)$|^find_by_name$|^row_of_blocks$", o).items():
        times = figures([one["real_time"] * to_us[one["time_unit"]] / 1e3 for one in all_])
        if name == "find_by_name":
            results.row("library", "find a name among 100,000", times)
            continue
        if name == "row_of_blocks":
            results.row("library", "one row of 128,256 x 4,096 as q4_k", {**times, "asked": 1})
            continue
        _, form, count = name.split("/")
        results.row("library", f"open .{form}, {int(count):,} tensors", {**times, "asked": OPENED_IN_US[int(count)] / 1e3})
    for name, all_ in measured(o.library, "^decode_blocks/", o).items():
        results.row("block types to f32 on one core, in cache", name.split("/")[1],
                    figures([one["bytes_per_second"] / 1e9 for one in all_], "GB/s"), unit="GB/s")
    for name, all_ in measured(o.library, "^roof_[a-z0-9]+/real_time/threads:1$", o).items():
        title = CHECKSUMS[name.split("/")[0].removeprefix("roof_")]
        results.row("checksums on one core, in cache", title, figures([one["bytes_per_second"] / 1e9 for one in all_], "GB/s"), unit="GB/s")


def kernels(results, o):
    found = measured(o.embed, "^(product_f32|product_half|product_i8|attention)/", o)
    for name, all_ in found.items():
        kind, *sizes = name.split("/")
        if all_[0]["roof"]:
            results.roof(ROOFS[kind], all_[0]["roof"], "GOP/s", f"independent multiply-adds in registers, {ROOFS[kind]}")
        rates = figures([one["GOP/s"] for one in all_], "GOP/s")
        shape = " × ".join(sizes) if kind != "attention" else f"{sizes[0]} tokens, heads of {sizes[1]}"
        results.row("products on one core", f"{KERNELS[kind]}, {shape}", rates, unit="GOP/s", roof=(ROOFS[kind], rates["median"], None))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--embed", required=True)
    parser.add_argument("--cli", required=True, help="the command weighbridge, which says what build this is")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("-n", dest="turns", type=int, default=3)
    parser.add_argument("--json", default="")
    o = parser.parse_args()
    results = Results("functions", "Functions", o.cli, f"inside one process, medians of {o.turns} repetitions")
    library(results, o)
    kernels(results, o)
    results.write(o.json)


if __name__ == "__main__":
    main()
