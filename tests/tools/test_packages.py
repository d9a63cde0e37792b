# SPDX-License-Identifier: Apache-2.0
"""Tests tools/install-packages.sh, which `make demo` and `make build` run, with stand-ins for dpkg-query, apt-get, id and sudo."""
import os
import pathlib
import pty
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools/install-packages.sh"


@pytest.fixture
def system(tmp_path):
    """A user of a machine that lacks every package; `calls` has what ran. sudo wants a password, which fails with -n."""
    folder, calls = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    for name, body in {"dpkg-query": "exit 1", "id": "echo 1000", "apt-get": f'echo "apt-get $*" >> {calls}; exit 0',
                       "sudo": f'echo "sudo $*" >> {calls}; [ "$1" = -n ] && exit 1; exec "$@"'}.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}, calls


def test_packages_are_printed_before_sudo_runs(system):
    environment, calls = system
    parent, child = pty.openpty()
    run = subprocess.Popen(["bash", SCRIPT, "build"], env=environment, stdin=child, stderr=child, stdout=subprocess.PIPE, text=True)
    first = run.stdout.readline(), run.stdout.readline()
    assert first == ("Installing these packages with sudo apt-get (Ctrl-C stops it):\n", "  g++                    compiles\n")
    assert run.wait(60) == 0
    os.close(parent), os.close(child), run.stdout.close()
    assert "apt-get install" in calls.read_text()


def test_without_a_terminal_nothing_prompts(system):
    environment, calls = system
    done = subprocess.run(["bash", SCRIPT, "demo"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "no terminal to ask on" in done.stderr and "sudo apt-get install g++" in done.stderr
    assert "  libzstd-dev            zstd: tensors of .zt files\n" in done.stdout
    assert calls.read_text() == "sudo -n true\n", "sudo without -n would have asked"


def test_root_needs_no_sudo(system, tmp_path):
    environment, calls = system
    (tmp_path / "bin/id").write_text("#!/bin/sh\necho 0\n")
    done = subprocess.run(["bash", SCRIPT, "build"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "with apt-get (" in done.stdout and "sudo" not in calls.read_text()


def test_the_demo_says_what_it_will_install_before_it_does(system, tmp_path):
    """make demo once began with apt-get, and said neither which Python packages it fetches nor what a package is
    for."""
    environment, calls = system
    (tmp_path / "bin/cmake").write_text(f'#!/bin/sh\necho "cmake $*" >> {calls}\n')
    (tmp_path / "bin/cmake").chmod(0o755)
    done = subprocess.run(["bash", ROOT / "tools/demo.sh"], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and calls.read_text() == "sudo -n true\n", "it may not install, and then it builds nothing"
    said, installs, _ = done.stdout.partition("Installing these packages")
    assert installs and "Debian packages that it will install:\n  g++                    compiles\n" in said
    listed = (ROOT / "python/requirements-demo.txt").read_text().splitlines()
    assert all(line.split("==")[0] in said for line in listed if not line.startswith("#"))


def test_every_package_has_its_purpose(system):
    environment, _ = system
    for purpose in ["build", "demo", "test", "check", "tidy", "bench", "web", "wheels", "aarch64", "reference", "docs-site"]:
        done = subprocess.run(["bash", SCRIPT, "--say", purpose], env=environment, capture_output=True, text=True, timeout=60)
        rows = done.stdout.splitlines()[1:]
        assert done.returncode == 0 and rows and all(len(row.split()) > 1 for row in rows), rows


def test_packages_that_are_here_are_told_apart(system, tmp_path):
    environment, calls = system
    (tmp_path / "bin/dpkg-query").write_text("#!/bin/sh\necho 'installed cmake'\n")
    done = subprocess.run(["bash", SCRIPT, "--say", "build"], env=environment, capture_output=True, text=True, timeout=60)
    installed, missing = done.stdout.split("Debian packages that it will install:\n")
    assert installed == "Debian packages that it uses and that are installed:\n  cmake                  configures the build\n"
    assert "  g++ " in missing and "cmake" not in missing and not calls.exists()
