#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a shared library exports: writes cmake/exports.map from the public headers, or says how it differs. Usage: exports.py [--check]

The map names each class with members that are compiled in the library and each function that a header declares and does not
define, as the linker matches demangled names.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
MAP = ROOT / "cmake/exports.map"
WORD = re.compile(r"[A-Za-z_]\w*")


def code_of(text):
    """Without comments, texts and directives."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', '""', text)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)


def statements(code):
    """Each declaration of one scope as (what stands before its braces, the braces' content or None)."""
    start = at = 0
    parentheses = 0
    while at < len(code):
        c = code[at]
        parentheses += (c == "(") - (c == ")")
        if parentheses == 0 and c == ";":
            yield code[start:at].strip(), None
            start = at + 1
        elif parentheses == 0 and c == "{":
            depth, end = 1, at + 1
            while depth:
                depth += (code[end] == "{") - (code[end] == "}")
                end += 1
            head = code[start:at].strip()
            yield head, code[at + 1:end - 1]
            at = start = end
            continue
        at += 1


def declared(code, scope=""):
    """(kind, qualified name) of each thing that a header declares: "class", "function", "internal" for namespaces of details."""
    for head, body in statements(code):
        head = re.sub(r"\[\[.*?\]\]|\b(?:inline|extern)\b(?=\s)", " ", head).strip()
        if (space := re.match(r"namespace\s+([\w:]+)$", head)) and body is not None:
            yield from declared(body, scope + space[1] + "::")
        elif re.match(r"(?:template|using|typedef|static_assert|enum|friend|constexpr|namespace)\b", head):
            continue
        elif kind := re.match(r"(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::|$)", head):
            if body is not None:
                yield "class", scope + kind[1]
                yield from ((what, name) for what, name in declared(body, scope + kind[1] + "::") if what == "class")
        elif "(" in head and body is None and "=" not in head.split("(")[0].replace("operator==", ""):
            name = WORD.findall(head.split("(")[0])
            if name and name[-1] not in ("noexcept",):
                yield "function", scope + (f"operator{head.split('operator')[1].split('(')[0].strip()}" if "operator" in name else name[-1])


def c_names():
    """The functions of the header for C."""
    return set(re.findall(r"\b(wb_\w+)\(", code_of((ROOT / "include/weighbridge/c.h").read_text(encoding="utf-8"))))


def public_names():
    """kind -> the names of all public headers."""
    names = {"class": set(), "function": set()}
    for header in sorted((ROOT / "include/weighbridge").glob("*.h")):
        # A member's access or a label is no part of the declaration behind it.
        code = re.sub(r"\b(?:public|private|protected):", "", code_of(header.read_text(encoding="utf-8")))
        for kind, name in declared(code):
            if name.startswith("weighbridge::") and not name.startswith("weighbridge::core::"):
                names[kind].add(name)
    return names


def stray_exports(demangled):
    """Those of a library's exported names, demangled, that no public header declares."""
    names, c_functions = public_names(), c_names()
    prefix = re.compile(r"(?:typeinfo for |typeinfo name for |vtable for |guard variable for )?")

    def is_public(name):
        name = prefix.sub("", name, count=1)
        function = re.match(r"[\w:]+", name)
        return (function is not None and function[0] in names["function"] or
                name in c_functions or any(name == each or name.startswith(each + "::") for each in names["class"]))

    return [name for name in demangled if not is_public(name)]


def map_text():
    names = public_names()
    lines = []
    for name in sorted(names["class"]):
        lines += [f'"typeinfo for {name}"', f'"typeinfo name for {name}"', f'"vtable for {name}"', f"{name}::*"]
    for name in sorted(names["function"]):
        lines += [f"{name}[!_a-zA-Z0-9]*"]  # its parameters, or a tag of the ABI
    in_c = "".join(f"    {name};\n" for name in sorted(c_names()))
    body = "".join(f"      {line};\n" for line in lines)
    return ("/* What a shared library exports: what the public headers declare. Written by tools/exports.py.\n"
            "   SPDX-License-Identifier: Apache-2.0 */\n"
            "{\n  global:\n" + in_c + "    extern \"C++\" {\n" + body + "    };\n  local:\n    *;\n};\n")


def main():
    text = map_text()
    if "--check" not in sys.argv[1:]:
        MAP.write_text(text, encoding="utf-8")
        return 0
    if MAP.read_text(encoding="utf-8") == text:
        return 0
    print("cmake/exports.map is not what the public headers declare: run tools/exports.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
