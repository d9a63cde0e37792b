#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times whole processes, ours and the peers', in turns in one run: A B C A B C ..., one warm-up, medians.

usage: processes.py FOLDER [--ours COMMAND] [--roofs library_bench] [--peers FOLDER] [--python PYTHON] [-n TURNS] [--only WORD] [--json FILE]

FOLDER keeps the inputs (made when missing, about 2.5 GB). Peers are optional: `zt` (ztensor-cli) and `amn` (anamnesis, feature cli)
below --peers or in PATH, `safetensors` in --python; one that is absent is left out. Every answer is checked before the clock
starts. Warm page cache. Rates are also given as a fraction of the machine's roof, measured in the same run."""

import argparse
import hashlib
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import time

GIB = 1 << 30


def write_safetensors(path, tensors):
    """tensors: (name, dtype, shape, bytes); payload is pseudo-random, the same on every machine."""
    header, offset = {}, 0
    for name, dtype, shape, size in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    source = random.Random(1)
    with open(path + ".part", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        block = source.randbytes(1 << 24)
        while offset:
            n = min(offset, len(block))
            out.write(block[:n])
            offset -= n
            block = block[4099:] + block[:4099]
    os.replace(path + ".part", path)


def inputs(folder):
    os.makedirs(folder, exist_ok=True)
    specs = {
        "one": [("w", "F32", [16384, 16384], GIB)],
        "k": [(f"model.layers.{i // 10}.mlp.{i % 10}.weight", "BF16", [512, 1024], 1 << 20) for i in range(1000)],
        "kk": [(f"model.layers.{i // 100}.experts.{i % 100}.weight", "F32", [8, 8], 256) for i in range(100000)],
    }
    for name, tensors in specs.items():
        path = os.path.join(folder, name + ".safetensors")
        if not os.path.exists(path):
            write_safetensors(path, tensors)


def run(command):
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    return wall, usage.ru_maxrss / 1024, process.returncode


def output(command):
    return subprocess.run(command, capture_output=True, text=True)


class Bench:
    def __init__(self, options):
        self.o = options
        self.out = os.path.join(options.folder, "out")
        self.rows = []

    def path(self, name):
        return os.path.join(self.o.folder, name)

    def fresh(self):
        shutil.rmtree(self.out, ignore_errors=True)
        os.makedirs(self.out)

    def job(self, name, commands, size=0, roof=None, turns=None):
        """commands: name -> argv, ours first under 'ours'. size: bytes worked on; roof: bytes/s that the machine could do."""
        commands = {who: argv for who, argv in commands.items() if argv}
        if self.o.only and self.o.only not in name:
            return
        times = {who: [] for who in commands}
        memory = dict.fromkeys(commands, 0.0)
        for turn in range((turns or self.o.turns) + 1):
            for who, argv in commands.items():
                self.fresh()
                wall, rss, status = run(argv)
                if status != 0:
                    if who == "ours":
                        sys.exit(f"{name}: ours exited with {status}: {' '.join(argv)}")
                    times[who] = None
                    continue
                if turn and times[who] is not None:
                    times[who].append(wall)
                    memory[who] = max(memory[who], rss)
        row = {"job": name}
        ours = statistics.median(times["ours"])
        for who in commands:
            if not times[who]:
                row[who] = None
                continue
            median = statistics.median(times[who])
            row[who] = {"ms": round(median * 1e3, 2), "min_ms": round(min(times[who]) * 1e3, 2), "rss_mb": round(memory[who], 1)}
            if who != "ours":
                row[who]["ours_to_it"] = round(ours / median, 3)
        if size:
            row["ours"]["gb_per_s"] = round(size / ours / 1e9, 2)
            if roof:
                row["ours"]["of_roof"] = round(size / ours / roof, 3)
        self.rows.append(row)
        print(json.dumps(row), flush=True)


def roofs(program):
    """Bytes a second of two threads, by name."""
    if not program:
        return {}
    text = output([program, "--benchmark_filter=roof_", "--benchmark_format=json", "--benchmark_min_time=0.5"]).stdout
    found = {}
    for row in json.loads(text)["benchmarks"]:
        if row["name"].endswith(f"threads:{min(2, os.cpu_count())}") or "roof_slm" in row["name"]:
            found[row["name"].split("/")[0][5:]] = row["bytes_per_second"]
    print(json.dumps({"roofs_gb_per_s": {k: round(v / 1e9, 2) for k, v in found.items()}}), flush=True)
    return found


def check_answers(o):
    """Makes the inputs, and sees that every answer that is timed later is right."""
    inputs(o.folder)
    st = lambda name: os.path.join(o.folder, name)
    for name, count in (("one", 1), ("k", 1000), ("kk", 100000)):
        source, target, back = st(name + ".safetensors"), st(name + ".check.zt"), st(name + ".check.safetensors")
        listed = json.loads(output([o.ours, "inspect", "--json", source]).stdout)
        assert len(listed["tensors"]) == count, name
        for command in ([o.ours, "convert", source, target, "--force", "--quiet"], [o.ours, "verify", "--quiet", target],
                        [o.ours, "convert", target, back, "--force", "--quiet"]):
            assert run(command)[2] == 0, command
        digests = output([o.ours, "hash", source, target, back]).stdout.split()[::2]
        assert len(set(digests)) == 1, (name, digests)
        if name != "kk":
            # The generator does not order its header as the reference writer does, so payloads are compared, not files.
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ours", default="build/release/weighbridge")
    parser.add_argument("--roofs", default="")
    parser.add_argument("--peers", default="")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("-n", dest="turns", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--check", action="store_true", help="only make the inputs and check the answers")
    o = parser.parse_args()
    if o.check:
        check_answers(o)
        return
    b = Bench(o)
    search = os.pathsep.join([o.peers, os.path.join(o.peers, "bin"), os.environ.get("PATH", "")])
    zt, amn = shutil.which("zt", path=search), shutil.which("amn", path=search)
    has_safetensors = output([o.python, "-c", "import safetensors"]).returncode == 0
    st, out = b.path, os.path.join(b.out, "o.zt")
    roof = roofs(o.roofs)

    # In a process of its own: a child's peak memory counts from its parent's.
    subprocess.run([sys.executable, __file__, o.folder, "--ours", o.ours, "--check"], check=True)

    def listing(path):
        code = "import sys\nfrom safetensors import safe_open\nf = safe_open(sys.argv[1], 'np')\nassert len(f.keys()) > 0"
        return {"ours": [o.ours, "inspect", path], "amn": amn and [amn, "inspect", path], "zt": zt and [zt, "ls", path],
                "python safe_open": has_safetensors and [o.python, "-c", code, path]}

    b.job("list 100,000 tensors", listing(st("kk.safetensors")))
    b.job("list 1,000 tensors", listing(st("k.safetensors")), turns=3 * o.turns)
    copy = lambda path: ["sh", "-c", 'cp "$1" "$2" && sync "$2"', "sh", path, out]
    for name in ("k", "one"):
        path = st(name + ".safetensors")
        what = {"k": "1 GiB in 1,000 tensors", "one": "1 GiB in one tensor"}[name]
        b.job(f"convert {what}", {"ours": [o.ours, "convert", path, out, "--quiet"], "cp + sync": copy(path),
                                  "zt": zt and [zt, "convert", path, out]}, size=GIB)
        b.job(f"convert {what}, sha256", {"ours": [o.ours, "convert", path, out, "--digest", "sha256", "--quiet"], "cp + sync": copy(path)},
              size=GIB)
    b.job("convert 100,000 tensors", {"ours": [o.ours, "convert", st("kk.safetensors"), out, "--quiet"]})
    for name in ("k", "one"):
        what = {"k": "1,000 tensors", "one": "one tensor"}[name]
        b.job(f"verify sha256, 1 GiB in {what}", {"ours": [o.ours, "verify", st(name + ".sha256.zt")]}, size=GIB, roof=roof.get("sha256"))
        b.job(f"verify crc32c, 1 GiB in {what}", {"ours": [o.ours, "verify", st(name + ".crc32c.zt")]}, size=GIB, roof=roof.get("crc32c"))
        b.job(f"hash, 1 GiB in {what}", {"ours": [o.ours, "hash", st(name + ".safetensors")],
                                         "sha256sum": ["sha256sum", st(name + ".safetensors")]}, size=GIB, roof=roof.get("sha256"))
    shutil.rmtree(b.out, ignore_errors=True)
    if o.json:
        with open(o.json, "w") as file:
            json.dump({"roofs": roof, "rows": b.rows}, file, indent=1)


if __name__ == "__main__":
    main()
