# SPDX-License-Identifier: Apache-2.0
"""Times whole processes in turns, ours and the peers': A B C A B C ..., after one warm-up. Also makes inputs and measures the machine's
roofs. The benchmarks choose the commands and check their results."""
import argparse
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import time

from results import figures

GIB = 1 << 30


def write_safetensors(path, tensors, made_of=bytes):
    """tensors: (name, dtype, shape, bytes); the payload is what made_of() makes of pseudo-random bytes, the same on every machine. Keeps an
    existing file."""
    if os.path.exists(path):
        return
    header, offset = {}, 0
    for name, dtype, shape, size in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    source = random.Random(1)
    with open(path + ".part", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        block = made_of(source.randbytes(1 << 24))
        while offset:
            n = min(offset, len(block))
            out.write(block[:n])
            offset -= n
            block = block[4098:] + block[:4098]
    os.replace(path + ".part", path)


def run(command):
    """Seconds, peak memory in MB (at least that of this interpreter, where a child starts), exit status."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    return wall, usage.ru_maxrss / 1024, process.returncode


def own_peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def output(command):
    return subprocess.run(command, capture_output=True, text=True)


def parser_of(text):
    """The common arguments of benchmarks of processes."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="keeps the inputs, which are made when missing")
    parser.add_argument("--ours", default="build/release/weighbridge")
    parser.add_argument("--roofs", default="", help="the program library_bench")
    parser.add_argument("--peers", default="", help="where zt and amn are, if not in PATH")
    parser.add_argument("--python", default=sys.executable, help="a python3 with safetensors")
    parser.add_argument("-n", dest="turns", type=int, default=3)
    parser.add_argument("--only", default="", help="only jobs whose name holds this")
    parser.add_argument("--json", default="")
    return parser


class Turns:
    """Runs the jobs of one benchmark and adds their rows to its results."""

    def __init__(self, options, results):
        self.o = options
        self.results = results
        self.out = os.path.join(options.folder, "out")

    def path(self, name):
        return os.path.join(self.o.folder, name)

    def fresh(self):
        shutil.rmtree(self.out, ignore_errors=True)
        os.makedirs(self.out)

    def wants(self, job):
        return self.o.only in job

    def job(self, group, name, commands, size=0, roof=None, turns=None, **more):
        """commands: name -> argv, None for a missing peer; ours first, as 'ours'. roof: (its name, target). Returns the row, or None
        if it is not selected."""
        if not self.wants(name):
            return None
        commands = {who: argv for who, argv in commands.items() if argv}
        times, memory = self.times(name, commands, turns or self.o.turns)
        told = {who: figures([t * 1e3 for t in seconds]) if seconds else None for who, seconds in times.items()}
        ours = told.pop("ours")
        if memory["ours"] > 1.01 * own_peak():  # otherwise it is this interpreter's
            ours["peak_mb"] = round(memory["ours"], 1)
        rate = size / (ours["median"] / 1e3)
        return self.results.row(group, name, ours, told, roof=roof and (roof[0], rate, roof[1]), bytes=size or None, **more)

    def times(self, name, commands, turns):
        times = {who: [] for who in commands}
        memory = dict.fromkeys(commands, 0.0)
        for turn in range(turns + 1):
            for who, argv in commands.items():
                self.fresh()
                wall, rss, status = run(argv)
                if status != 0:
                    if who == "ours":
                        sys.exit(f"{name}: ours exited with {status}: {' '.join(argv)}")
                    times[who] = None
                elif turn and times[who] is not None:
                    times[who].append(wall)
                    memory[who] = max(memory[who], rss)
        return times, memory

    def end(self):
        shutil.rmtree(self.out, ignore_errors=True)
        self.results.write(self.o.json)


def copy_and_sync(source, target):
    return ["sh", "-c", 'cp "$1" "$2" && sync "$2"', "sh", source, target]


ROOFS = {"sha256": "SHA-256 by OpenSSL, a message on each of two cores", "crc32c": "CRC-32C on two cores, in cache",
         "crc32": "CRC-32 on two cores, in cache", "xxh3": "XXH3-128 on two cores, in cache",
         "slm": "the serial checksum of .slm, on one core"}


def add_roofs(results, program):
    """Bytes per second of two threads, by name; of one thread for the serial checksum."""
    if not program:
        return
    text = output([program, "--benchmark_filter=roof_(sha256|crc|xxh3|slm)", "--benchmark_format=json", "--benchmark_min_time=0.3"]).stdout
    for row in json.loads(text)["benchmarks"]:
        name = row["name"].split("/")[0].removeprefix("roof_")
        if row["name"].endswith(f"threads:{min(2, os.cpu_count())}") or name == "slm":
            results.roof(name, row["bytes_per_second"], "B/s", ROOFS[name])


class Peers:
    """The available commands and packages, with their versions in the results; a sentence about each missing one."""

    def __init__(self, options, results):
        search = os.pathsep.join([options.peers, os.path.join(options.peers, "bin"), os.environ.get("PATH", "")])
        self.amn, self.zt = (shutil.which(name, path=search) for name in ("amn", "zt"))
        self.python = options.python
        safetensors = output([self.python, "-c", "import safetensors, numpy; print(safetensors.__version__)"])
        self.has_safetensors = safetensors.returncode == 0
        for name, there, what in (("amn", self.amn, "anamnesis"), ("zt", self.zt, "ztensor-cli")):
            if there:
                words = output([there, "--version"]).stdout.split()
                results.peer(name, f"{what} {words[1]}" if len(words) == 2 else what)
            else:
                results.leave_out(f"{name} ({what}): no such command in $PEERS or $PATH")
        if self.has_safetensors:
            results.peer("Python safe_open", "safetensors " + safetensors.stdout.strip())
        else:
            results.leave_out("Python safe_open: no safetensors with numpy in the Python that was given")

    def listing(self, ours, path):
        code = "import sys\nfrom safetensors import safe_open\nf = safe_open(sys.argv[1], 'np')\nassert len(f.keys()) > 0"
        return {"ours": [ours, "inspect", path], "amn": self.amn and [self.amn, "inspect", path], "zt": self.zt and [self.zt, "ls", path],
                "Python safe_open": [self.python, "-c", code, path] if self.has_safetensors else None}

    def zt_convert(self, source, target):
        return self.zt and [self.zt, "convert", source, target]
