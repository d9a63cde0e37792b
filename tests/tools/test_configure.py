# SPDX-License-Identifier: Apache-2.0
"""Tests what cmake says where something is missing: one message that names all of it, and the command that installs it."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# No headers and no libraries, but the programs.
NO_PATHS = ["-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", "-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF",
            f"-DCMAKE_CXX_COMPILER={shutil.which('c++')}", f"-DCMAKE_MAKE_PROGRAM={shutil.which('ninja')}"]
TOOLS = {"g++", "cmake", "ninja-build", "pkg-config"}
pytestmark = pytest.mark.skipif(not all(map(shutil.which, ("cmake", "ninja", "c++"))), reason="cmake, ninja or a compiler is missing")


def configure(tmp_path, *flags, **options):
    """The packages that cmake says to install, in one message."""
    done = subprocess.run([shutil.which("cmake"), "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", *flags], capture_output=True, text=True,
                          timeout=300, **options)
    said = " ".join(done.stderr.split())
    assert done.returncode != 0 and said.count("CMake Error at") == 1, said
    return set(re.search(r"Debian and Ubuntu: apt-get install ([\w +.-]+?)(?: Call Stack| -- |$)", said)[1].split())


def listed(purpose):
    """The packages that tools/install-packages.sh installs for it."""
    text = (ROOT / "tools/install-packages.sh").read_text()
    words = re.search(rf"^{purpose}=\(([^)]*)\)", text, re.M)[1].split()
    return {package for word in words for package in (listed(word[3:-5]) if word.startswith('"${') else [word])}


def test_everything_that_is_missing_is_in_one_message(tmp_path):
    """Once the first missing library stopped it, and after that was installed, the next; then the tests' libraries, one by one."""
    hidden = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("FastFloat", "GTest", "nlohmann_json", "benchmark", "Python3")]
    missing = configure(tmp_path, "-DWEIGHBRIDGE_BENCH=ON", *NO_PATHS, *hidden)
    assert missing == listed("build") - TOOLS | {"libgtest-dev", "librapidcheck-dev", "nlohmann-json3-dev", "libbenchmark-dev", "python3"}
    assert missing <= listed("test") | listed("bench"), "make setup installs them too"


def test_only_what_is_missing_is_named(tmp_path):
    assert configure(tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_FastFloat=ON", "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON") == {"libfast-float-dev", "libgtest-dev"}
    shutil.rmtree(tmp_path / "build")
    assert configure(tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_FastFloat=ON", "-DWEIGHBRIDGE_TESTS=OFF", *NO_PATHS) == listed("build") - TOOLS


@pytest.mark.parametrize("there", ["c++", "ninja", None])
def test_without_a_compiler_or_ninja_the_message_has_the_libraries_too(tmp_path, there):
    """cmake looks for libraries with the compiler, so it cannot know which are there: all are named, and apt-get skips those."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in filter(None, ("uname", there)):
        (tools / name).symlink_to(shutil.which(name))
    environment = {key: value for key, value in os.environ.items() if key not in ("CXX", "CC")}
    assert configure(tmp_path, env={**environment, "PATH": str(tools)}) == listed("build")


def test_sources_that_are_missing_are_in_one_message(tmp_path):
    flags = ["-DWEIGHBRIDGE_BUNDLED=ON", f"-DWEIGHBRIDGE_ZSTD_SOURCE={tmp_path}/a", f"-DWEIGHBRIDGE_ZLIB_SOURCE={tmp_path}/b"]
    done = subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja", *flags], capture_output=True, text=True, timeout=300)
    said = "".join(done.stderr.split())
    assert done.returncode != 0 and f"{tmp_path}/a/zstd.c,{tmp_path}/b/zlib.h" in said and "tools/fetch-sources.sh" in said
