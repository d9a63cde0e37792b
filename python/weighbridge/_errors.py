# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package. Owns Error and its kinds, and makes them from what the library found."""

from __future__ import annotations

from ._record import Record
from ._shown import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Hint(Record):
    """What would help.

    Attributes
    ----------
    what : str
        ``"limit"`` (raise the limit `name` to `value`), ``"option"`` (give the option `name`, or its `value`), ``"size"`` (the whole file has `value`
        bytes) or ``"file"`` (the file `name` is missing).
    name, value : str
        Empty if there is none, or if it is the caller's to choose.
    """

    what: str
    name: str = ""
    value: str = ""


class Finding(Record):
    """One thing found in a file.

    Attributes
    ----------
    rule : str
        Stable id: ``"safetensors/overlap"``, ``"limit/decoded"``, ``"io/open"``.
    severity : str
        ``"error"`` (the file is invalid), ``"warning"``, or ``"unsupported"`` (one tensor cannot be interpreted).
    kind : str
        ``"malformed"``, ``"unsupported"``, ``"misuse"``, ``"io"`` or ``"limit"``.
    message : str
        One sentence, without the file's name.
    file : str or None
        The file that it is about, if that is not the one that was given: a sidecar, a shard.
    offset : int or None
        In bytes, in that file.
    tensor : str or None
        The name of the tensor that it is about.
    expected, found : str
        What the rule compares; empty if it compares nothing.
    hint : Hint or None
        What would help.
    """

    rule: str
    severity: str
    kind: str
    message: str
    file: str | None = None
    offset: int | None = None
    tensor: str | None = None
    expected: str = ""
    found: str = ""
    hint: Hint | None = None

    @classmethod
    def told(cls, each: dict[str, Any]) -> Finding:
        """A finding as the library gives it: JSON, or what the extension module makes of one."""
        hint = each.get("hint")
        return cls(**{**each, "expected": each["expected"] or "", "found": each["found"] or "",
                      "hint": None if hint is None else Hint(hint["what"], hint["name"] or "", hint["value"] or "")})

    def __str__(self) -> str:
        where = [] if self.tensor is None else [f"tensor {self.tensor!r}"]
        if self.offset is not None:
            where.append(f"byte {self.offset:,}")
        return shown(f"{self.message} ({self.rule}{' at ' + ', '.join(where) if where else ''})")


class Error(Exception):
    """What every exception of this package is, whatever else it is too.

    Attributes are those of its finding: ``kind``, ``rule``, ``file``, ``offset``, ``tensor``, ``expected``, ``found`` and ``hint``.
    """

    def __init__(self, message: str, finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding or Finding("misuse/argument", "error", "misuse", message)

    def in_file(self, name: str) -> Error:
        """This error, about a file by its name unless it names one."""
        if self.finding.file is not None:
            return self
        return type(self)(f"{name}: {self.args[0]}", self.finding.__replace__(file=name))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.finding)

    def __str__(self) -> str:
        return shown(str(self.args[0]))

    def __getattr__(self, name: str) -> Any:
        if name in ("kind", "rule", "file", "offset", "tensor", "expected", "found", "hint"):
            return getattr(self.finding, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class MalformedError(Error, ValueError):
    """A file breaks a rule of its format."""


class UsageError(Error, ValueError):
    """A call asks for something impossible."""


class LimitError(Error, ValueError):
    """Doing this needs more than a limit allows; the file itself may be valid. ``limits=`` of the call raises it."""


class UnsupportedError(Error, NotImplementedError):
    """A file is valid, but holds what this version cannot interpret."""


class InputOutputError(Error, OSError):
    """The system failed: a file that cannot be read or is gone, a full disk."""


class MissingFileError(InputOutputError, FileNotFoundError):
    """There is no such file."""


class MissingTensorError(Error, KeyError):
    """There is no tensor of this name. The message has similar ones."""


_KINDS: dict[str, type[Error]] = {
    "malformed": MalformedError,
    "unsupported": UnsupportedError,
    "misuse": UsageError,
    "io": InputOutputError,
    "limit": LimitError,
}


def make(fields: dict[str, Any], text: str) -> Error:
    """The exception for a finding of the library. Called by the extension module."""
    finding = Finding.told(fields)
    kind = _KINDS.get(finding.kind, Error)
    if finding.rule == "io/open" and "No such file" in finding.message:
        kind = MissingFileError
    message = text
    if finding.rule and not finding.rule.startswith("misuse/"):
        message += f" ({finding.rule})"
    hint = finding.hint or Hint("")
    if hint.what == "limit":
        message += f"; limits={{{hint.name!r}: {hint.value or ('COUNT' if hint.name in ('tensors', 'depth') else 'BYTES')}}} raises it"
    elif hint.name == "overwrite":
        message += "; overwrite=True replaces it"
    elif hint.name == "to":
        message += ", or give format="
    elif hint.name == "resize-vocab":
        message += "; resize_vocab=True accepts it"
    elif hint.name == "allow":
        message += f"; allow={hint.value!r} accepts it"
    return kind(message, finding)
