# SPDX-License-Identifier: Apache-2.0
"""Whether a GGUF was made from a model."""

from __future__ import annotations

from . import _core
from ._jobs import _model_of
from ._progress import settings
from ._record import Record
from ._sources import to_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    from ._model import Limits, Progress


class Derivation(Record):
    """What :func:`verify` found with `derived_from`. Truthy if every byte of every tensor was made again.

    Attributes
    ----------
    verdict : str
        ``"equal"``, ``"rebuilt with contraction"``, ``"not from this source"`` or ``"not claimed"``.
    unclaimed : str or None
        Why nothing is claimed.
    quantize : str or None
        The type or the mix of the file.
    pure, imatrix : bool
        Made without the exceptions of the mix; made with an importance matrix.
    chosen, tensors, bytes : int
        Tensors whose type is not that of the mix; tensors that were compared; and their bytes.
    as_ggml, contracted : int
        Tensors with blocks that are equal with `as_ggml` only; blocks that are equal only as a GGML for processors with FMA gives them.
    header : bool
        The header is also what :func:`convert` writes.
    unlike : int
        Tensors that differ.
    differences : list of dict
        The first 1,000 of them: ``what``, ``name``, ``found``, ``made``, ``blocks``, ``unlike``, ``first``, ``values``.
    """

    __slots__ = ("verdict", "unclaimed", "quantize", "pure", "imatrix", "chosen", "tensors", "bytes", "as_ggml", "contracted", "header", "unlike",
                 "differences")
    if TYPE_CHECKING:
        verdict: str
        unclaimed: str | None
        quantize: str | None
        pure: bool
        imatrix: bool
        chosen: int
        tensors: int
        bytes: int
        as_ggml: int
        contracted: int
        header: bool
        unlike: int
        differences: list[dict[str, Any]]

    def __bool__(self) -> bool:
        return self.verdict in ("equal", "rebuilt with contraction")


def verify_derivation(
    file: Any, source: Any, statement: str | os.PathLike[str] | None, imatrix: Any, report: bool, limits: Limits | None, progress: Progress
) -> Derivation:
    import json

    text = ""
    if statement is not None:
        with open(statement, encoding="utf-8") as stated:
            text = stated.read(1 << 20) or " "
    found = _core.derive_again(to_input(file), _model_of(source, limits), text, None if imatrix is None else to_input(imatrix), report,
                               settings(limits, progress, what="verify"))
    return Derivation.of(json.loads(found))


__all__ = ("Derivation",)
