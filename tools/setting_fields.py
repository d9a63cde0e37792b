#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the fields of the configurations that transformers and sentence-transformers write, from their sources.

    tools/setting_fields.py FOLDER... >src/formats/huggingface/setting_fields_generated.inc

A FOLDER is an unpacked package (pip download --no-deps PACKAGE==VERSION, then unzip) whose name ends in its version:
transformers-4.57.6, sentence_transformers-6.2.0. Nothing is imported. The table of verdicts (embedding_settings.def)
must have a row for each field; a test compares them.
"""

from __future__ import annotations

import ast
import pathlib
import re
import sys

# Which classes write which file. A module's configuration is the table "module CLASS".
CONFIGS = {"PretrainedConfig": "config.json", "PreTrainedConfig": "config.json", "BertConfig": "config.json"}
MODULES = {"Transformer": "sentence_bert_config.json", "Pooling": "module Pooling", "Dense": "module Dense",
           "LayerNorm": "module LayerNorm", "Normalize": "module Normalize", "WeightedLayerPooling": "module WeightedLayerPooling",
           "Dropout": "module Dropout"}
# Parameters that say how to load, not what the model is.
LOADING = {"self", "kwargs", "cls"}
LEGACY = re.compile(r"^pooling_mode_[a-z_]+$")


def parsed(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def of_config(node: ast.ClassDef) -> set[str]:
    """Parameters of __init__, what it takes out of its keyword arguments, annotated fields, and what to_dict adds."""
    found = {item.target.id for item in node.body
             if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and "ClassVar" not in ast.unparse(item.annotation)}
    for item in node.body:
        if not isinstance(item, ast.FunctionDef) or item.name not in ("__init__", "__post_init__", "to_dict", "_remove_keys_not_serialized"):
            continue
        if item.name == "__init__":
            found |= {argument.arg for argument in item.args.args + item.args.kwonlyargs}
        for call in ast.walk(item):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ("pop", "get") and call.args \
                    and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str):
                found.add(call.args[0].value)
            if item.name == "to_dict" and isinstance(call, ast.Subscript) and isinstance(call.slice, ast.Constant) \
                    and isinstance(call.slice.value, str):
                found.add(call.slice.value)
    return found


def strings(node: ast.AST) -> set[str]:
    return {item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)}


def of_module(node: ast.ClassDef) -> set[str]:
    """config_keys and the parameters of __init__: older configurations hold what newer ones leave out."""
    found: set[str] = set()
    for item in ast.walk(node):
        targets = item.targets if isinstance(item, ast.Assign) else [item.target] if isinstance(item, ast.AnnAssign) else []
        for target in targets:
            name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
            if name in ("config_keys", "_DEFAULT_CONFIG_VALUES") and isinstance(item.value, (ast.List, ast.Dict)):  # type: ignore[union-attr]
                found |= {key.value for key in (item.value.elts if isinstance(item.value, ast.List) else item.value.keys)  # type: ignore[union-attr]
                          if isinstance(key, ast.Constant)}
            if name == "config_key_renames" and isinstance(item.value, ast.Dict):  # type: ignore[union-attr]
                found |= strings(item.value)  # type: ignore[union-attr]
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            found |= {argument.arg for argument in item.args.args + item.args.kwonlyargs}
    return found


def of_sentence_transformers(tree: ast.Module) -> set[str]:
    """Keys of config_sentence_transformers.json."""
    found: set[str] = set()
    for item in ast.walk(tree):
        if isinstance(item, ast.Subscript) and ast.unparse(item.value).endswith("_model_config") and isinstance(item.slice, ast.Constant):
            found.add(item.slice.value)
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr == "get" and item.args \
                and ast.unparse(item.func.value).endswith("model_config") and isinstance(item.args[0], ast.Constant):
            found.add(item.args[0].value)
        if isinstance(item, ast.FunctionDef) and item.name == "_get_model_config":
            for part in ast.walk(item):
                if isinstance(part, ast.Dict):
                    found |= {key.value for key in part.keys if isinstance(key, ast.Constant)}
                if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Subscript) and isinstance(part.targets[0].slice, ast.Constant):
                    found.add(part.targets[0].slice.value)
    return found - {"sentence_transformers", "transformers", "pytorch"}


def fields(package: pathlib.Path) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    root = next(path for path in (package / "transformers", package / "sentence_transformers") if path.is_dir())
    if root.name == "transformers":
        for name in ("configuration_utils.py", "models/bert/configuration_bert.py"):
            for node in ast.walk(parsed(root / name)):
                if isinstance(node, ast.ClassDef) and node.name in CONFIGS:
                    found |= {(CONFIGS[node.name], key) for key in of_config(node)}
        return {(file, key) for file, key in found if key not in LOADING}
    for path in root.rglob("*.py"):
        if path.name in ("Transformer.py", "transformer.py") or path.parent.name in ("models", "modules"):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.ClassDef) and node.name in MODULES:
                    found |= {(MODULES[node.name], key) for key in of_module(node)}
                if node.__class__ is ast.Assign and getattr(node.targets[0], "id", "") == "_LEGACY_POOLING_MODE_KWARGS":  # type: ignore[attr-defined]
                    found |= {("module Pooling", key) for key in strings(node.value) if LEGACY.match(key)}  # type: ignore[attr-defined]
        if path.name in ("SentenceTransformer.py", "model.py") and path.parent.name in ("sentence_transformers", "base", "sentence_transformer"):
            found |= {("config_sentence_transformers.json", key) for key in of_sentence_transformers(parsed(path))}
    return {(file, key) for file, key in found if key not in LOADING}


def version_of(package: pathlib.Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.search(r"-(\d+(?:\.\d+)*)", package.name).group(1).split("."))  # type: ignore[union-attr]


def main() -> None:
    packages = sorted((pathlib.Path(name) for name in sys.argv[1:]), key=lambda path: (path.name.split("-")[0], version_of(path)))
    seen: dict[tuple[str, str], list[str]] = {}
    for package in packages:
        version = ".".join(map(str, version_of(package)))
        for field in fields(package):
            seen.setdefault(field, []).append(version)
    names = " ".join(f"{'transformers' if (package / 'transformers').is_dir() else 'sentence-transformers'} {'.'.join(map(str, version_of(package)))},"
                     for package in packages).rstrip(",")
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Generated by tools/setting_fields.py: the fields of the configurations of")
    print(f"// {names}")
    for (file, key), versions in sorted(seen.items()):
        span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
        print(f'WB_FIELD("{file}", "{key}")  // {span}')


if __name__ == "__main__":
    main()
