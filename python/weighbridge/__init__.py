# SPDX-License-Identifier: Apache-2.0
"""Open, prove, convert and run tensor files, whatever the container.

>>> import weighbridge as wb
>>> with wb.open("model.safetensors") as m:          # doctest: +SKIP
...     print(m["layers.0.weight"].numpy().mean())
>>> wb.verify("model.zt").findings                   # doctest: +SKIP
>>> wb.convert("model.safetensors", "model.zt")      # doctest: +SKIP
"""

from __future__ import annotations

from ._core import __version__
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
from ._jobs import Item, Plan, Verdict, convert, formats, hash, plan, save, verify
from ._model import Model, Tensor, open

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
    "Embedder", "Error", "Finding", "Generator", "InputOutputError", "Item", "LimitError", "MalformedError", "MissingFileError",
    "MissingTensorError", "Model", "Plan", "Tensor", "UnsupportedError", "UsageError", "Verdict", "__version__", "convert", "formats",
    "hash", "open", "plan", "save", "verify",
]
