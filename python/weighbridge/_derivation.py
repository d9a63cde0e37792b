# SPDX-License-Identifier: Apache-2.0
"""Whether a GGUF was made from a model."""

from __future__ import annotations

from . import _core
from ._jobs import _model_of
from ._progress import settings
from ._record import Record
from ._sources import to_input, to_optional_input

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .typing import Limits, ModelSource, Progress, Source, StrPath


class Deviation(Record):
    """How far the values of a tensor are from those that the source gives.

    Attributes
    ----------
    max_abs, rms, relative_rms : float
        The largest absolute difference; the root mean square of the differences; and the same divided by that of the values.
    """

    max_abs: float
    rms: float
    relative_rms: float


class DerivedTensor(Record):
    """A tensor of a GGUF that the source does not give.

    Attributes
    ----------
    what : str
        ``"bytes"`` (some blocks differ), ``"type"`` (another type or shape), ``"missing"`` (from the file) or ``"additional"`` (the source does not
        give it).
    name : str
        Of the tensor.
    found, made : str or None
        Type and shape in the file, and those that the source gives.
    blocks, unlike, first : int or None
        Its blocks; those that differ; and the index of the first of these.
    values : Deviation or None
        With `report`: how far the values differ.
    """

    what: str
    name: str
    found: str | None
    made: str | None
    blocks: int | None
    unlike: int | None
    first: int | None
    values: Deviation | None


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
    differences : list of DerivedTensor
        The first 1,000 of them.
    """

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
    differences: list[DerivedTensor]

    def __bool__(self) -> bool:
        return self.verdict in ("equal", "rebuilt with contraction")


def verify_derivation(
    file: Source, source: ModelSource, statement: StrPath | None, imatrix: Source | None, report: bool, limits: Limits | None, progress: Progress
) -> Derivation:
    import json

    text = ""
    if statement is not None:
        with open(statement, encoding="utf-8") as stated:
            text = stated.read(1 << 20) or " "
    derived = _core.derive_again(to_input(file), _model_of(source, limits), text, to_optional_input(imatrix), report,
                               settings(limits, progress, what="verify"))
    made = json.loads(derived)
    for each in made["differences"]:
        each["values"] = Deviation(**{key: float(value) for key, value in each["values"].items()}) if each["values"] else None
    made["differences"] = [DerivedTensor.of(each) for each in made["differences"]]
    return Derivation.of(made)


__all__ = ("Derivation", "DerivedTensor", "Deviation")
