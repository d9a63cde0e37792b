# SPDX-License-Identifier: Apache-2.0
"""What changed between two models."""

from __future__ import annotations

from . import _core
from ._jobs import _model_of
from ._model import _renamings, _texts
from ._progress import settings
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .typing import Limits, ModelSource, Progress


class ValueDiff(Record):
    """How the values of a tensor changed, in numbers that cover pairs of finite values. A complex element counts as two.

    Attributes
    ----------
    elements, changed, beyond : int
        All pairs; pairs that are not equal by value; pairs that changed by more than the tolerance.
    nans, infinite : int
        Pairs with one NaN; pairs with one infinity, or two of different signs.
    max_abs, max_relative : float
        The largest ``|b - a|``, and the largest ``|b - a| / |a|`` where a is not 0.
    rms, relative_rms : float
        The root mean square of ``b - a``, and the same divided by that of ``a``; None where undefined.
    cosine, snr : float
        Cosine similarity, and the signal-to-noise ratio in dB; None where undefined.
    first, largest : int
        Row-major index of the first element that changed, and of the first one that changed most; None if nothing did.
    """

    elements: int
    changed: int
    beyond: int
    nans: int
    infinite: int
    max_abs: float
    max_relative: float
    rms: float
    relative_rms: float | None
    cosine: float | None
    snr: float | None
    first: int | None
    largest: int | None


class TensorInfo(Record):
    """What a model says of a tensor.

    Attributes
    ----------
    name, dtype : str
        As of :class:`Tensor`.
    shape : list of int
        Slowest dimension first.
    """

    name: str
    dtype: str
    shape: list[int]


class TensorDiff(Record):
    """One tensor that differs between the models.

    Attributes
    ----------
    verdict : str
        ``"different"``, ``"only-a"``, ``"only-b"``, ``"incomparable"``, or ``"equal"`` (within a tolerance, or except for the bits of zeros and NaNs).
    a, b : TensorInfo or None
        Its name, dtype and shape in each model; None where a model has no such tensor.
    changes : list of str
        ``"renamed"``, ``"reshaped"``, ``"transposed"``, ``"permuted"``, ``"recast"``, ``"changed"``, ``"bits-only"``.
    by : str
        How the pair was matched: ``"name"``, ``"content"``, ``"guess"``; empty if only one model has the tensor.
    tied_to, order, why : str
        The tensor of the other model with the same content; the order of permuted rows; why `values` is None. Empty if it does not apply.
    scheme : str
        The quantization scheme of which the elements are codes; their stored bytes are compared, and there are no values. Empty for values.
    values : ValueDiff or None
        The numbers.
    """

    verdict: str
    a: TensorInfo | None
    b: TensorInfo | None
    changes: list[str]
    by: str = ""
    tied_to: str = ""
    order: str = ""
    why: str = ""
    scheme: str = ""
    values: ValueDiff | None = None

    @property
    def name(self) -> str:
        """Its name in the first model, or in the second if only that has it."""
        either = self.a or self.b
        return either.name if either else ""


class MetadataDiff(Record):
    """One difference of metadata or of a tokenizer.

    Attributes
    ----------
    key : str
        The attribute's key; for a tokenizer ``"kind"``, ``"size"``, ``"tokens"``, ``"merges"``, ``"special.bos"``.
    a, b : str or None
        Both values as text, cut if long; None if there is none.
    tensor : str
        The tensor, for an attribute of one; otherwise empty.
    first : int or None
        For two lists: the index of the first item that differs.
    """

    key: str
    a: str | None
    b: str | None
    tensor: str = ""
    first: int | None = None


class Diff(Record):
    """What :func:`diff` found.

    Attributes
    ----------
    equal : bool
        Nothing differs, and every tensor could be compared.
    tensors : list of TensorDiff
        Tensors that differ: those whose values changed, the largest change first; those that could not be compared; those that one model lacks; those with equal values under another name, in another type or in another order.
    metadata, tokenizer : list of MetadataDiff
        Differences.
    compared, same, different, incomparable : int
        Tensors in both models; equal ones among them that are not listed; tensors that differ or are in one model only; tensors that this
        build cannot compare.
    codes : int
        Tensors in both models that are codes of a quantization scheme: their stored bytes are compared, not their values.
    schemes : list of str
        The schemes of these, and of codes whose partner has values.
    moved, bytes : int
        Tensors at another position, which does not count as a difference; bytes of the first model's tensors once decoded.
    """

    equal: bool
    tensors: list[TensorDiff]
    metadata: list[MetadataDiff]
    tokenizer: list[MetadataDiff]
    compared: int
    same: int
    different: int
    incomparable: int
    codes: int
    schemes: list[str]
    moved: int
    bytes: int


def _tensor(found: dict[str, Any]) -> TensorDiff:
    for side in ("a", "b"):
        found[side] = TensorInfo(**found[side]) if found[side] else None
    if "values" in found:
        found["values"] = ValueDiff(**{key: float(value) if isinstance(value, str) else value for key, value in found["values"].items()})
    return TensorDiff(**found)


def diff(a: ModelSource, b: ModelSource, *, atol: float | None = None, rtol: float | None = None, exact: bool = False, only: Iterable[str] | str = (),
         without: Iterable[str] | str = (), rename: Mapping[str, str] | Iterable[str] | str = (), match: str = "guess", permuted: bool = False,
         metadata: bool = True, naming: str | None = None, limits: Limits | None = None, progress: Progress = None) -> Diff:
    """Compares two models, whatever their containers, tensor by tensor, in constant memory.

    Parameters
    ----------
    a, b : Model, path, mapping of arrays, or what :func:`open` takes
        The models.
    atol, rtol : float, optional
        Only values count, whatever the dtype: ``|b - a| <= atol + rtol * |b|``, as in numpy.allclose.
    exact : bool
        Compare bits: 0 and -0 differ, and so do NaNs with different bits.
    only, without : str or list of str
        Globs of the tensors to compare, and to leave out.
    rename : mapping, str or list of str
        Names of `a` and their names in `b`; or patterns ``"s/PATTERN/REPLACEMENT/"``.
    match : str
        How to find a tensor whose name the other model lacks: ``"names"`` (do not look), ``"content"``, ``"guess"``.
    permuted : bool
        Also look for permuted rows, also under another name, transposed square matrices and tied tensors.
    metadata : bool
        Compare metadata and tokenizers.
    naming : str, optional
        ``"llama"``: compare a Llama or a BERT by the names and the row order of llama.cpp.
    limits, progress
        As for :func:`open` and :func:`verify`.

    Examples
    --------
    >>> found = wb.diff("model.safetensors", "tuned.safetensors", rtol=1e-3)
    >>> found.equal, found.tensors[0].name, found.tensors[0].values.changed
    (False, 'embeddings.LayerNorm.weight', 32)
    """
    import json

    options = dict(atol=atol, rtol=rtol, exact=exact, only=_texts(only), without=_texts(without), rename=_renamings(rename), match=match,
                   permuted=permuted, metadata=metadata, naming=naming)
    found = json.loads(_core.diff(_model_of(a, limits), _model_of(b, limits), options, settings(limits, progress, what="diff")))
    found["tensors"] = [_tensor(each) for each in found["tensors"]]
    for field in ("metadata", "tokenizer"):
        found[field] = [MetadataDiff(**each) for each in found[field]]
    found.setdefault("codes", 0)
    found.setdefault("schemes", [])
    return Diff.of(found)


__all__ = ("Diff", "MetadataDiff", "TensorDiff", "TensorInfo", "ValueDiff", "diff")
