#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/python-reference.md from the docstrings of the Python package, whose sections are those of NumPy's style. Reads the sources, so
nothing has to be built. --check: exits with 1 if the page is not what would be written."""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE, PAGE = ROOT / "python/weighbridge", ROOT / "docs/python-reference.md"
HEAD = """# Python reference

Written from the docstrings by `make docs`. [python.md](python.md) begins with three jobs and explains what is common to all.
`import weighbridge as wb` is assumed.
"""
# What the page shows: a heading, the module, and its public names; None: all of __all__.
PARTS = [
    ("Opening", "_model.py", ["open", "Model", "Tensor"]),
    ("Whole files", "_checks.py", ["verify", "Verdict", "check", "PolicyVerdict", "Breach", "doctor", "Diagnosis", "check_cache", "explain", "Explanation"]),
    ("", "_jobs.py", ["hash", "plan", "Plan", "Item", "convert", "Written", "LossWarning", "save", "formats"]),
    ("", "_options.py", ["ConvertOptions"]),
    ("What a GGUF was made from", "_derivation.py", ["Derivation"]),
    ("Signed lists of files", "_manifest.py", ["manifest", "ManifestVerdict"]),
    ("What changed", "_diff.py", ["diff", "Diff", "TensorDiff", "ValueDiff", "MetadataDiff"]),
    ("Patches", "_patch.py", ["make_patch", "apply", "fold"]),
    ("Editing", "_edit.py", ["edit", "undo_edit", "Edited"]),
    ("Runtimes", "_embed.py", ["Embedder"]),
    ("", "_generate.py", ["Generator"]),
    ("Errors", "_errors.py", ["Finding", "Error", "MalformedError", "UsageError", "LimitError", "UnsupportedError", "InputOutputError",
                              "MissingFileError", "MissingTensorError"]),
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
ITEM = re.compile(r"^(?P<names>[^\s].*?)(?: : (?P<type>.+))?$")


def public(module):
    """The names of a module: __all__, or the classes and functions without an underscore."""
    for node in module.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return [node.name for node in module.body if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_")]


def signature(function, method):
    """The parameters with their defaults, without annotations."""
    plain = ast.parse(ast.unparse(function)).body[0]
    plain.returns = None
    everything = [*plain.args.posonlyargs, *plain.args.args, *plain.args.kwonlyargs, plain.args.vararg, plain.args.kwarg]
    for argument in filter(None, everything):
        argument.annotation = None
    out = ast.unparse(plain.args)
    if method:
        out = re.sub(r"^(self|cls)(, |$)", "", out)
    return f"({out})"


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
    """The public methods and properties of a class, in order."""
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and (not item.name.startswith("_") or item.name == "__getitem__"):
            if any(isinstance(d, ast.Attribute) and d.attr == "setter" for d in item.decorator_list):
                continue
            yield item


def entry(node, prefix):
    """One class or function as Markdown."""
    said = ast.get_docstring(node)
    if not said:
        raise SystemExit(f"{prefix}{node.name} has no docstring")
    if isinstance(node, ast.FunctionDef):
        return [f"### {prefix}{node.name}", "", f"`{node.name}{signature(node, False)}`", "", blocks(said), ""]
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    out = [f"### {prefix}{node.name}{f' ({bases})' if bases and bases != 'Record' else ''}", ""]
    made = next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == "__init__"), None)
    if made and "Parameters" in said:
        out += [f"`{node.name}{signature(made, True)}`", ""]
    out += [blocks(said), ""]
    for item in members(node):
        words = ast.get_docstring(item)
        if not words:
            raise SystemExit(f"{prefix}{node.name}.{item.name} has no docstring")
        is_property = any(isinstance(d, ast.Name) and d.id == "property" for d in item.decorator_list)
        call = "" if is_property else signature(item, True)
        text = blocks(words).replace("\n", "\n  ")
        out.append(re.sub(r"\n\s*\n", "\n\n", f"- **`{item.name}{call}`** {text}"))
    return [*out, ""]


def page():
    out = [HEAD]
    for heading, path, names in PARTS:
        module = ast.parse((PACKAGE / path).read_text())
        found = {node.name: node for node in module.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        prefix = "wb." if path.startswith("_") else "weighbridge.ray." if path.startswith("ray/_") else ""
        if heading:
            out += [f"## {heading}", ""]
        if not prefix:
            out += [blocks(ast.get_docstring(module)), ""]
        for name in names or public(module):
            if name in found:
                out += entry(found[name], prefix)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


if __name__ == "__main__":
    made = page()
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != made:
            sys.exit("docs/python-reference.md is not what the docstrings say: run `make docs`")
    else:
        PAGE.write_text(made)
