#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the packages as their users would use them. Each case is one ctest entry; status 77 means that it could not be
tested here, with the reason. Usage: check.py --build FOLDER --work FOLDER --cmake PATH --compiler PATH --version VERSION CASE
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from exports import stray_exports  # noqa: E402

SKIPPED = 77
CONSUMER = pathlib.Path(__file__).resolve().parents[1] / "consumer"
# Everything that the command's package installs below its prefix, except the manual pages, which are counted.
COMMAND_FILES = {
    "bin/weighbridge", "share/bash-completion/completions/weighbridge", "share/fish/vendor_completions.d/weighbridge.fish",
    "share/sbom/weighbridge.spdx.json",
}


class Skip(Exception):
    """The case cannot be tested here."""


def run(*command, status=0, **options):
    """The command's output; it must exit with the status."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          **options)
    assert done.returncode == status, f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def the_only(pattern, folder):
    found = list(folder.glob(pattern))
    assert len(found) == 1, f"{len(found)} files {pattern} below {folder}"
    return found[0]


def sample(folder):
    """A small .safetensors with two tensors."""
    header = {"__metadata__": {"format": "pt"}, "bias": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
              "weight": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [8, 20]}}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path = folder / "sample.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<2f", 1, -2) + bytes(range(12)))
    return path


def main_job(command, folder, version):
    """The README's first walk, with only the unpacked command and an empty environment."""
    path = sample(folder)
    assert run(*command, "--version").startswith(f"weighbridge {version}\n")
    assert "2 tensors" in run(*command, "inspect", path.name, cwd=folder)
    run(*command, "convert", path.name, "sample.zt", "--encoding", "zstd", "--digest", "sha256", cwd=folder)
    assert run(*command, "verify", path.name, "sample.zt", cwd=folder).count(": ok (") == 2
    digests = run(*command, "hash", path.name, "sample.zt", cwd=folder).split()
    assert digests[0] == digests[2] and re.fullmatch("wb2:[0-9a-f]{64}", digests[0])
    data = bytearray((folder / "sample.zt").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "broken.zt").write_bytes(data)
    run(*command, "verify", "broken.zt", status=1, cwd=folder)


def make(a):
    run(a.cmake.with_name("cpack"), "--config", a.build / "CPackConfig.cmake", "-B", fresh(a.work / "packages"), cwd=a.build)
    names = sorted(path.name for path in a.packages.iterdir() if path.is_file())
    wanted = [rf"weighbridge-{a.version}-[a-z]+-\w+\.tar\.gz"]
    if shutil.which("dpkg"):
        wanted = [rf"libweighbridge-dev_{a.version}-1_\w+\.deb", *wanted, rf"weighbridge_{a.version}-1_\w+\.deb"]
    assert len(names) == len(wanted) and all(map(re.fullmatch, wanted, names)), names


def unpacked_tarball(a, name):
    folder = fresh(a.work / name)
    run("tar", "-xzf", the_only("*.tar.gz", a.packages), "-C", folder)
    return the_only("*", folder)


def tarball(a):
    prefix = unpacked_tarball(a, "tarball")
    main_job(["env", "-i", prefix / "bin/weighbridge"], a.work / "tarball", a.version)
    for path in prefix.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for machine in (str(a.build), str(CONSUMER.parents[1])):
                assert machine.encode() not in data, f"{path.relative_to(prefix)} names {machine}"


def network(a):
    """SECURITY.md says that nothing here opens a socket, so the library must not import such functions."""
    prefix = unpacked_tarball(a, "network")
    libraries = [the_only(f"**/libweighbridge{name}.a", prefix) for name in ("", "_chain")]
    called = set(run("nm", "--undefined-only", "--format=just-symbols", *libraries).split())
    assert {"pread", "openat"} <= called, "nm does not list what the library calls"
    assert not called & {"socket", "connect", "bind", "listen", "getaddrinfo", "gethostbyname", "sendto"}, called


def consumer_says_ok(program):
    said = run(program)
    assert said == "ok\n", said


def consumer_in_c(prefix, folder, *extra):
    """Builds the program in C with what pkg-config says of it, and runs it. C knows nothing of C++: the flags name its library too."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(the_only("**/weighbridge-c.pc", prefix).parent)}
    flags = run("pkg-config", "--cflags", "--libs", "weighbridge-c", env=environment).split()
    program = folder / "in-c"
    run(shutil.which("cc") or "gcc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", CONSUMER / "main.c", "-o", program, *flags, *extra)
    said = run(program, folder)
    assert said == "ok\n", said


def consumer_by_cmake(a, prefix, build):
    run(a.cmake, "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={a.compiler}",
        f"-DCMAKE_PREFIX_PATH={prefix}")
    run(a.cmake, "--build", build)
    consumer_says_ok(build / "consumer")


def cmake(a):
    consumer_by_cmake(a, unpacked_tarball(a, "cmake"), a.work / "cmake/build")


def shared(a):
    """The shared library: its names and exports; the command and a user's program run with it."""
    source, folder = CONSUMER.parents[1], a.work / "shared"
    build, prefix = folder / "build", fresh(folder / "prefix")
    run(a.cmake, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_CXX_COMPILER={a.compiler}", "-DCMAKE_BUILD_TYPE=Release",
        "-DBUILD_SHARED_LIBS=ON", "-DWEIGHBRIDGE_TESTS=OFF", f"-DCMAKE_INSTALL_PREFIX={prefix}", "-DCMAKE_INSTALL_LIBDIR=lib")
    run(a.cmake, "--build", build)
    run(a.cmake, "--install", build)
    library, minor = prefix / "lib/libweighbridge.so", a.version.rsplit(".", 1)[0]
    links = {path.name: os.readlink(path) for path in library.parent.iterdir() if path.is_symlink()}
    assert links == {library.name: f"{library.name}.{minor}", f"{library.name}.{minor}": f"{library.name}.{a.version}"}, links
    assert not list(library.parent.glob("*.a")), "an archive beside it would be taken for it"
    soname = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", library))
    assert soname and soname[1] == f"{library.name}.{minor}", soname
    exported = run("nm", "-D", "-C", "--defined-only", "--format=just-symbols", library).splitlines()
    assert len(exported) > 100 and not stray_exports(exported), stray_exports(exported)[:9]
    for planted in ("weighbridge::core::Draft::finish()", "weighbridge::opened()", "ZSTD_compress"):
        assert stray_exports([planted]) == [planted], planted
    calls = {each.split("(")[0].split("[")[0] for each in exported}
    for promised in ("weighbridge::open", "weighbridge::Model::find", "weighbridge::chain::offers", "weighbridge::JsonWriter::key"):
        assert promised in calls, f"{promised} is not exported"
    main_job(["env", "-i", prefix / "bin/weighbridge"], fresh(folder / "job"), a.version)
    consumer_by_cmake(a, prefix, fresh(folder / "consumer"))
    assert soname[1] in run("readelf", "-d", folder / "consumer/consumer"), "the program does not name the library"
    if shutil.which("pkg-config"):
        consumer_in_c(prefix, folder, f"-Wl,-rpath,{prefix / 'lib'}")
        assert soname[1] in run("readelf", "-d", folder / "in-c"), "the program in C does not name the library"


def pkg_config(a):
    if not shutil.which("pkg-config"):
        raise Skip("needs pkg-config")
    prefix = unpacked_tarball(a, "pkg-config")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(the_only("**/weighbridge.pc", prefix).parent)}
    assert run("pkg-config", "--modversion", "weighbridge", env=environment).strip() == a.version
    flags = run("pkg-config", "--cflags", "--libs", "weighbridge-chain", env=environment).split()
    program = a.work / "pkg-config/consumer"
    run(a.compiler, "-std=c++20", CONSUMER / "main.cc", "-o", program, *flags)
    consumer_says_ok(program)
    consumer_in_c(prefix, a.work / "pkg-config")


def files_below(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or path.is_file()}


def links_hold(folder):
    """Checks links between the installed pages; links into the sources do not work there."""
    pages = list(folder.rglob("*.md"))
    assert {"README.md", "docs/rules.md", "src/formats/slm/README.md"} <= {page.relative_to(folder).as_posix() for page in pages}
    dead = {f"{page.relative_to(folder)}: {link}" for page in pages
            for link in re.findall(r"\]\(([^)#\s:]+\.(?:md|svg|json))[)#]", page.read_text()) if not (page.parent / link).is_file()}
    assert not dead, sorted(dead)


def debian(a):
    if not shutil.which("dpkg-deb"):
        raise Skip("needs dpkg-deb")
    command, development = (the_only(pattern, a.packages) for pattern in ("weighbridge_*.deb", "libweighbridge-dev_*.deb"))
    folder = fresh(a.work / "debian")
    run("dpkg-deb", "-x", command, folder / "command")
    run("dpkg-deb", "-x", development, folder / "development")
    files = files_below(folder / "command/usr")
    assert COMMAND_FILES < files and "share/zsh/vendor-completions/_weighbridge" in files, sorted(files)
    rest = {name for name in files - COMMAND_FILES if not re.match(r"share/(doc/weighbridge/|man/man1/\S+\.1\.gz$|zsh/|lintian/)", name)}
    assert not rest, f"nobody expects {sorted(rest)}"
    assert {"share/doc/weighbridge/copyright", "share/doc/weighbridge/changelog.Debian.gz"} < files
    links_hold(folder / "command/usr/share/doc/weighbridge")
    files = files_below(folder / "development/usr")
    assert {"include/weighbridge/weighbridge.h", "include/weighbridge/c.h", "lib/libweighbridge.a", "lib/libweighbridge_chain.a",
            "lib/pkgconfig/weighbridge.pc", "lib/pkgconfig/weighbridge-chain.pc", "lib/pkgconfig/weighbridge-c.pc",
            "lib/cmake/weighbridge/weighbridgeConfig.cmake"} < files, sorted(files)
    assert not files_below(folder / "command") & files_below(folder / "development"), "a file is in both packages"
    owners = {line.split()[1] for line in run("dpkg-deb", "-c", command).splitlines()}
    assert owners == {"root/root"}, owners
    linked = subprocess.run(["ldd", folder / "command/usr/bin/weighbridge"], capture_output=True, text=True, check=False)
    depends = run("dpkg-deb", "-f", command, "Depends").strip()
    assert bool(depends) == ("=>" in linked.stdout), f"Depends: {depends}; ldd: {linked.stdout}"
    assert "libfmt-dev" in run("dpkg-deb", "-f", development, "Depends")
    main_job(["env", "-i", folder / "command/usr/bin/weighbridge"], folder, a.version)


def manual(a):
    """Every verb has a manual page, and roff readers report no errors."""
    prefix = unpacked_tarball(a, "manual")
    pages = sorted((prefix / "share/man/man1").iterdir())
    verbs = [each for each in re.findall(r"^  ([a-z]+) ", run(prefix / "bin/weighbridge", "--help"), re.MULTILINE) if each != "help"]
    assert len(verbs) > 10 and {page.name for page in pages} == {"weighbridge.1", *(f"weighbridge-{verb}.1" for verb in verbs)}
    for verb in verbs:
        page = (prefix / f"share/man/man1/weighbridge-{verb}.1").read_text().replace("\\-", "-")
        flags = re.findall(r"^  (?:-\w,|   ) (--[a-z0-9-]+)", run(prefix / "bin/weighbridge", verb, "--help"), re.MULTILINE)
        assert {"--help", "--json"} <= set(flags)
        for flag in flags:
            assert f"\\fB{flag}\\fR" in page, f"{verb}: {flag} is not in the manual"
    readers = [["groff", "-man", "-Tutf8", "-ww", "-z"], ["mandoc", "-Tlint"]]
    tried = [reader for reader in readers if shutil.which(reader[0])]
    for reader in tried:
        for page in pages:
            done = subprocess.run([*reader, page], capture_output=True, text=True, check=False)
            assert not done.stdout and not done.stderr, f"{page.name}: {done.stdout}{done.stderr}"
        planted = prefix / "planted.1"
        planted.write_text(pages[0].read_text() + ".TP\n.no_such_macro\n")
        done = subprocess.run([*reader, planted], capture_output=True, text=True, check=False)
        assert done.stdout or done.stderr, f"{reader[0]} did not report what was planted"
    if not tried:
        raise Skip("the pages are complete; needs groff or mandoc to read them")


def remove_root(root):
    """Removes a system's folder. What a killed run left mounted in it belongs to this system, and must not be removed with it."""
    mounted = [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    for place in sorted((place for place in mounted if place.startswith(f"{root}/")), reverse=True):
        run("umount", "--lazy", place)
    if root.exists():
        shutil.rmtree(root)


def files_of_system(root):
    return {name for name in files_below(root) if not name.startswith(("var/log/", "var/lib/dpkg/", "proc/", "job/"))}


def inside(root):
    """The beginning of a command that runs in that system, with an empty environment."""
    return ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "chroot", root]


def try_package(root, package, version):
    """Installs the Debian package in a system, lets it do the main job in /job, and removes it without a trace."""
    (root / "job").mkdir()
    shutil.copy(package, root / "job/weighbridge.deb")
    before = files_of_system(root)
    run(*inside(root), "dpkg", "--install", "/job/weighbridge.deb")
    main_job([*inside(root), "sh", "-c", 'cd /job && exec weighbridge "$@"', "sh"], root / "job", version)
    run(*inside(root), "dpkg", "--purge", "weighbridge")
    run(*inside(root), "test", "!", "-e", "/usr/bin/weighbridge")
    after = files_of_system(root)
    assert after == before, f"left behind or taken away: {sorted(after ^ before)}"


def clean_root(a):
    """Tries the package in a system with only the essential packages."""
    if not shutil.which("mmdebstrap") or os.geteuid() != 0:
        raise Skip("needs mmdebstrap and root")
    root = a.work / "root"
    remove_root(root)
    release = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    suite = release.get("VERSION_CODENAME", "stable").strip('"')
    made = subprocess.run(["mmdebstrap", "--variant=essential", "--mode=root", suite, str(root)], capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        last = made.stderr.strip().splitlines()[-1:]
        raise Skip(f"mmdebstrap could not make a root (no network?): {' '.join(last)}")
    try:
        try_package(root, the_only("weighbridge_*.deb", a.packages), a.version)
    finally:
        remove_root(root)


def main():
    parser = argparse.ArgumentParser()
    for name in ("--build", "--work", "--cmake", "--compiler"):
        parser.add_argument(name, type=lambda path: pathlib.Path(os.path.abspath(path)), required=True)
    parser.add_argument("--version", required=True)
    cases = {case.__name__: case for case in (make, tarball, network, cmake, pkg_config, debian, manual, clean_root, shared)}
    parser.add_argument("case", choices=cases)
    a = parser.parse_args()
    a.packages = a.work / "packages"
    a.work.mkdir(parents=True, exist_ok=True)
    try:
        cases[a.case](a)
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
