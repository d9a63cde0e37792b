# SPDX-License-Identifier: Apache-2.0
"""Running a job on Ray: the cluster, the workers, and what happens when one of them dies.

Actors of Ray's core take the parts, not an operator of Ray Data, which retries a batch forever and cannot leave out one that kills every worker."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec

from .._errors import Error, Finding
from .._record import Record
from ._parts import Job, Maker, Part, make_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

DEATHS = 3  # of workers in the same piece, before it is left out
OBJECT_STORE = 100 << 20  # what workers exchange are names of files


class Progress(Record):
    """The progress of a job.

    Attributes
    ----------
    done, total : int
        Parts.
    share : float
        How much of the input is in the parts that are done, by size: 0 to 1.
    rows : int
        In the parts that are done, and so far in those that workers are making.
    findings : int
        Rows with a finding, in the parts that are done.
    workers : int
        Workers that are running.
    deaths : int
        Workers that died and were replaced.
    seconds : float
        Time since the start.
    """

    done: int
    total: int
    share: float
    rows: int
    findings: int
    workers: int
    deaths: int
    seconds: float


class Report(Record):
    """What a job made.

    Attributes
    ----------
    output : str
        The Parquet file, or the folder of them.
    rows, findings : int
        Rows in all, and those with a finding.
    rules : dict of str to int
        How many rows have each rule.
    digest : str
        A digest of all rows, whatever the number of workers, the division and the order. :func:`rows_digest` computes it from the output.
    parts, kept : int
        Parts in all, and those that an earlier run had finished.
    deaths : int
        Workers that died while the job ran, and were replaced.
    seconds : float
        Time that the job took, including the start of a local cluster.
    """

    output: str
    rows: int
    findings: int
    rules: dict[str, int]
    digest: str
    parts: int
    kept: int
    deaths: int
    seconds: float


class ClusterError(Error, RuntimeError):
    """Workers cannot be started, or all of them die."""


def engine() -> Any:
    """The package ray."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "120")  # 30 s are too few on a busy machine
    try:
        return import_module("ray")
    except ImportError as error:
        raise ImportError("this needs the package ray: pip install 'weighbridge[ray]'") from error


def workers_of(threads: int) -> int:
    """How many workers a cluster has processors for."""
    return max(1, int(engine().cluster_resources().get("CPU", 1) // threads))


@contextmanager
def cluster(address: str | None, cpus: int | None) -> Iterator[None]:
    """Ray for the time of a job: the one this process is connected to, else that of `address` or RAY_ADDRESS, else a local one."""
    ray = engine()
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        if address:
            _reach(address)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        else:
            ray.init(address="local", num_cpus=cpus, include_dashboard=False, object_store_memory=OBJECT_STORE, log_to_driver=False,
                     logging_level="ERROR")
    except Exception as error:
        ray.shutdown()  # ends what did start
        message = f"Ray cannot be {'reached at ' + address if address else 'started'}: {str(error).strip().splitlines()[0]}"
        raise ClusterError(message, Finding("io/cluster", "error", "io", message)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _reach(address: str) -> None:
    """Raises OSError unless something answers at HOST:PORT, which Ray finds out only after minutes."""
    host, colon, port = address.rpartition(":")
    if colon and "/" not in address and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


class Worker:
    """What runs in an actor."""

    def __init__(self, folder: str, maker: Maker) -> None:
        self._folder, self._maker = folder, maker

    def make(self, part: Part, lost: dict[int, str]) -> dict[str, Any]:
        """Makes a part."""
        return make_part(self._folder, self._maker, part, lost)


class _Crew:
    """The actors of a job, each with at most one part."""

    def __init__(self, job: Job, maker: Maker, size: int, threads: int) -> None:
        ray = engine()
        # Half a processor for each thread: a program that claims all of them starves every other task of the cluster forever.
        self._actor: Any = ray.remote(num_cpus=0.5 * threads, max_restarts=0, max_task_retries=0, scheduling_strategy="SPREAD")(Worker)
        self._ray, self._job, self._maker, self.size = ray, job, maker, size
        self._idle: list[Any] = []
        self.running: dict[Any, tuple[Any, Part]] = {}

    def start(self, part: Part, lost: dict[int, str]) -> None:
        actor = self._idle.pop() if self._idle else self._actor.remote(self._job.folder, self._maker)
        self.running[actor.make.remote(part, lost)] = actor, part

    def full(self) -> bool:
        return len(self.running) >= self.size

    def finished(self, seconds: float) -> list[tuple[Part, dict[str, Any] | None, str]]:
        """Parts that ended: each with its record, or with None and why its worker died. An exception of the job is raised."""
        ready, _ = self._ray.wait(list(self.running), num_returns=1, timeout=seconds)
        out: list[tuple[Part, dict[str, Any] | None, str]] = []
        for task in ready:
            actor, part = self.running.pop(task)
            try:
                out.append((part, self._ray.get(task), ""))
                self._idle.append(actor)
            except self._ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, MemoryError):  # the same as if the node had killed the worker
                    self._ray.kill(actor)
                    out.append((part, None, "a worker ran out of memory"))
                    continue
                raise (error.cause if isinstance(error.cause, Exception) else error) from None
            except self._ray.exceptions.RayError as error:  # the worker, or its node, is gone
                out.append((part, None, str(error).strip().splitlines()[0]))
        return out

    def stop(self) -> None:
        for actor in [*self._idle, *(actor for actor, _ in self.running.values())]:
            self._ray.kill(actor)


def run_here(job: Job, maker: Maker, *, told: Callable[[Progress], Any] | None, begin: float) -> int:
    """Makes the parts that are not done yet, one after the other in this process."""
    def tell(part: Part | None, workers: int = 1) -> None:
        if told is not None:
            told(_progress(job, [part] if part else [], workers, 0, begin))

    tell(None)
    for part in job.parts:
        if part.index not in job.done:
            job.note(part, make_part(job.folder, maker, part, {}, partial(tell, part)))
            tell(None, int(len(job.done) < len(job.parts)))
    return 0


def _progress(job: Job, at_work: Iterable[Part], workers: int, deaths: int, begin: float) -> Progress:
    return Progress(len(job.done), len(job.parts), job.size / max(1, job.total_size), job.rows + sum(map(job.rows_of, at_work)), job.rules.total(), workers,
                    deaths, time.monotonic() - begin)


def run(job: Job, maker: Maker, *, workers: int | None, threads: int, told: Callable[[Progress], Any] | None = None, begin: float) -> int:
    """Makes the parts that are not done yet. Returns how many workers died."""
    most = workers or workers_of(threads)
    waiting = deque(sorted((part for part in job.parts if part.index not in job.done), key=lambda part: (-part.size, part.index)))
    blame: dict[tuple[int, int], int] = {}
    lost: dict[int, dict[int, str]] = {}
    deaths = in_vain = 0
    crew = _Crew(job, maker, max(1, min(most, len(waiting))), threads)

    def tell() -> None:
        if told is not None:
            told(_progress(job, [part for _, part in crew.running.values()], len(crew.running), deaths, begin))

    try:
        tell()
        while waiting or crew.running:
            while waiting and not crew.full():
                part = waiting.popleft()
                crew.start(part, lost.get(part.index, {}))
            for part, record, why in crew.finished(1.0):
                if record is not None:
                    job.note(part, record)
                    in_vain = 0
                    continue
                deaths, in_vain = deaths + 1, in_vain + 1
                piece = job.piece_of(part)
                if in_vain > 10 * DEATHS or (piece is None and in_vain > DEATHS):
                    raise ClusterError(f"{in_vain} workers died one after the other; the last: {why}. Check the memory of the nodes, and that "
                                       "weighbridge is installed there. Finished parts are kept")
                if piece is not None:
                    blame[part.index, piece] = blame.get((part.index, piece), 0) + 1
                    if blame[part.index, piece] >= DEATHS:
                        lost.setdefault(part.index, {})[piece] = f"{DEATHS} workers died while they read it"
                        in_vain = 0
                waiting.appendleft(part)
            tell()
    finally:
        crew.stop()
    return deaths


def finish(job: Job, maker: Maker, begin: float, *, workers: int | None, threads: int, address: str | None, cpus: int | None,
           progress: Callable[[Progress], Any] | None, told: dict[str, Any]) -> Report:
    """Runs the rest of a job, and publishes its output: here without workers, or where Ray is not installed and none are asked for."""
    kept, deaths = len(job.done), 0
    if workers == 0 or workers is None and address is None and find_spec("ray") is None:
        deaths = run_here(job, maker, told=progress, begin=begin)
    elif kept < len(job.parts):
        with cluster(address, cpus):
            deaths = run(job, maker, workers=workers, threads=threads, told=progress, begin=begin)
    digest = job.publish(maker.schema(), told)
    return Report(job.output, digest.rows, job.rules.total(), dict(sorted(job.rules.items())), digest.text, len(job.parts), kept, deaths,
                  time.monotonic() - begin)
