#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes build/dist, which is what a release publishes (`make dist`): the parts of the table below, install.sh with its address, SHA256SUMS,
and a signed manifest if there is a key. The same commit makes the same bytes, except the signature's.

usage: dist.py [--built] [PART...]
  --built   gather what is built already
Without parts it makes all. A part that cannot be made is left out, with the reason, and the exit status is 1. The environment:
  DIST_KEY=FILE   signs with this private key, as `weighbridge manifest --key` does
  DIST_URL=URL    the address under which the files will be published, which install.sh contains then
  DIST_TAG=vX.Y.Z stops if that is not the version
"""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE, WEB = ["make", "package"], ["make", "web"]
NPM = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", "{root}/build/web", "{root}/web/api"]
ARCHIVE = "build/release/packages/weighbridge-{version}-linux-x86_64.tar.gz"
# name: (what it is, the commands that make it, where they leave it, how many files that are, the name if it changes)
PARTS = {
    "command": ("the static command for Linux x86-64", [PACKAGE], ARCHIVE, 1, "weighbridge-{version}-linux-x86_64"),
    "archive": ("the command, the C and C++ library and its headers", [PACKAGE], ARCHIVE, 1, None),
    "deb": ("Debian packages", [PACKAGE], "build/release/packages/*weighbridge*_{version}-*.deb", 2, None),
    "sbom": ("the bill of materials", [PACKAGE], "build/release/pages/weighbridge.spdx.json", 1, "weighbridge-{version}.spdx.json"),
    "wheels-x86_64": ("wheels for x86-64", [["make", "wheels", "MACHINES=x86_64"]], "build/wheels/released/weighbridge-{version}-*_x86_64.whl", 3, None),
    "wheels-aarch64": ("wheels for aarch64", [["make", "wheels", "MACHINES=aarch64"]], "build/wheels/released/weighbridge-{version}-*_aarch64.whl", 3, None),
    "npm": ("the npm package", [WEB, NPM], "build/web/weighbridge-{version}.tgz", 1, None),
}
ADDRESS = re.compile(r"^address=''$", re.M)  # of install.sh
UNREPRODUCED = "weighbridge-{version}.sig"


class LeftOut(Exception):
    """A part that cannot be made here; says why."""


def version():
    return re.search(r"^project\(weighbridge VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()


def run(command, done):
    """Runs one of a part's commands, unless another part has; its output goes to the terminal and the reason for a failure into LeftOut."""
    key = " ".join(command)
    if key not in done:
        words = [word.format(root=ROOT) for word in command]
        last = ""
        try:
            with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
                for line in process.stdout:
                    print(line, end="", flush=True)
                    if line.strip() and not re.match(r"make(\[\d+\])?:", line):
                        last = line.strip()
            done[key] = None if process.returncode == 0 else f"`{key}` failed: {last}"
        except OSError as error:
            done[key] = f"{words[0]} cannot be run: {error.strerror}"
    if done[key]:
        raise LeftOut(done[key])


def put(path, data, mode, when):
    path.write_bytes(data)
    path.chmod(mode)
    os.utime(path, (when, when))


def gather(name, out, when):
    """Copies the files of a part into the folder."""
    _, _, pattern, count, renamed = PARTS[name]
    folder, _, glob = pattern.format(version=version()).rpartition("/")
    found = sorted((ROOT / folder).glob(glob))
    if len(found) != count:
        raise LeftOut(f"{len(found)} of {count} files {folder}/{glob} are there")
    for path in found:
        data, mode = path.read_bytes(), 0o644
        if name == "command":  # the bytes that are in the packages, too
            with tarfile.open(path) as archive:
                data, mode = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/bin/weighbridge").read(), 0o755
        put(out / (renamed.format(version=version()) if renamed else path.name), data, mode, when)


def installer(text, url):
    """install.sh with the address that its files are published under."""
    if url and not re.fullmatch(r"(https://[\w.-]+|http://(127\.0\.0\.1|localhost)(:\d+)?)(/[\w./~%+-]*)?", url):
        sys.exit(f"DIST_URL is no address that install.sh could fetch from: {url}")
    filled, count = ADDRESS.subn(f"address='{url.rstrip('/')}'", text)
    assert count == 1, "install.sh has not one empty address"
    return filled


def finish(out, when, environment):
    """Adds install.sh, the digests and the signature. Returns what there is to say about them."""
    said = []
    url = environment.get("DIST_URL", "")
    if any(out.glob("weighbridge-*-linux-x86_64")):
        put(out / "install.sh", installer((ROOT / "install.sh").read_text(), url).encode(), 0o755, when)
        said.append(f"install.sh fetches from {url}" if url else "install.sh has no address, so it installs nothing: DIST_URL=URL fills it in")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(out.iterdir())]
    put(out / "SHA256SUMS", "".join(lines).encode(), 0o644, when)
    key = environment.get("DIST_KEY")
    if not key:
        return [*said, "not signed: DIST_KEY=FILE signs"]
    command = environment.get("WEIGHBRIDGE") or ROOT / "build/release/weighbridge"
    signature = out / UNREPRODUCED.format(version=version())
    subprocess.run([command, "manifest", out, "-o", signature, "--key", key, "--quiet"], check=True)
    return [*said, f"signed with {key}: {signature.name}"]


def main(arguments, environment=os.environ):
    if "--help" in arguments:
        print(__doc__, "\nThe parts:", *(f"\n  {name:15} {part[0]}" for name, part in PARTS.items()), sep="")
        return 0
    built = "--built" in arguments
    names = [word for word in arguments if word != "--built"] or list(PARTS)
    if unknown := [name for name in names if name not in PARTS]:
        sys.exit(f"no such part: {' '.join(unknown)}; there are {' '.join(PARTS)}")
    if environment.get("DIST_TAG", f"v{version()}") != f"v{version()}":
        sys.exit(f"the tag is {environment['DIST_TAG']}, and CMakeLists.txt says version {version()}")
    if not built and git("status", "--porcelain"):
        sys.exit("a release is of a commit, and this tree has changes that are in none: git status shows them")
    installer((ROOT / "install.sh").read_text(), environment.get("DIST_URL", ""))  # before an hour of building
    when = int(environment.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    os.environ.update(SOURCE_DATE_EPOCH=str(when), LC_ALL="C.UTF-8", TZ="UTC")
    os.umask(0o022)
    out = ROOT / "build/dist"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    done, left_out = {}, []
    for name in names:
        try:
            for command in [] if built else PARTS[name][1]:
                run(command, done)
            gather(name, out, when)
        except LeftOut as why:
            left_out.append(f"left out: {name}, {PARTS[name][0]}: {why}")
    said = finish(out, when, environment) if any(out.iterdir()) else []
    print(f"\nbuild/dist: weighbridge {version()}, of {time.strftime('%Y-%m-%d', time.gmtime(when))}")
    for path in sorted(out.iterdir()):
        print(f"  {path.stat().st_size:11,}  {path.name}")
    print("\n".join([*said, *left_out]))
    return 1 if left_out else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
