# SPDX-License-Identifier: Apache-2.0
"""Tests `weighbridge --version`: as text and as JSON, with the same facts in both."""
import re

from conftest import validated, weighbridge


def test_for_people():
    first, commit, compiler, libraries, sandbox, paths = weighbridge("--version").stdout.splitlines()
    assert re.fullmatch(r"weighbridge \d+\.\d+\.\d+", first)
    assert re.fullmatch(r"commit {4}([0-9a-f]{40}|unknown)", commit)
    assert re.fullmatch(r"compiler {2}\S.*", compiler)
    assert re.fullmatch(r"libraries OpenSSL 3[0-9.]+, zstd 1[0-9.]+, zlib 1[0-9.]+, xxHash .*, fmt .*", libraries)
    assert re.fullmatch(r"sandbox {3}(none|landlock \d+(, seccomp)?|seccomp)", sandbox)
    assert re.fullmatch(r"paths {5}kernels \S+, half \S+, .*crc \S+, sha256 \S+, .*", paths)
    assert weighbridge("-V").stdout == weighbridge("--version").stdout


def test_for_programs():
    text = weighbridge("--version").stdout
    value = validated(weighbridge("--version", "--json").stdout, "version")
    assert text.splitlines() == [
        f"weighbridge {value['version']}", f"commit    {value['commit']}", f"compiler  {value['compiler']}",
        "libraries " + ", ".join(f"{name} {version}" for name, version in value["libraries"].items()),
        f"sandbox   {value['sandbox']}",
        "paths     " + ", ".join(f"{of} {taken}" for of, taken in value["paths"].items())]


def test_nothing_else_stands_beside_it():
    assert weighbridge("--version", "x", status=2).stderr == "weighbridge: --version takes only --json\n"
    weighbridge("--version", "--json", "--json", status=2)
