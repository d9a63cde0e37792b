#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs what is released on clean systems: Debian 12, Debian 13 and Ubuntu 24.04, each with its essential packages and Python. The
Debian package and the wheel are installed, do the main job and are removed. Needs root, mmdebstrap and a network.

usage: roots.py BUILD WHEELS [SUITE...]

BUILD is a build folder where the packages have been made (check.py), WHEELS the folder of the released wheels."""
import hashlib
import os
import pathlib
import shutil
import sys
import tempfile
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check import inside, main_job, remove_root, run, the_only, try_package  # noqa: E402

DEBIAN, UBUNTU = "http://deb.debian.org/debian", "http://archive.ubuntu.com/ubuntu"
SUITES = {"bookworm": ("Debian 12", DEBIAN), "trixie": ("Debian 13", DEBIAN), "noble": ("Ubuntu 24.04", UBUNTU)}
# Debian has no package with Ubuntu's keys.
KEYS = (f"{UBUNTU}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb",
        "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8")
SESSION = """
import weighbridge
model = weighbridge.open("sample.safetensors")
assert list(model) == ["bias", "weight"] and model["weight"].shape == (2, 3)
weighbridge.convert("sample.safetensors", "from-python.gguf")
assert weighbridge.verify("from-python.gguf").valid
print(weighbridge.__version__)
"""


def ubuntu_keys(folder):
    """The keyring file of Ubuntu's archive, checked by the digest of its package."""
    data = urllib.request.urlopen(KEYS[0], timeout=60).read()
    assert hashlib.sha256(data).hexdigest() == KEYS[1], f"{KEYS[0]} is not the package that was expected"
    (folder / "keys.deb").write_bytes(data)
    run("dpkg-deb", "-x", folder / "keys.deb", folder / "keys")
    return folder / "keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"


def make_root(suite, mirror, folder):
    source = mirror
    if mirror == UBUNTU:
        source = f"deb [signed-by={ubuntu_keys(folder)}] {mirror} {suite} main universe"
    run("mmdebstrap", "--variant=essential", "--mode=root", "--include=python3,python3-venv", suite, folder / "root", source)
    return folder / "root"


def try_suite(suite, packages, wheels, folder):
    name, mirror = SUITES[suite]
    root = make_root(suite, mirror, folder)
    package = the_only("weighbridge_*.deb", packages)
    version = run("dpkg-deb", "--field", package, "Version").strip().split("-")[0]
    try_package(root, package, version)

    job = root / "job"
    there = [*inside(root), "sh", "-c", 'cd /job && exec "$@"', "sh"]
    python = run(*inside(root), "python3", "-c", "import sys; print('3.%d' % sys.version_info[1])").strip()
    shutil.copytree(wheels, job / "wheels")
    run(*there, "python3", "-m", "venv", "venv")
    run(*there, "venv/bin/pip", "install", "--quiet", "--no-index", "--find-links", "wheels", f"weighbridge=={version}")
    for made in job.glob("*.zt"):  # by the package
        made.unlink()
    assert run(*there, "venv/bin/python", "-c", SESSION).strip() == version
    main_job([*there, "venv/bin/weighbridge"], job, version)
    run(*there, "venv/bin/pip", "uninstall", "--quiet", "--yes", "weighbridge")
    left = list((job / "venv").rglob("*weighbridge*"))
    assert not left, f"pip left {left}"
    print(f"{name}: the package and the wheel for Python {python} install, work and are removed", flush=True)


def main():
    build, wheels = map(pathlib.Path, sys.argv[1:3])
    if not shutil.which("mmdebstrap") or os.geteuid() != 0:
        sys.exit("roots.py needs mmdebstrap, and root")
    for suite in sys.argv[3:] or SUITES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                try_suite(suite, build.joinpath("tests", "package", "work", "packages"), wheels, pathlib.Path(folder))
            finally:
                remove_root(pathlib.Path(folder) / "root")


if __name__ == "__main__":
    main()
