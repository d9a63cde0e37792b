# SPDX-License-Identifier: Apache-2.0
"""Texts of files for people: the escapes of messages, str(), repr() and HTML."""

from __future__ import annotations

from . import _core


def shown(text: str) -> str:
    """A text that may quote a file, for messages: what could control a terminal is escaped, as the command does it."""
    return text if text.isascii() and text.isprintable() else _core.shown(text)
