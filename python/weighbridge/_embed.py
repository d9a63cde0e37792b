# SPDX-License-Identifier: Apache-2.0
"""Sentence embeddings. Owns Embedder, which takes the arguments of sentence-transformers."""

from __future__ import annotations

import os
import warnings

from . import _core
from ._errors import MissingFileError, UsageError
from ._model import Model, _texts
from ._model import open as open_model
from ._progress import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal, overload

    import numpy as np
    import torch

    from ._core import ArrowVectors
    from .typing import Progress, StrPath
else:

    def overload(function: object) -> object:
        return function



class Embedder:
    """A BERT encoder or a table of word vectors (model2vec): texts to vectors.

    Parameters
    ----------
    model : Model or path
        Any container that holds one: a Hugging Face folder, ``.weights``, ``.zt``.
    precision : {"f32", "f16", "bf16", "int8"}
        Of products with weights.
    pooling : {"mean", "cls", "max", "mean_sqrt_len", "weightedmean", "lasttoken"}, optional
    normalize, lower_case, max_length, heads
        As the model says, unless given.
    allow : {"part"}, optional
        Run a model of which files are missing.
    threads : int
        0: one for each processor.
    prompts : dict of str, optional
        Texts put before each text, by name (``{"query": "query: "}``). By default those of the model, from the folder's
        config_sentence_transformers.json.
    default_prompt_name : str, optional
    truncate_dim : int, optional
        Keep so many numbers of each vector, unless :meth:`encode` says otherwise.
    ignore_setting : sequence of str
        Settings of the model to pass over although this build does not follow them: keys, as the error names them.

    A setting that is not known, or passed over, is a UserWarning.
    """

    def __init__(
        self,
        model: Model | StrPath,
        *,
        precision: str = "f32",
        pooling: str | None = None,
        normalize: bool | None = None,
        lower_case: bool | None = None,
        max_length: int | None = None,
        heads: int | None = None,
        threads: int = 0,
        prompts: dict[str, str] | None = None,
        default_prompt_name: str | None = None,
        truncate_dim: int | None = None,
        allow: Iterable[str] | str = (),
        ignore_setting: Iterable[str] | str = (),
    ) -> None:
        allow, ignore_setting = _texts(allow), _texts(ignore_setting)
        self._arguments = (model if isinstance(model, Model) else os.path.abspath(model),
                           dict(precision=precision, pooling=pooling, normalize=normalize, lower_case=lower_case, max_length=max_length,
                                heads=heads, threads=threads, prompts=prompts, default_prompt_name=default_prompt_name,
                                truncate_dim=truncate_dim, allow=allow, ignore_setting=ignore_setting))
        opened = model if isinstance(model, Model) else _open_folder(model)
        self._model = opened._handle  # stays open when `model` is closed
        self._name = opened.name
        self._facts: dict[str, str] | None = None
        self._embedder = _core.Embedder(self._model, threads, dict(precision=precision, pooling=pooling, normalize=normalize, lower_case=lower_case,
                                                                   max_length=max_length, heads=heads, allow=allow, ignore_setting=ignore_setting))
        for note in self._embedder.notes:
            warnings.warn(f"{self._name}: {note}", UserWarning, stacklevel=2)
        stored = self._model.attributes().get("default_prompt_name") if prompts is None else None
        self.prompts: dict[str, str] = dict(self._embedder.prompts if prompts is None else prompts)
        self.default_prompt_name: str | None = default_prompt_name if default_prompt_name is not None else stored
        self.truncate_dim = truncate_dim
        self._prompt(None)  # raises if the default one is not there

    @property
    def dimension(self) -> int:
        """Numbers in a vector."""
        return self._embedder.dimension

    def get_embedding_dimension(self) -> int:
        """Numbers in a vector, by the name of sentence-transformers."""
        return self.dimension

    get_sentence_embedding_dimension = get_embedding_dimension

    @property
    def max_seq_length(self) -> int:
        """Tokens that are read of a text."""
        return self._embedder.max_length

    @overload
    def encode(
        self, inputs: str | Sequence[str] | None = None, prompt_name: str | None = None, prompt: str | None = None, batch_size: int = 32,
        show_progress_bar: bool | None = None, *, convert_to_numpy: Literal[True] = True, convert_to_tensor: Literal[False] = False,
        normalize_embeddings: bool = False, truncate_dim: int | None = None,
        precision: str = "float32", device: str | None = None, sentences: str | Sequence[str] | None = None
    ) -> np.ndarray[Any, Any]: ...
    @overload
    def encode(
        self, inputs: str | Sequence[str] | None = None, prompt_name: str | None = None, prompt: str | None = None, batch_size: int = 32,
        show_progress_bar: bool | None = None, *, convert_to_tensor: Literal[True], convert_to_numpy: bool = True,
        normalize_embeddings: bool = False, truncate_dim: int | None = None,
        precision: str = "float32", device: str | None = None, sentences: str | Sequence[str] | None = None
    ) -> torch.Tensor: ...
    @overload
    def encode(
        self, inputs: str | Sequence[str] | None = None, prompt_name: str | None = None, prompt: str | None = None, batch_size: int = 32,
        show_progress_bar: bool | None = None, *, convert_to_numpy: Literal[False], convert_to_tensor: Literal[False] = False,
        normalize_embeddings: bool = False, truncate_dim: int | None = None,
        precision: str = "float32", device: str | None = None, sentences: str | Sequence[str] | None = None
    ) -> list[np.ndarray[Any, Any]]: ...
    def encode(
        self,
        inputs: str | Sequence[str] | None = None,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        *,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        precision: str = "float32",
        device: str | None = None,
        sentences: str | Sequence[str] | None = None,
    ) -> np.ndarray[Any, Any] | list[np.ndarray[Any, Any]] | torch.Tensor:
        """Vectors of texts.

        Parameters
        ----------
        inputs : str or sequence of str
        prompt_name, prompt : str, optional
            A text to put before each: by its name in `prompts`, or itself.
        batch_size : int
            Has no effect on the result. Texts are computed in batches of similar length, whose tokens bound the memory.
        show_progress_bar : bool, optional
            Shows a bar (tqdm).
        convert_to_tensor : bool
            Return a tensor of PyTorch.
        normalize_embeddings : bool
            Scale each vector to length 1, after truncate_dim; a model may do so anyway.
        truncate_dim : int, optional
            Keep so many numbers of each vector.
        precision : {"float32", "int8", "uint8", "binary", "ubinary"}
            Of the result. ``binary`` and ``ubinary`` pack signs into bytes; ``int8`` and ``uint8`` use the range of these vectors.
        device : {"cpu"}, optional
            There is no other.
        sentences : str or sequence of str, optional
            The name of `inputs` in older versions of sentence-transformers.

        Returns
        -------
        numpy.ndarray
            float32 [texts, dimension], in the order of the texts; [dimension] for one str. With `convert_to_tensor` a tensor of PyTorch, and without
            `convert_to_numpy` a list of arrays.
        """
        import numpy

        if device not in (None, "cpu"):
            raise UsageError(f"vectors are computed on the CPU, not on {device!r}")
        truncate_dim = truncate_dim if truncate_dim is not None else self.truncate_dim
        inputs = inputs if inputs is not None else sentences
        if inputs is None:
            raise TypeError("encode() needs texts")
        single = isinstance(inputs, str)
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        prefix = prompt if prompt is not None else self._prompt(prompt_name)
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                raise UsageError(f"text {i} is a {type(text).__name__}, not a str")
        vectors = numpy.empty((len(texts), self.dimension), numpy.float32)
        self._embedder.embed(texts, vectors, settings(None, show_progress_bar or None, 1, "embed", "text"), prefix)
        if truncate_dim is not None and truncate_dim < 1:
            raise UsageError(f"truncate_dim is at least 1, not {truncate_dim}")
        if truncate_dim is not None:
            vectors = numpy.ascontiguousarray(vectors[:, :truncate_dim])
        if normalize_embeddings:
            vectors /= numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        out: Any = _quantized(vectors, precision)
        if single:
            out = out[0]
        if convert_to_tensor:
            import torch

            return torch.from_numpy(out)
        return out if convert_to_numpy else list(out)

    def encode_query(self, inputs: str | Sequence[str], **arguments: Any) -> Any:
        """:meth:`encode` with the prompt "query", or none if there is none: never with the default one."""
        return self.encode(inputs, **self._with("query", arguments))

    def encode_document(self, inputs: str | Sequence[str], **arguments: Any) -> Any:
        """:meth:`encode` with the prompt "document", or none if there is none: never with the default one."""
        return self.encode(inputs, **self._with("document", arguments))

    def _with(self, role: str, arguments: dict[str, Any]) -> dict[str, Any]:
        given = arguments.get("prompt") is not None or arguments.get("prompt_name") is not None
        return arguments if given else {**arguments, "prompt": self.prompts.get(role, "")}

    def embed_arrow(self, texts: Any, *, progress: Progress = None) -> ArrowVectors:
        """Vectors of a column of texts, by the Arrow C data interface. Needs neither NumPy nor pyarrow.

        Parameters
        ----------
        texts : array or stream of Arrow
            What has ``__arrow_c_array__`` or ``__arrow_c_stream__``: an array or a chunked array of pyarrow, a column of Polars, ... of
            utf8, large_utf8 or string_view.
        progress : bool or callable
            As for :func:`weighbridge.verify`, of texts in a chunk.

        Returns
        -------
        ArrowVectors
            A column of ``FixedSizeList<float32>[dimension]`` with the chunks of `texts`, for ``pyarrow.array()``,
            ``pyarrow.chunked_array()``, ``polars.Series()``. A null text has a null vector. The type's metadata holds :attr:`facts`.
        """
        return _core.embed_arrow(self._embedder, texts, list(self.facts.items()), settings(None, progress, 1, "embed", "text"),
                                 self._prompt(None))

    @property
    def facts(self) -> dict[str, str]:
        """What made the vectors, as Arrow metadata: ``weighbridge.model`` (the content digest of the weights),
        ``weighbridge.kind`` (vectors of equal kinds may be compared), and precision, pooling, normalize, max_length and version."""
        if self._facts is None:
            e = self._embedder
            model, kind = e.digests(settings())
            self._facts = {
                "weighbridge.model": model, "weighbridge.kind": kind,
                "weighbridge.precision": e.precision, "weighbridge.pooling": e.pooling, "weighbridge.normalize": str(e.normalize).lower(),
                "weighbridge.max_length": str(e.max_length), "weighbridge.version": _core.__version__}
        return dict(self._facts)

    @property
    def kind(self) -> str:
        """``"wbv1:"`` and 64 digits: a digest of everything that determines the bits of the vectors: weights,
        vocabulary, precision, pooling and other options. The same in every container of a model and with any number of
        threads."""
        return self.facts["weighbridge.kind"]

    def require_kind(self, made: Any) -> None:
        """Raises UsageError if vectors are of another :attr:`kind`.

        Parameters
        ----------
        made : str, or a field, schema, table or column of pyarrow
            The kind, or an object with the kind in its metadata.
        """
        other = made if isinstance(made, str) else _kind_of(made)
        if other != self.kind:
            raise UsageError(f"the vectors are of the kind {other!r}, and {self._name} with these options makes {self.kind!r}: vectors of two "
                             "kinds cannot be compared. Use the model and the options that made them, or compute them again")

    def similarity(self, one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The cosine of each vector of `one` with each of `two`: [len(one), len(two)]."""
        import numpy

        def unit(vectors: Any) -> Any:
            vectors = numpy.atleast_2d(vectors)
            return vectors / numpy.maximum(numpy.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)

        return unit(one) @ unit(two).T  # type: ignore[no-any-return]

    def similarity_pairwise(self, one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The cosine of each vector of `one` with that of `two` at its place: [len(one)]."""
        import numpy

        one, two = numpy.atleast_2d(one), numpy.atleast_2d(two)
        lengths = numpy.linalg.norm(one, axis=1) * numpy.linalg.norm(two, axis=1)
        return (one * two).sum(axis=1) / numpy.maximum(lengths, 1e-12)  # type: ignore[no-any-return]

    def tokenize(self, text: str, *, max_length: int = 0) -> list[int]:
        """The ids of a text, [CLS] and [SEP] included. `max_length` 0: no limit."""
        return self._embedder.tokenize(text, max_length)

    def _prompt(self, name: str | None) -> str:
        name = name if name is not None else self.default_prompt_name
        if name is None:
            return ""
        if name not in self.prompts:
            raise UsageError(f"no prompt is called {name!r}; there are {sorted(self.prompts)}")
        return self.prompts[name]

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, self._arguments

    def __repr__(self) -> str:
        e = self._embedder
        return f"<weighbridge.Embedder {self._name!r}, {e.dimension} numbers, {e.pooling}, {e.precision}, {e.threads} threads>"


def _kind_of(made: Any) -> str | None:
    """The kind in the metadata of a field, or of the fields of a schema or a table; None if there is none."""
    schema = getattr(made, "schema", made)
    found = set()
    for one in (schema, *(schema if hasattr(schema, "field") and hasattr(schema, "names") else ())):
        said = (getattr(one, "metadata", None) or {}).get(b"weighbridge.kind")
        if said is not None:
            found.add(said.decode("utf-8", "replace"))
    if len(found) > 1:
        raise UsageError(f"these vectors are of several kinds: {sorted(found)}")
    return found.pop() if found else None


def _open_folder(model: StrPath) -> Model:
    try:
        return open_model(model)
    except MissingFileError as error:
        raise MissingFileError(f"{error}. A model of a hub has to be downloaded first: give its folder", error.finding) from None


def _restore(model: Any, arguments: dict[str, Any]) -> Embedder:
    return Embedder(model, **arguments)


def _quantized(vectors: Any, precision: str) -> Any:
    import numpy

    if precision == "float32":
        return vectors
    if precision in ("binary", "ubinary"):
        packed = numpy.packbits(vectors > 0, axis=1)
        return packed if precision == "ubinary" else (packed.astype(numpy.int16) - 128).astype(numpy.int8)
    if precision in ("int8", "uint8") and not len(vectors):
        return vectors.astype(precision)
    if precision in ("int8", "uint8"):
        low, high = vectors.min(axis=0), vectors.max(axis=0)
        steps = (high - low) / 255
        codes = (vectors - low) / numpy.where(steps > 0, steps, 1)
        return codes.astype(numpy.uint8) if precision == "uint8" else (codes - 128).astype(numpy.int8)
    raise UsageError(f"precision is float32, int8, uint8, binary or ubinary, not {precision!r}")
