# SPDX-License-Identifier: Apache-2.0
"""The stub of the extension module names what the module has, and nothing else."""
import ast
import pathlib

import weighbridge
from weighbridge import _core

STUB = pathlib.Path(weighbridge.__file__).with_name("_core.pyi")


def test_the_stub_has_the_names_of_the_module():
    stated = {}
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ClassDef):
            stated[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            stated[node.name] = None
    found = {}
    for name, value in vars(_core).items():
        if name.startswith("__"):
            continue
        found[name] = {n for n in vars(value) if not n.startswith("__") or n in ("__init__", "__len__") or n.startswith("__arrow")} if isinstance(value, type) else None
    for name, members in found.items():
        if members is not None and "__init__" in members and "__init__" not in stated.get(name, ()):
            members.discard("__init__")
    assert stated == found
    assert STUB.with_name("py.typed").exists()


def test_every_public_class_and_function_is_in_all():
    """doctor, check_cache and their results were not, so a strict type checker refused them."""
    public = {name for name, value in vars(weighbridge).items()
              if not name.startswith("_") and getattr(value, "__module__", "").startswith("weighbridge")}
    assert public <= set(weighbridge.__all__)
