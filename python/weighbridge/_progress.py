# SPDX-License-Identifier: Apache-2.0
"""Progress of long jobs, and what else a call takes from its caller."""

from __future__ import annotations

from . import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class _Bar:
    """Shows (done, total) as a bar of tqdm."""

    def __init__(self, what: str, unit: str) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("progress=True needs the package tqdm: pip install tqdm, or give a callable") from error
        bytes_ = unit == "B"
        self._bar = tqdm(desc=what or None, unit=unit, unit_scale=bytes_, unit_divisor=1024 if bytes_ else 1000)

    def __call__(self, done: int, total: int) -> None:
        self._bar.total = total or None
        self._bar.update(done - self._bar.n)
        if total and done >= total:
            self._bar.close()


def settings(limits: Mapping[str, int] | None = None, progress: bool | Callable[[int, int], Any] | None = None, threads: int = 0, what: str = "", unit: str = "B") -> _core.Settings:
    """What the extension module takes: limits, threads (0: one for each processor), and who is told of progress."""
    told = _Bar(what, unit) if progress is True else (progress or None)
    return _core.Settings(dict(limits) if limits is not None else None, threads, told)
