# SPDX-License-Identifier: Apache-2.0
"""Inspect, verify, convert, compare and run model files: safetensors, GGUF, PyTorch, ONNX, NumPy, HDF5 and more.

>>> import weighbridge as wb
>>> with wb.open("model.safetensors") as m:
...     print(m["embeddings.LayerNorm.weight"].numpy().shape)
(32,)
>>> wb.verify("model.safetensors").findings
[]
>>> wb.convert("model.safetensors", "model.zt").format
'zt'
"""

from __future__ import annotations

from ._checks import (
    Advice,
    Breach,
    ByteRange,
    CacheEntry,
    Diagnosis,
    Explanation,
    PolicyVerdict,
    Salvaged,
    Span,
    Verdict,
    check,
    check_cache,
    doctor,
    explain,
    salvage,
    verify,
)
from ._core import __version__
from ._derivation import Derivation, DerivedTensor, Deviation
from ._diff import Diff, MetadataDiff, TensorDiff, TensorInfo, ValueDiff, diff
from ._edit import Edited, Journal, Step, edit, left_journals, recover_folder, settle_edit, undo_edit
from ._errors import (
    Error,
    Finding,
    Hint,
    InputOutputError,
    LimitError,
    MalformedError,
    MissingFileError,
    MissingTensorError,
    UnsupportedError,
    UsageError,
)
from ._jobs import Cast, Format, Item, LossWarning, Plan, Written, convert, formats, hash, plan, save
from ._manifest import FileDifference, Manifest, ManifestVerdict, manifest
from ._model import Model, Part, Stats, StoredWeight, Tensor, open
from ._patch import Patch, apply, fold, make_patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._core import ArrowVectors
    from ._embed import Embedder
    from ._generate import Completion, Generator
    from ._tokenizer import Tokenizer, tokenizer

_LATER = {"ArrowVectors": "_core", "Completion": "_generate", "Embedder": "_embed", "Generator": "_generate", "Tokenizer": "_tokenizer",
          "tokenizer": "_tokenizer"}


def __getattr__(name: str) -> object:
    """The runtimes are imported when they are first used."""
    if name in _LATER:
        from importlib import import_module

        return getattr(import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module 'weighbridge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Advice", "ArrowVectors", "Breach", "ByteRange", "CacheEntry", "Cast", "Completion", "Derivation", "DerivedTensor", "Deviation", "Diagnosis",
    "Diff", "Edited", "Embedder", "Error", "Explanation", "FileDifference", "Finding", "Format", "Generator", "Hint", "InputOutputError", "Item",
    "Journal", "LimitError", "LossWarning", "MalformedError", "Manifest", "ManifestVerdict", "MetadataDiff", "MissingFileError",
    "MissingTensorError", "Model", "Part", "Patch", "Plan", "PolicyVerdict", "Salvaged", "Span", "Stats", "Step", "StoredWeight", "Tensor",
    "TensorDiff", "TensorInfo", "Tokenizer", "UnsupportedError", "UsageError", "ValueDiff", "Verdict", "Written", "__version__", "apply", "check",
    "check_cache", "convert", "diff", "doctor", "edit", "explain", "fold", "formats", "hash", "left_journals", "make_patch", "manifest", "open",
    "plan", "recover_folder", "salvage", "save", "settle_edit", "tokenizer", "undo_edit", "verify",
]
