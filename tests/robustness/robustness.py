# SPDX-License-Identifier: Apache-2.0
# Shared by the robustness tests: the command, measured runs, strace, small models, and the conditions after a writer was
# stopped. WEIGHBRIDGE names the command; the default is the release build.
import functools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.environ.get("WEIGHBRIDGE") or str(ROOT / "build/release/weighbridge")
STRAY = re.compile(r"\..*\.weighbridge-[0-9a-f]{16}\.(tmp|old)|\.weighbridge-[0-9a-f]{16}\.journal")
MIB = 1 << 20


def run(*arguments, prefix=(), **options):
    """Runs the command after the words of `prefix`, and returns the result of subprocess.run in text mode."""
    return subprocess.run([*map(str, prefix), COMMAND, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=options.pop("timeout", 300), **options)


def done(*arguments):
    """Runs the command, which must succeed."""
    finished = run(*arguments)
    assert finished.returncode == 0, finished.stderr


# Children of a Python process of 100 MB would inherit its peak memory, because the kernel keeps it over fork and exec.
_LAUNCHER = """
import json, os, resource, subprocess, sys
limit = int(sys.argv[1])
def restrict():
    if limit: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
done = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, capture_output=True, text=True, preexec_fn=restrict)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, done.stdout, done.stderr, usage.ru_maxrss * 1024, usage.ru_utime]))
"""


class Measured:
    """The result and cost of a run: status, stdout, stderr, peak (bytes), user (seconds of processor time)."""

    def __init__(self, *arguments, address_space=0, seconds=300):
        out = subprocess.run([sys.executable, "-S", "-E", "-c", _LAUNCHER, str(address_space), COMMAND, *map(str, arguments)],
                             capture_output=True, text=True, timeout=seconds, check=True).stdout
        self.status, self.stdout, self.stderr, self.peak, self.user = json.loads(out)


def safetensors_header(entries, padding=True):
    """The length and the JSON text of a header; entries: name -> (dtype, shape, size in bytes), one after the other."""
    header, offset = {}, 0
    for name, (dtype, shape, size) in entries.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8 if padding else 0)
    return struct.pack("<Q", len(text)) + text


def write_safetensors(path, tensors):
    """tensors: name -> list of numbers, as F32."""
    head = safetensors_header({name: ("F32", [len(values)], 4 * len(values)) for name, values in tensors.items()})
    path.write_bytes(head + b"".join(struct.pack(f"<{len(values)}f", *values) for values in tensors.values()))
    return path


def write_sparse_file(path, dtype, element_size, payload):
    """One tensor whose payload is a hole of that many bytes: zeros that take no space on the disk."""
    head = safetensors_header({"w": (dtype, [payload // element_size], payload)})
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + payload)
    return path


def strays(folder):
    """Names of leftover temporaries in the folder."""
    return sorted(path.name for path in folder.iterdir() if STRAY.fullmatch(path.name))


def contents(path):
    """The file's bytes; None if there is no file."""
    return path.read_bytes() if path.exists() else None


@functools.cache
def stops_at_some_calls():
    """Flags with which the kernel stops the command only at the calls that strace changes, which halves the time; none where that does
    not work."""
    flags = ("-f", "--seccomp-bpf")
    tried = subprocess.run(["strace", *flags, "-qq", "-o", "/dev/null", "-e", "trace=getpid", "true"], capture_output=True)
    return flags if tried.returncode == 0 and tried.stderr == b"" else ()


def injecting(*injections):
    """The words before a command whose system calls strace changes: "pwrite64:error=EIO:when=1". A signal would be lost where the
    kernel stops at some calls only."""
    calls = ",".join(injection.split(":")[0] for injection in injections)
    some = () if any(":signal=" in injection for injection in injections) else (*stops_at_some_calls(), "-e", f"trace={calls}")
    return ["strace", *some, "-qq", "-o", "/dev/null", *(f"--inject={injection}" for injection in injections)]


def require_strace():
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    traced = subprocess.run(["strace", "-qq", "-o", "/dev/null", "-e", "inject=getpid:error=EPERM", "true"],
                            capture_output=True, text=True)
    if traced.returncode != 0:
        pytest.skip(f"strace may not trace here: {traced.stderr.strip()}")
