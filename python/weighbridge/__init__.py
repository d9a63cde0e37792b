# SPDX-License-Identifier: Apache-2.0
"""Inspect, verify, convert, compare and run model files: safetensors, GGUF, PyTorch, ONNX, NumPy, HDF5 and more.

>>> import weighbridge as wb
>>> with wb.open("model.safetensors") as m:          # doctest: +SKIP
...     print(m["layers.0.weight"].numpy().mean())
>>> wb.verify("model.zt").findings                   # doctest: +SKIP
>>> wb.convert("model.safetensors", "model.zt")      # doctest: +SKIP
"""

from __future__ import annotations

from ._checks import Breach, Diagnosis, Explanation, PolicyVerdict, Verdict, check, check_cache, doctor, explain, verify
from ._core import __version__
from ._derivation import Derivation
from ._diff import Diff, MetadataDiff, TensorDiff, ValueDiff, diff
from ._edit import Edited, edit, left_journals, recover_folder, settle_edit, undo_edit
from ._errors import (
    Error,
    Finding,
    InputOutputError,
    LimitError,
    MalformedError,
    MissingFileError,
    MissingTensorError,
    UnsupportedError,
    UsageError,
)
from ._jobs import Item, LossWarning, Plan, Written, convert, formats, hash, plan, save
from ._manifest import ManifestVerdict, manifest
from ._model import Model, Tensor, open
from ._patch import apply, fold, make_patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._embed import Embedder
    from ._generate import Generator


def __getattr__(name: str) -> object:
    """The runtimes are imported when they are first used."""
    if name == "Embedder":
        from ._embed import Embedder

        return Embedder
    if name == "Generator":
        from ._generate import Generator

        return Generator
    raise AttributeError(f"module 'weighbridge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Breach", "Derivation", "Diagnosis", "Diff", "Edited", "Embedder", "Error", "Explanation", "Finding", "Generator", "InputOutputError", "Item",
    "LimitError", "LossWarning", "MalformedError", "ManifestVerdict", "MetadataDiff", "MissingFileError", "MissingTensorError", "Model", "Plan",
    "PolicyVerdict", "Tensor", "TensorDiff", "UnsupportedError", "UsageError", "ValueDiff", "Verdict", "Written", "__version__", "apply", "check",
    "check_cache", "convert", "diff", "doctor", "edit", "explain", "fold", "formats", "hash", "left_journals", "make_patch", "manifest", "open",
    "plan", "recover_folder", "save", "settle_edit", "undo_edit", "verify",
]
