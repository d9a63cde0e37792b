# SPDX-License-Identifier: Apache-2.0
"""Corpora and lakes of models, on Ray or in one process: ``pip install 'weighbridge[ray]'``, or numpy and pyarrow alone.

:class:`Embed` and :func:`embed` are steps for your own Ray Data pipelines. :func:`embed_corpus` and :func:`audit` are whole jobs, also run by
``python -m weighbridge.ray``: their output appears whole or not at all, a stopped job resumes, and the rows and their bits are
the same with any number of workers. :func:`search` searches an embedded corpus.

Ray itself is imported when a job starts, and not needed: without it, jobs run in this process. :class:`Embed` needs pyarrow alone.
"""

from __future__ import annotations

try:
    import numpy
    import pyarrow
except ImportError as error:
    raise ImportError("weighbridge.ray needs numpy and pyarrow: pip install numpy pyarrow, or 'weighbridge[ray]' for workers") from error
del numpy, pyarrow

from ._audit import audit
from ._corpus import embed_corpus
from ._embed import Embed, embed
from ._rows import rows_digest
from ._run import ClusterError, Progress, Report
from ._search import Hit, search

__all__ = ("ClusterError", "Embed", "Hit", "Progress", "Report", "audit", "embed", "embed_corpus", "rows_digest", "search")
