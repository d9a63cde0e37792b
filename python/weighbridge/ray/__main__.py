# SPDX-License-Identifier: Apache-2.0
"""``python -m weighbridge.ray embed|audit|search``: the jobs as commands. Exit statuses are those of the command weighbridge."""

from __future__ import annotations

import argparse
import json
import sys
import time

from .. import _core
from .._errors import Error
from .._shown import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ._run import Progress, Report


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _duration(seconds: float) -> str:
    hours, minutes = seconds / 3600, seconds / 60
    return f"about {hours:.1f} h" if hours >= 2 else f"about {minutes:.0f} min" if minutes >= 2 else f"about {max(1, seconds):.0f} s"


def _number(least: int) -> Callable[[str], int]:
    """The type of an argument: a number that is at least `least`."""
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"a number that is at least {least} is expected, not {text!r}")
        return int(text)
    return read


STATUSES = ("Exit status: 0 done; 1 done, with rows that have a finding, or a model that cannot be used; 2 wrong use; 3 unsupported; 4 a file or the cluster "
            "cannot be reached; 130 interrupted.")


class Line:
    """Progress on standard error: one changing line on a terminal, otherwise a line every ten seconds."""

    def __init__(self, what: str) -> None:
        self._what, self._terminal, self._last, self._shown = what, sys.stderr.isatty(), -1e9, False
        self._first: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        now, ended = time.monotonic(), progress.done == progress.total
        if now - self._last < (0.2 if self._terminal else 10) and not ended:
            return
        self._last = now
        self._first = first = self._first or progress  # when the workers started, with what an earlier run had made
        seconds, share = progress.seconds - first.seconds, progress.share - first.share
        rate = f", {(progress.rows - first.rows) / seconds:,.0f} rows/s" if seconds > 1 and progress.rows > first.rows else ""
        at_work = "" if ended or not progress.workers else f", {_count(progress.workers, 'worker')}"
        left = f", {_duration(seconds * (1 - progress.share) / share)} left" if share > 0 and not ended else ""
        deaths = f", {_count(progress.deaths, 'worker')} died and replaced" if progress.deaths else ""
        text = (f"{self._what}: {progress.done:,} of {_count(progress.total, 'part')}, {_count(progress.rows, 'row')}, {progress.findings:,} with a finding"
                f"{at_work}{rate}{left}{deaths}")
        print(f"\r\x1b[K{text}" if self._terminal else text, end="" if self._terminal else "\n", file=sys.stderr, flush=True)
        self._shown = self._terminal

    def end(self) -> None:
        """Leaves the last line on the terminal."""
        if self._shown:
            print(file=sys.stderr)
            self._shown = False


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m weighbridge.ray", description="Jobs over corpora and lakes of models, on Ray.", epilog=STATUSES)
    parser.add_argument("--version", action="version", version=f"weighbridge {_core.__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True)
    embed = verbs.add_parser("embed", help="texts to Parquet with a column of vectors", epilog=STATUSES, description="Embeds the texts of a corpus. "
                             "The output appears when all of it is there; stopped, the same command goes on where it ended.")
    embed.add_argument("source", metavar="INPUT", help="a Parquet file, .jsonl or lines of text, or a folder of these")
    audit = verbs.add_parser("audit", help="verify a lake of models: a row for each finding", epilog=STATUSES, description="Verifies and hashes each "
                             "file of a lake of models. The table has a row for each finding, and one for each file without.")
    audit.add_argument("source", metavar="INPUT", nargs="+", help="a folder, an address (s3://...), a listing, or files")
    for verb in (embed, audit):
        verb.add_argument("-o", "--output", required=True, help="NAME.parquet for one file, another name for a folder of them")
        verb.add_argument("--workers", type=_number(0), metavar="N", help="actors (default: one for each processor); 0 runs in this process, without Ray")
        verb.add_argument("--address", help="a cluster: auto or HOST:PORT (default: RAY_ADDRESS, or a Ray started for the job)")
        verb.add_argument("--cpus", type=_number(1), metavar="N", help="processors for a Ray started for the job (default: all)")
        verb.add_argument("--overwrite", action="store_true", help="replace an output that exists")
        verb.add_argument("--restart", action="store_true", help="drop the parts of a stopped run, and start again")
        verb.add_argument("--quiet", action="store_true", help="print neither progress nor the report")
        verb.add_argument("--json", action="store_true", help="print the report as JSON")
    embed.add_argument("--model", required=True, help="a sentence encoder, at the same path on each node")
    embed.add_argument("--column", default="text", help="the column of texts (default: text)")
    embed.add_argument("--keep", default="", help="columns to copy, separated by commas")
    embed.add_argument("--form", choices=["parquet", "jsonl", "text"], help="the form of the input (default: by the extension)")
    embed.add_argument("--no-text", action="store_true", help="leave the texts out of the output")
    embed.add_argument("--precision", choices=["f32", "f16", "bf16", "int8"], default="f32", help="precision of products with weights (default: f32)")
    embed.add_argument("--dtype", choices=["f32", "f16", "int8"], default="f32", help="type of the vectors (default: f32)")
    embed.add_argument("--pooling", choices=["mean", "cls", "max"], help="how token vectors become one (default: as the model says)")
    embed.add_argument("--max-length", type=_number(1), metavar="N", help="most tokens to read of a text")
    embed.add_argument("--threads", type=_number(1), metavar="N", default=1, help="threads of each worker (default: 1)")
    embed.add_argument("--batch-size", type=_number(1), metavar="N", default=256, help="texts to compute at once (default: 256); affects memory only")
    audit.add_argument("--no-values", action="store_true", help="leave out the digest without names, which needs another reading of each file")
    search = verbs.add_parser("search", help="the nearest texts of an embedded corpus", epilog=STATUSES)
    search.add_argument("corpus", metavar="CORPUS", help="the output of embed")
    search.add_argument("query", metavar="QUERY")
    search.add_argument("--model", required=True, help="the model that made it")
    search.add_argument("--top", type=_number(1), metavar="N", default=10, help="how many (default: 10)")
    return parser


def _job(given: argparse.Namespace) -> Report:
    from . import audit, embed_corpus

    line = None if given.quiet else Line(given.verb)
    common: dict[str, Any] = dict(workers=given.workers, address=given.address, cpus=given.cpus, overwrite=given.overwrite, restart=given.restart,
                                  progress=line)
    try:
        if given.verb == "audit":
            return audit(given.source[0] if len(given.source) == 1 else given.source, given.output, values=not given.no_values, **common)
        return embed_corpus(given.source, given.output, given.model, column=given.column, keep=[name for name in given.keep.split(",") if name],
                            form=given.form, with_text=not given.no_text, dtype=given.dtype, threads=given.threads, batch_size=given.batch_size,
                            precision=given.precision, pooling=given.pooling, max_length=given.max_length, **common)
    finally:
        if line is not None:
            line.end()


def main(arguments: list[str] | None = None) -> int:
    """Runs the command. Returns its exit status."""
    given = _parser().parse_args(arguments)
    try:
        if given.verb == "search":
            from . import search

            for hit in search(given.corpus, given.query, given.model, top=given.top):
                print(shown(f"{hit.score:7.4f}  {hit.file}:{hit.place}: {' '.join((hit.text or '').split())}"))
            return 0
        report = _job(given)
    except KeyboardInterrupt:
        print("stopped; run the same command again to resume", file=sys.stderr)
        return 130
    except (Error, OSError, ImportError) as error:
        print(shown(f"weighbridge.ray: {error}"), file=sys.stderr)
        kind = getattr(error, "kind", "io")
        return {"misuse": 2, "io": 4, "unsupported": 3}.get(kind, 1)
    if given.json:
        print(json.dumps(report.asdict()))
    elif not given.quiet:
        again = f", {report.kept} of {report.parts} parts from an earlier run" if report.kept else ""
        print(f"{shown(report.output)}: {_count(report.rows, 'row')}, {report.findings:,} with a finding, in {report.seconds:,.1f} s{again}")
        for rule, count in report.rules.items():
            print(f"  {count:,} {rule}")
        print(report.digest)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
