# SPDX-License-Identifier: Apache-2.0
"""The provider for Daft. Its classes derive from Daft's, so this module is imported only if Daft is installed."""

from __future__ import annotations

from daft import DataType
from daft.ai.protocols import TextEmbedder, TextEmbedderDescriptor
from daft.ai.provider import Provider
from daft.ai.typing import EmbeddingDimensions, UDFOptions

from ._embed import Embedder
from ._errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class WeighbridgeEmbedder(TextEmbedder):  # type: ignore[misc, unused-ignore]
    """The model in a Daft process."""

    def __init__(self, model: str, options: dict[str, Any]) -> None:
        self._embedder = Embedder(model, **options)

    def embed_text(self, text: list[str]) -> list[Any]:
        """The vectors of a batch."""
        vectors = self._embedder.encode([one or "" for one in text])
        return [vector if one is not None else None for one, vector in zip(text, vectors)]


class WeighbridgeDescriptor(TextEmbedderDescriptor):  # type: ignore[misc, unused-ignore]
    """What Daft ships to its workers: the path and the options."""

    def __init__(self, provider: str, model: str, options: dict[str, Any]) -> None:
        self._provider, self._model = provider, model
        # These options are Daft's own, for its workers; the others are for the model.
        self._udf = {name: options.pop(name) for name in ("batch_size", "max_retries", "on_error", "concurrency", "num_gpus") if name in options}
        self._options = options
        self._dimension = Embedder(model, **options).dimension

    def get_provider(self) -> str:
        """The name of the provider."""
        return self._provider

    def get_model(self) -> str:
        """The path of the model."""
        return self._model

    def get_options(self) -> dict[str, Any]:
        """The options of the model."""
        return dict(self._options)

    def get_dimensions(self) -> EmbeddingDimensions:
        """Numbers in a vector."""
        return EmbeddingDimensions(size=self._dimension, dtype=DataType.float32())

    def get_udf_options(self) -> UDFOptions:
        """How Daft calls it."""
        return UDFOptions(**{"batch_size": 256, **self._udf})

    def instantiate(self) -> TextEmbedder:
        """The embedder, made in a worker."""
        return WeighbridgeEmbedder(self._model, self._options)


class WeighbridgeProvider(Provider):  # type: ignore[misc, unused-ignore]
    """Embedders of weighbridge, for embed_text()."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        """The name by which embed_text() finds it."""
        return self._name

    def get_text_embedder(self, model: str | None = None, dimensions: int | None = None, **options: Any) -> TextEmbedderDescriptor:
        """The embedder of a model."""
        if model is None or dimensions is not None:
            raise UsageError("give model= the path of a sentence encoder, and leave dimensions out: its vectors cannot be shortened")
        return WeighbridgeDescriptor(self._name, model, dict(options))
