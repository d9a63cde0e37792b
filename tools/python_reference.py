#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/python-reference.md from the docstrings of the Python package, whose sections are those of NumPy's style. Reads the sources, so
nothing has to be built. --check: exits with 1 if the page is not what would be written."""
import ast
import builtins
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE, PAGE = ROOT / "python/weighbridge", ROOT / "docs/python-reference.md"
HEAD = """# Python reference

Written from the docstrings by `make docs`. [python.md](python.md) begins with three jobs and explains what is common to all.
`import weighbridge as wb` is assumed.

Results are records: immutable, equal if their fields are, with `asdict()` for JSON, and printed with a line for each field. Types of arguments, such as
`Source` and `Progress`, are those of [weighbridge.typing](#types-for-annotations-weighbridgetyping).
"""
# What the page shows: a heading, the module, and its public names; None: all of __all__.
PARTS = [
    ("Opening", "_model.py", ["open", "Model", "Tensor", "Part", "Stats", "StoredWeight"]),
    ("Whole files", "_checks.py", ["verify", "Verdict", "check", "PolicyVerdict", "Breach", "doctor", "Diagnosis", "Advice", "ByteRange", "salvage", "Salvaged",
                                   "check_cache", "CacheEntry", "explain", "Explanation", "Span"]),
    ("", "_jobs.py", ["hash", "plan", "Plan", "Item", "convert", "Written", "Cast", "LossWarning", "save", "formats", "Format"]),
    ("What a GGUF was made from", "_derivation.py", ["Derivation", "DerivedTensor", "Deviation"]),
    ("Signed lists of files", "_manifest.py", ["manifest", "Manifest", "ManifestVerdict", "FileDifference"]),
    ("What changed", "_diff.py", ["diff", "Diff", "TensorDiff", "TensorInfo", "ValueDiff", "MetadataDiff"]),
    ("Patches", "_patch.py", ["make_patch", "Patch", "apply", "fold"]),
    ("Editing", "_edit.py", ["edit", "undo_edit", "settle_edit", "Edited", "left_journals", "recover_folder", "Journal", "Step"]),
    ("Runtimes", "_embed.py", ["Embedder"]),
    ("", "_generate.py", ["Generator", "Completion"]),
    ("", "_tokenizer.py", ["tokenizer", "Tokenizer"]),
    ("", "_core.pyi", ["ArrowVectors"]),
    ("Errors", "_errors.py", ["Finding", "Hint", "Error", "MalformedError", "UsageError", "LimitError", "UnsupportedError", "InputOutputError",
                              "MissingFileError", "MissingTensorError"]),
    ("Types for annotations: weighbridge.typing", "typing.py", ["File"]),
    ("", "_options.py", ["ConvertOptions"]),
    ("PyTorch modules: weighbridge.torch", "torch.py", None),
    ("In the place of safetensors: weighbridge.safetensors", "safetensors/__init__.py", None),
    ("weighbridge.safetensors.numpy", "safetensors/numpy.py", None),
    ("weighbridge.safetensors.torch", "safetensors/torch.py", None),
    ("In the place of gguf: weighbridge.gguf", "gguf.py", None),
    ("Engines that speak Arrow: weighbridge.arrow", "arrow.py", None),
    ("Corpora and lakes on Ray: weighbridge.ray", "ray/__init__.py", None),
    ("", "ray/_embed.py", ["Embed", "embed"]),
    ("", "ray/_corpus.py", ["embed_corpus"]),
    ("", "ray/_audit.py", ["audit"]),
    ("", "ray/_run.py", ["Report", "Progress", "ClusterError"]),
    ("", "ray/_rows.py", ["rows_digest"]),
    ("", "ray/_search.py", ["search", "Hit"]),
]
ROLE = re.compile(r":(?:func|class|meth|attr|mod):`(?:~)?([^`]+)`")
WIDE = 140  # columns of a signature on one line
ITEM = re.compile(r"^(?P<names>[^\s].*?)(?: : (?P<type>.+))?$")


def public(module):
    """The names of a module: __all__, or the classes and functions without an underscore."""
    for node in module.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return [node.name for node in module.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")]


def signature(function, name):
    """The parameters with types and defaults, and the type of the result; a line for each parameter if that is long."""
    told = ast.parse(ast.unparse(function)).body[0].args
    told.args = [argument for argument in told.args if argument.arg not in ("self", "cls")]
    result = f" -> {ast.unparse(function.returns)}" if function.returns and function.name != "__init__" else ""
    pieces, depth = [""], 0
    for c in ast.unparse(told):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += c
    pieces = [re.sub(r"^(\*{0,2}\w+: [^=]+)=", r"\1 = ", piece.strip()) for piece in pieces]
    if len(line := f"{name}({', '.join(pieces)}){result}") <= WIDE:
        return line
    return "\n".join([f"{name}(", *(f"    {piece}," for piece in pieces), f"){result}"])


def is_marked(node, *names):
    return any(getattr(mark, "id", getattr(mark, "attr", "")) in names for mark in node.decorator_list)


def definitions(body):
    """The classes and functions by name, each with its overloads, if there are any, or itself."""
    out = {}
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not is_marked(node, "setter"):
            before = out.get(node.name, (None, []))[1]
            overloads = [each for each in before if is_marked(each, "overload")]
            out[node.name] = (node, [*overloads, node] if is_marked(node, "overload") else overloads or [node])
    return out


def signatures(nodes, name):
    return "```python\n" + "\n".join(signature(node, name) for node in nodes) + "\n```"


def blocks(text):
    """The lines of a docstring as Markdown."""
    lines = text.splitlines()
    out, section, i = [], "", 0
    while i < len(lines):
        line = lines[i]
        if i + 1 < len(lines) and line and lines[i + 1] and not lines[i + 1].strip("-"):
            section = line
            if section == "Examples":
                out += ["", "```python"]
            else:
                out += ["", f"*{section}*", ""]
            i += 2
            continue
        if section == "Examples":
            out.append(re.sub(r"^(>>>|\.\.\.) ?", "", line).replace("  # doctest: +SKIP", ""))
        elif section and line and not line.startswith(" "):
            body = []
            while i + 1 < len(lines) and (not lines[i + 1] or lines[i + 1].startswith(" ")):
                if i + 2 < len(lines) and lines[i + 1] and not lines[i + 1].startswith(" "):
                    break
                i += 1
                body.append(lines[i].strip())
            found = ITEM.match(line)
            kind = f" ({found['type']})" if found["type"] else ""
            names = ", ".join(f"`{name}`" for name in found["names"].split(", ")) if section in ("Parameters", "Attributes", "Raises") \
                else found["names"]
            words = " ".join(filter(None, body))
            out.append(f"- {names}{kind}{': ' + words if words else ''}")
        else:
            out.append(line)
        i += 1
    if section == "Examples":
        while not out[-1]:
            out.pop()
        out.append("```")
    text = "\n".join(out).strip()
    return re.sub(r"(?<!`)``(?!`)", "`", ROLE.sub(r"`\1`", text))


def members(node):
    """The public methods and properties of a class, in order, with their overloads."""
    for name, (item, all_of_it) in definitions(node.body).items():
        if isinstance(item, ast.FunctionDef) and (not name.startswith("_") or name == "__getitem__"):
            yield item, all_of_it


def entry(node, nodes, prefix):
    """One class or function as Markdown."""
    said = ast.get_docstring(node)
    if not said:
        raise SystemExit(f"{prefix}{node.name} has no docstring")
    if isinstance(node, ast.FunctionDef):
        return [f"### {prefix}{node.name}", "", signatures(nodes, prefix + node.name), "", blocks(said), ""]
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    out = [f"### {prefix}{node.name}{f' ({bases})' if bases and bases not in ('Record', 'TypedDict', 'Protocol') else ''}", ""]
    made = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
    if made and "Parameters" in said:
        out += [signatures([made], prefix + node.name), ""]
    out += [blocks(said), ""]
    for item, all_of_it in members(node):
        words = ast.get_docstring(item)
        if not words:
            raise SystemExit(f"{prefix}{node.name}.{item.name} has no docstring")
        text = blocks(words).replace("\n", "\n  ")
        if is_marked(item, "property"):
            head = f"**`{item.name}: {ast.unparse(item.returns)}`** "
        elif len(all_of_it) == 1 and "\n" not in (line := signature(item, item.name)):
            head = f"**`{line}`** "
        else:
            head = f"**`{item.name}`**\n\n  " + signatures(all_of_it, item.name).replace("\n", "\n  ") + "\n\n  "
        out.append(re.sub(r"\n\s*\n", "\n\n", f"- {head}{text}"))
    return [*out, ""]


def wrong_names(text):
    """Names that docstrings refer to and that are not public."""
    public_names = set(public(ast.parse((PACKAGE / "__init__.py").read_text()))) | {"Record"}
    here = {name for part in PARTS for name in part[2] or public(ast.parse((PACKAGE / part[1]).read_text()))}
    for name in public_names - here - {"__version__", "Record"}:
        yield f"{name} is public, and the reference does not have it"
    for _, path, names in PARTS:
        if path.startswith("_") and path != "_options.py":
            yield from (f"{name} is on the page, and not public" for name in names if name not in public_names)
    for kind, role in set(re.findall(ROLE.pattern.replace("(?:func", "(func"), text)):
        first = role.removeprefix("weighbridge.").split(".")[0]
        if kind in ("meth", "attr") and re.search(rf"^    (?:def )?{first}[(:]", text, re.M):
            continue
        if first not in here and not (PACKAGE / f"{first}.py").exists() and not (PACKAGE / first).is_dir() and not hasattr(builtins, first):
            yield f"a docstring refers to {role}, which is not public"


def page():
    out = [HEAD]
    for heading, path, names in PARTS:
        module = ast.parse((PACKAGE / path).read_text())
        found = definitions(module.body)
        prefix = "" if path == "_options.py" else "wb." if path.startswith("_") else "weighbridge.ray." if path.startswith("ray/_") else ""
        if heading:
            out += [f"## {heading}", ""]
        if not prefix and heading:
            out += [blocks(ast.get_docstring(module)), ""]
        for name in names or public(module):
            if name in found:
                out += entry(*found[name], prefix)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


if __name__ == "__main__":
    texts = "".join(path.read_text() for path in PACKAGE.glob("**/*.py"))
    if wrong := sorted(wrong_names(texts)):
        sys.exit("\n".join(wrong))
    made = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != made:
            sys.exit("docs/python-reference.md is not what the docstrings say: run `make docs`")
    else:
        PAGE.write_text(made)
