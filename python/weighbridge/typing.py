# SPDX-License-Identifier: Apache-2.0
"""Types of arguments.

- ``Source``: what :func:`open` takes. A path, an address, a buffer, or a :class:`File`.
- ``ModelSource``: what functions over whole models take. A source, an open :class:`Model`, or a mapping from names to arrays.
- ``StrPath``: a path, as a str or an object such as ``pathlib.Path``.
- ``Limits``: a mapping from the names of limits to bytes (or numbers, for tensors and depth).
- ``Progress``: True shows a bar (tqdm); a callable gets (bytes done, bytes in all).
- ``Pem``: a key or certificate. Its path, or its text as bytes.
"""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, Union

from ._options import ConvertOptions

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._model import Model


class File(Protocol):
    """An open file, or another object that reads bytes from a position."""

    def read(self, size: int = ..., /) -> Any:
        """At most so many bytes."""

    def seek(self, offset: int, whence: int = ..., /) -> Any:
        """Moves to a position, as ``io.IOBase.seek``."""


StrPath = Union[str, "PathLike[str]"]
Source = Union[str, "PathLike[str]", "Buffer", File]
ModelSource = Union[Source, "Model", Mapping[str, Any]]
Limits = Mapping[str, int]
Progress = Union[bool, Callable[[int, int], object], None]
Pem = Union[str, "PathLike[str]", bytes]

__all__ = ("ConvertOptions", "File", "Limits", "ModelSource", "Pem", "Progress", "Source", "StrPath")
