# SPDX-License-Identifier: Apache-2.0
"""Text generation. Owns Generator and Completion."""

from __future__ import annotations

import codecs
import itertools
import os
import random
import time

from . import _core
from ._model import Model, _texts
from ._model import open as open_model
from ._progress import settings
from ._record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any, Literal, overload

    from .typing import StrPath
else:

    def overload(function: object) -> object:
        return function

_FINISH = {"eos": "stop", "text": "stop", "length": "length", "context": "length", "cancelled": "stop"}
_ids = itertools.count(1)


class Completion(Record):
    """A text that :meth:`Generator.generate` made, or a piece of one. Keys give what they give of OpenAI's completions:
    ``out["choices"][0]["text"]``, ``out["usage"]``; :meth:`asdict` gives all of that.

    Attributes
    ----------
    text : str
        What was generated.
    finish_reason : str or None
        ``"stop"`` (the model ended the text, or a text of `stop` came) or ``"length"``; None for a piece before the last one.
    model : str
        What was opened.
    id : str
        Another one for each completion and piece.
    created : int
        When, in seconds since 1970.
    prompt_tokens, completion_tokens : int or None
        Tokens of the prompt and of the text; None for a piece.
    """

    text: str
    finish_reason: str | None
    model: str
    id: str
    created: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def asdict(self) -> dict[str, Any]:
        """A completion as OpenAI's, for JSON."""
        out: dict[str, Any] = {"id": self.id, "object": "text_completion", "created": self.created, "model": self.model, "choices": [
            {"text": self.text, "index": 0, "logprobs": None, "finish_reason": self.finish_reason}]}
        if self.prompt_tokens is not None and self.completion_tokens is not None:
            out["usage"] = {"prompt_tokens": self.prompt_tokens, "completion_tokens": self.completion_tokens,
                            "total_tokens": self.prompt_tokens + self.completion_tokens}
        return out

    def __getitem__(self, key: str) -> Any:
        """What a key of OpenAI's completions gives."""
        return self.asdict()[key]


class Generator:
    """A language model of Llama's architecture: ``.slm``, a Hugging Face folder, or any container that holds one.

    Parameters
    ----------
    model : Model or path
    precision : {"exact", "fast"}
        ``fast`` rounds activations to 8 bits where weights are quantized.
    context : int
        Tokens that a text may have; 0: as many as the model can.
    threads : int
        0: one for each processor.
    allow : {"part"}, optional
        Run a model of which files are missing.
    """

    def __init__(self, model: Model | StrPath, *, precision: str = "exact", context: int = 0, threads: int = 0,
                 allow: Iterable[str] | str = ()) -> None:
        opened = model if isinstance(model, Model) else open_model(model)
        self._name = opened.name
        self._generator = _core.Generator(opened._handle, threads, dict(context=context or None, precision=precision, allow=_texts(allow)))

    @property
    def context(self) -> int:
        """Tokens that a text can have."""
        return self._generator.context

    @property
    def vocabulary(self) -> int:
        """Number of tokens that the model knows."""
        return self._generator.vocabulary

    @overload
    def generate(
        self, prompt: str = "", *, max_tokens: int | None = 256, temperature: float = 0.0, top_k: int = 0, top_p: float = 1.0,
        seed: int | None = 1, stop: str | Sequence[str] | None = (), stream: Literal[False] = False, echo: bool = False
    ) -> Completion: ...
    @overload
    def generate(
        self, prompt: str = "", *, stream: Literal[True], max_tokens: int | None = 256, temperature: float = 0.0, top_k: int = 0,
        top_p: float = 1.0, seed: int | None = 1, stop: str | Sequence[str] | None = (), echo: bool = False
    ) -> Iterator[Completion]: ...
    def generate(
        self,
        prompt: str = "",
        *,
        max_tokens: int | None = 256,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int | None = 1,
        stop: str | Sequence[str] | None = (),
        stream: bool = False,
        echo: bool = False,
    ) -> Completion | Iterator[Completion]:
        """Continues a text.

        Parameters
        ----------
        prompt : str
        max_tokens : int or None
            None, or less than 0: until the model ends the text or the context is full.
        temperature : float
            0: always the likeliest token.
        top_k, top_p, seed
            Keep the likeliest tokens, so many (at most 1,024) or up to this probability, and draw one. A seed of None, or less than 0, is
            another each time.
        stop : str or sequence of str
            Ends before the first of these.
        stream : bool
            Return an iterator of pieces, each with the text that was added.
        echo : bool
            Put the prompt before the text.

        Returns
        -------
        Completion, or iterator of Completion
        """
        if not isinstance(prompt, str):
            raise TypeError(f"the prompt is a str, not {type(prompt).__name__}")
        stops = [stop] if isinstance(stop, str) else list(stop or ())
        most = self.context if max_tokens is None or max_tokens < 0 else max_tokens
        drawn = random.getrandbits(63) if seed is None or seed < 0 else seed
        running = self._generator.begin(prompt, dict(max_tokens=most, temperature=temperature, top_k=top_k if top_k > 0 else None, top_p=top_p,
                                                     seed=drawn, stop=stops))
        chunks = self._chunks(running)
        if stream:
            return itertools.chain([self._answer(prompt, None)], chunks) if echo else chunks
        for _ in chunks:
            pass
        made = running.result()
        # A character that generation cut becomes U+FFFD, as in a stream and in the command.
        text = made["text"].encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return self._answer((prompt if echo else "") + text, _FINISH[made["stopped"]], made["prompt_tokens"], len(made["tokens"]))

    __call__ = generate

    def _chunks(self, running: _core.Stream) -> Iterator[Completion]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        at, more = 0, True
        while more:
            more = running.step()
            piece = running.text_from(at)
            at += len(piece)
            text = decoder.decode(piece, final=not more)
            finish = None if more else _FINISH[running.result()["stopped"]]
            if text or finish:
                yield self._answer(text, finish)

    def _answer(self, text: str, finish: str | None, prompt_tokens: int | None = None, completion_tokens: int | None = None) -> Completion:
        return Completion(text, finish, self._name, f"cmpl-{next(_ids)}", int(time.time()), prompt_tokens, completion_tokens)

    def tokenize(self, text: str, *, bos: bool = True) -> list[int]:
        """The ids of a text."""
        return self._generator.tokenize(text, bos)

    def detokenize(self, ids: Sequence[int]) -> bytes:
        """The bytes of ids, which may end within a character."""
        return self._generator.detokenize(list(ids))

    def perplexity(self, text: str) -> float:
        """e to the mean negative log-likelihood of a text's tokens."""
        return self._generator.perplexity(text, settings())[2]

    def __repr__(self) -> str:
        return f"<weighbridge.Generator {self._name!r}, {self.vocabulary:,} tokens, context {self.context:,}>"
