#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every #include in src/, cli/, examples/, web/core/, python/core/ and include/ against the order in layers.txt, and that every format folder has its files.

Checks itself in the same run: each violation planted in a temporary copy must be reported. Usage: check.py [ROOT]
"""
import pathlib
import re
import shutil
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".h", ".cc", ".def"}
ROOMS = ["README.md", "layout.h", "rules.def", "read.cc", "write.cc", "format.h", "format.cc", "cases.cc"]
TESTS = ("_test.cc", "cases.cc")  # compiled for tests only
# Names of the standard library; <csignal> raises signals, which belong to the operating system.
STANDARD = re.compile(r"^[a-z_0-9]+$")
NOT_STANDARD = {"csignal"}
C_HEADERS = {("capi", "stddef.h"), ("capi", "stdint.h")}  # of the header for C
CASES = "cases.h"  # beside the cases.cc that it declares
READ_ONLY_MARK = "read only"  # a format whose README says so needs no write.cc


class Order:
    """layers.txt as data."""

    def __init__(self, text):
        self.layers, self.headers, self.only, self.system = {}, {}, {}, {}
        for line in text.splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            head, _, tail = line.partition(": ") if ": " in line else line.partition(":")
            kind, name = head.split()
            name = name.rstrip(":")
            if kind == "layer":
                self.layers[name] = tail.split()
            elif kind == "headers":
                self.headers.update({header: name for header in tail.split()})
            elif kind == "only":
                self.only[name] = tail.split()
            elif kind == "system":
                self.system[name] = tail.split()
            else:
                raise ValueError(f"layers.txt: cannot read '{line}'")

    def pattern(self, layer):
        """The line of layers.txt that applies to a layer: formats/* for formats/stb."""
        folder = layer.split("/")[0] + "/*"
        return layer if layer in self.layers else folder if folder in self.layers else None

    def is_of_system(self, path):
        """Whether the source at this path may include headers of the operating system."""
        folder, _, name = path.rpartition("/")
        return any(name.startswith(begin) and folder in folders for begin, folders in self.system.items())

    @staticmethod
    def lists(names, layer):
        """Whether a list of layer names has this one, by itself or as formats/*."""
        return layer in names or layer.split("/")[0] + "/*" in names

    def may_include(self, user, used):
        if user == used:
            return True
        pattern = self.pattern(user)
        return pattern is not None and self.pattern(used) is not None and self.lists(self.layers[pattern], used)


def layer_of(path, order):
    """The layer of a path below src/: its first folder, or its first two if layers.txt says so."""
    parts = path.split("/")
    if len(parts) > 2 and any(layer.startswith(parts[0] + "/") for layer in order.layers):
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else ""


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def check_include(root, order, user, path, quote, target):
    """What is wrong with the file at `path`, of the layer `user`, including `target`, or None."""
    is_test = path.endswith(TESTS)
    if target.startswith("weighbridge/"):
        header = target.removeprefix("weighbridge/")
        if not (root / "include" / target).is_file():
            return f"there is no public header {target}"
        used = order.headers.get(header)
        if used is None:
            return f"public header {header} has no line in layers.txt"
        if user in ("cli", "web", "python") or used == user or user == "umbrella":
            return None
        if used == "umbrella":
            return f"{target} is for users of the library"
        return None if order.may_include(user, used) else f"{user} may not include {target}, which belongs to {used}"
    if quote == '"':
        if (root / {"cli": "cli", "web": "web/core", "python": "python/core"}.get(user, "absent") / target).is_file():
            return None
        if is_test and (root / "tests" / target.removeprefix("tests/")).is_file():
            return None
        if not (root / "src" / target).is_file():
            return f'"{target}" is neither below src/ nor a public header (write includes from the root of src/)'
        used = layer_of(target, order)
        if user in ("cli", "web", "python"):
            return f"the command, the page and the Python package see public headers only, not {target}"
        if not order.lists(order.only.get(target, [user]), user):
            return f"{user} may not include {target}: it is for {' '.join(order.only[target])}"
        return None if order.may_include(user, used) else f"{user} may not include {target}"
    for prefix, allowed in order.only.items():
        if target.startswith(prefix):
            if is_test or order.lists(allowed, user):
                return None
            return f"{user} may not include <{target}>: {prefix} is for {' '.join(allowed)}"
    if is_test or order.is_of_system(path) or (user, target) in C_HEADERS or (STANDARD.match(target) and target not in NOT_STANDARD):
        return None
    return f"<{target}> is a header of the operating system: only {', '.join(sorted(order.system))}*.cc may include it (os.h)"


def check(root):
    """Every violation below root, as 'path:line: sentence'."""
    order = Order((root / "tests/layering/layers.txt").read_text(encoding="utf-8"))
    found = []
    for top in ("src", "cli", "examples", "web/core", "python/core", "include"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            name = path.relative_to(root).as_posix()
            if top == "src":
                user = layer_of(path.relative_to(root / "src").as_posix(), order)
                if order.pattern(user) is None:
                    found.append(f"{name}:1: no layer '{user}' in layers.txt")
                    continue
            elif top in ("cli", "examples", "web/core", "python/core"):
                user = {"web/core": "web", "python/core": "python"}.get(top, "cli")
            else:
                user = order.headers.get(path.name)
                if user is None:
                    found.append(f"{name}:1: public header {path.name} has no line in layers.txt")
                    continue
            for number, quote, target in includes(path):
                in_public = top == "include" and not target.startswith("weighbridge/") and (user, target) not in C_HEADERS
                if in_public and (quote == '"' or "/" in target or target.endswith(".h")):
                    wrong = f"a public header includes the standard library and public headers only, not {target}"
                else:
                    wrong = check_include(root, order, user, name, quote, target)
                if wrong:
                    found.append(f"{name}:{number}: {wrong}")
    return found + check_rooms(root) + check_users(root)


def check_users(root):
    """Headers that only tests include belong in tests/. A header below src/ needs its own source, or a user that is not a test."""
    users = {}
    for top in ("src", "cli", "web/core", "python/core", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES and path.is_file():
                for _, _, target in includes(path):
                    users.setdefault(target, []).append(path)
    found = []
    for header in sorted((root / "src").rglob("*.h")):
        using = users.get(header.relative_to(root / "src").as_posix(), [])
        if using and all(path.name.endswith(TESTS) for path in using) and header.name != CASES:
            found.append(f"{header.relative_to(root).as_posix()}:1: only tests include it: it belongs below tests/")
    return found


def check_rooms(root):
    """Checks that each format folder has the standard files."""
    found = []
    folders = [path for path in (root / "src/formats").rglob("*") if path.is_dir()]
    for folder in sorted(path for path in folders if all(path not in below.parents for below in folders)):
        present = {path.name for path in folder.iterdir()}
        readme = (folder / "README.md").read_text(encoding="utf-8").lower() if "README.md" in present else ""
        for room in ROOMS:
            if room not in present and not (room == "write.cc" and READ_ONLY_MARK in readme):
                found.append(f"{folder.relative_to(root).as_posix()}: {room} is missing")
        if not any(name.endswith("_test.cc") for name in present):
            found.append(f"{folder.relative_to(root).as_posix()}: no *_test.cc")
    return found


def append_line(path, line):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(line + "\n")


def plant_format(root, name):
    for room in ROOMS + ["planted_test.cc"]:
        append_line(root / "src/formats" / name / room, "// planted")


# Each plants one violation in a copy of the tree; a new finding must contain the words.
PLANTED = {
    "a layer includes one above it": (
        lambda root: (append_line(root / "src/core/model/x.h", ""), append_line(root / "src/base/x.cc", '#include "core/model/x.h"')),
        "src/base/x.cc:1: base may not include core/model/x.h"),
    "two layers side by side": (
        lambda root: (append_line(root / "src/wire/x.h", ""), append_line(root / "src/io/x.cc", '#include "wire/x.h"')),
        "src/io/x.cc:1: io may not include wire/x.h"),
    "a format includes another": (
        lambda root: (plant_format(root, "a"), plant_format(root, "b"),
                      append_line(root / "src/formats/a/read.cc", '#  include "formats/b/layout.h"')),
        "src/formats/a/read.cc:2: formats/a may not include formats/b/layout.h"),
    "a layer includes a public header from above": (
        lambda root: append_line(root / "src/wire/x.cc", "#include <weighbridge/model.h>"),
        "src/wire/x.cc:1: wire may not include weighbridge/model.h"),
    "a header that its layer keeps to itself": (
        lambda root: append_line(root / "src/io/x_test.cc", '#include "core/model/state.h"'),
        "src/io/x_test.cc:1: io may not include core/model/state.h: it is for core/*"),
    "the command includes an internal header": (
        lambda root: (append_line(root / "src/base/x.h", ""), append_line(root / "cli/x.cc", '#include "base/x.h"')),
        "cli/x.cc:1: the command, the page and the Python package see public headers only"),
    "the page seeing the inside": (
        lambda root: (append_line(root / "src/base/x.h", ""), append_line(root / "web/core/x.cc", '#include "base/x.h"')),
        "web/core/x.cc:1: the command, the page and the Python package see public headers only"),
    "the Python package seeing the inside": (
        lambda root: (append_line(root / "src/base/x.h", ""), append_line(root / "python/core/x.cc", '#include "base/x.h"')),
        "python/core/x.cc:1: the command, the page and the Python package see public headers only"),
    "a public header includes an external one": (
        lambda root: append_line(root / "include/weighbridge/dtype.h", "#include <fmt/core.h>"),
        "a public header includes the standard library and public headers only, not fmt/core.h"),
    "a public header includes one from above": (
        lambda root: append_line(root / "include/weighbridge/dtype.h", '#include "weighbridge/model.h"'),
        "base may not include weighbridge/model.h"),
    "a public header without a layer": (
        lambda root: append_line(root / "include/weighbridge/planted.h", ""), "planted.h has no line in layers.txt"),
    "a layer without a line": (lambda root: append_line(root / "src/planted/x.cc", ""), "no layer 'planted'"),
    "an external header outside its layer": (
        lambda root: append_line(root / "src/core/model/x.cc", "#include <openssl/evp.h>"), "core/model may not include <openssl/evp.h>"),
    "a header of the operating system above the floor": (
        lambda root: append_line(root / "src/io/x.cc", "#include <sys/stat.h>"),
        "src/io/x.cc:1: <sys/stat.h> is a header of the operating system"),
    "one in a room that has no floor": (
        lambda root: append_line(root / "src/edit/os_x.cc", "# include <unistd.h>"),
        "src/edit/os_x.cc:1: <unistd.h> is a header of the operating system"),
    "one in a header": (
        lambda root: append_line(root / "cli/x.h", "#include <csignal>"),
        "cli/x.h:1: <csignal> is a header of the operating system"),
    "intrinsics outside of codecs and kernels": (
        lambda root: append_line(root / "src/core/model/x.cc", "#include <immintrin.h>"), "core/model may not include <immintrin.h>"),
    "an include that leads nowhere": (
        lambda root: append_line(root / "src/base/x.cc", '#include "nowhere.h"'), '"nowhere.h" is neither below src/'),
    "a header below src/ for tests alone": (
        lambda root: (append_line(root / "src/core/model/planted.h", ""),
                      append_line(root / "src/core/model/planted_test.cc", '#include "core/model/planted.h"')),
        "src/core/model/planted.h:1: only tests include it"),
    "a format without one of its rooms": (
        lambda root: (plant_format(root, "a"), (root / "src/formats/a/rules.def").unlink()),
        "src/formats/a: rules.def is missing"),
    "a format without a test": (
        lambda root: (plant_format(root, "a"), (root / "src/formats/a/planted_test.cc").unlink()),
        "src/formats/a: no *_test.cc"),
}


def prove(root):
    """Plants each violation and returns the names of those that went unreported."""
    unreported = []
    clean = set(check(root))
    for name, (plant, words) in PLANTED.items():
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder)
            for part in ("src", "cli", "examples", "web/core", "python/core", "include", "tests/layering"):
                if (root / part).exists():
                    shutil.copytree(root / part, copy / part)
            plant(copy)
            if not any(words in finding for finding in set(check(copy)) - clean):
                unreported.append(name)
    return unreported


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    found = check(root)
    for finding in found:
        print(finding)
    unreported = prove(root)
    for name in unreported:
        print(f"check.py did not report what was planted: {name}")
    print(f"layering: {len(found)} violations; {len(PLANTED) - len(unreported)} of {len(PLANTED)} planted ones reported")
    return 1 if found or unreported else 0


if __name__ == "__main__":
    sys.exit(main())
