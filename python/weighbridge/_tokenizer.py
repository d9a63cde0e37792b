# SPDX-License-Identifier: Apache-2.0
"""Text to ids and back, as the runtimes do it. Owns tokenizer() and Tokenizer."""

from __future__ import annotations

import warnings

from . import _core
from ._model import Model, _texts
from ._model import open as open_model
from ._sources import to_optional_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .typing import Source

_NO_LIMIT = 1 << 62


class Tokenizer:
    """The tokenizer of a model. Made by :func:`tokenizer`."""

    def __init__(self, handle: _core.Tokenizer, name: str) -> None:
        self._handle, self._name = handle, name

    @property
    def size(self) -> int:
        """Of the vocabulary: one more than the largest id."""
        return self._handle.size

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return [id for id, _ in self._handle.encode(text)]

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text, one for each id, as the vocabulary spells them. Bytes that are not UTF-8 become surrogates."""
        return [token for _, token in self._handle.encode(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without special tokens. Bytes that are not UTF-8, as of a character that the ids cut, become U+FFFD.

        A WordPiece vocabulary cannot give back the spaces of a text, nor case and accents that its model ignores.

        Raises
        ------
        UsageError
            An id that is not in the vocabulary.
        """
        return self._handle.decode(list(ids)).decode("utf-8", "replace")

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<weighbridge.Tokenizer of {self._name!r}, {self.size:,} tokens>"


def tokenizer(model: Model | Source, *, vocabulary: Source | None = None, special: bool = True, max_length: int | None = None, ignore_setting: str | Iterable[str] = ()) -> Tokenizer:
    """Opens the tokenizer of a model, without its weights.

    Parameters
    ----------
    model : Model, path, or what :func:`open` takes
        A model that has a tokenizer: a Hugging Face folder, a GGUF, a ``.slm``, a ``.zt`` made from one.
    vocabulary : path, buffer or file object, optional
        A ``vocab.txt`` for WordPiece, in place of the model's own.
    special : bool
        Whether :meth:`Tokenizer.encode` adds what the model begins and ends a text with: BOS and EOS, or [CLS] and [SEP].
    max_length : int, optional
        Keep at most so many ids of a text, at least 2.
    ignore_setting : str or iterable of str
        Settings of the tokenizer to pass over although this version does not follow them, as the error names them. A UserWarning says so.

    Returns
    -------
    Tokenizer

    Raises
    ------
    UsageError
        The model has no tokenizer.
    UnsupportedError
        Its tokenizer does something that this version does not do.
    """
    opened = model if isinstance(model, Model) else open_model(model)
    handle = _core.Tokenizer(opened._handle, to_optional_input(vocabulary), special, _NO_LIMIT if max_length is None else max_length, _texts(ignore_setting))
    for note in handle.notes:
        warnings.warn(f"{opened.name}: {note}", UserWarning, stacklevel=2)
    return Tokenizer(handle, opened.name)


__all__ = ("Tokenizer", "tokenizer")
