#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what is in a wheel of the Python package: wheel.py WHEEL... It has every Python file of the tree, its types, the extension
module of the interpreters that its name says, the command, and the licenses; it requires nothing; and it holds nothing else.
"""
import pathlib
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ELF = {"x86_64": 62, "aarch64": 183}  # e_machine


def machine(binary):
    assert binary[:4] == b"\x7fELF", "not a program of Linux"
    return int.from_bytes(binary[18:20], "little")


def check(path):
    """The faults of a wheel, as sentences."""
    name = re.fullmatch(r"weighbridge-([\d.]+)-cp(3\d+)-(cp3\d+|abi3)-((?:manylinux|linux)[\w.]*_(x86_64|aarch64))\.whl", path.name)
    if not name:
        yield "its name is not that of a wheel with an extension module for Linux"
        return
    version, python, abi, _, cpu = name.groups()
    if (abi == "abi3") != (int(python[1:]) >= 12):
        yield f"{python} with {abi}: the stable ABI is for 3.12 and later, each older version has its own"
    suffix = "abi3.so" if abi == "abi3" else f"cpython-{python}-{cpu}-linux-gnu.so"
    info = f"weighbridge-{version}.dist-info"
    command = f"weighbridge-{version}.data/scripts/weighbridge"
    sources = [p for p in (ROOT / "python/weighbridge").rglob("*") if p.is_file() and "__pycache__" not in p.parts and p.suffix != ".so"]
    wanted = {p.relative_to(ROOT / "python").as_posix() for p in sources}
    wanted |= {f"weighbridge/_core.{suffix}", command, f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"}
    wanted |= {f"{info}/licenses/{file}" for file in ("LICENSE", "NOTICE", "python/THIRD-PARTY-LICENSES")}
    for needed in ("weighbridge/py.typed", "weighbridge/_core.pyi"):
        if needed not in wanted:
            yield f"the tree has no {needed}"
    with zipfile.ZipFile(path) as wheel:
        there = set(wheel.namelist())
        yield from (f"{missing} is missing" for missing in sorted(wanted - there))
        yield from (f"{more} does not belong there" for more in sorted(there - wanted))
        for binary in sorted(there & {f"weighbridge/_core.{suffix}", command}):
            data = wheel.read(binary)
            if machine(data) != ELF[cpu]:
                yield f"{binary} is for another processor"
            if str(ROOT).encode() in data:
                yield f"{binary} holds the path of the tree that it was built in"
        if command in there and not wheel.getinfo(command).external_attr >> 16 & 0o111:
            yield f"{command} is not executable"
        metadata = wheel.read(f"{info}/METADATA").decode() if f"{info}/METADATA" in there else ""
    for line in re.findall(r"^Requires-Dist: (.*)$", metadata, re.M):
        if "extra ==" not in line:
            yield f"it requires {line}"
    if f"\nVersion: {version}\n" not in metadata:
        yield f"its metadata does not say version {version}"


def main():
    status = 0
    for path in map(pathlib.Path, sys.argv[1:]):
        faults = list(check(path))
        for fault in faults:
            print(f"{path.name}: {fault}", file=sys.stderr)
        if faults:
            status = 1
        else:
            print(f"{path.name}: complete, {path.stat().st_size / 1e6:.1f} MB")
    return status if len(sys.argv) > 1 else 2


if __name__ == "__main__":
    sys.exit(main())
