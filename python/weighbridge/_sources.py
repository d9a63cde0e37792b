# SPDX-License-Identifier: Apache-2.0
"""What can be opened: paths, buffers, file objects, and addresses that fsspec knows."""

from __future__ import annotations

import os
from threading import Lock

from ._errors import Finding, InputOutputError, MissingFileError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Reader:
    """A file object as ranges, for the extension module. Reads take turns, because a file object has one position."""

    gap = 16 << 10  # most are local, or keep what they have read

    def __init__(self, file: Any, name: str, size: int) -> None:
        self._file, self.name, self.size = file, name, size
        self._lock = Lock()

    def read(self, ranges: list[tuple[int, int]]) -> list[Any]:
        return [self._read_at(*each) for each in ranges]

    def _read_at(self, offset: int, length: int) -> Any:
        with self._lock:
            self._file.seek(offset)
            out = self._file.read(length)
            if len(out) < length:  # a raw file may give less at a time
                pieces = [out]
                while out and sum(map(len, pieces)) < length:
                    out = self._file.read(length - sum(map(len, pieces)))
                    pieces.append(out)
                return b"".join(pieces)
            return out


def is_address(file: Any) -> bool:
    """Whether this is an address for fsspec (``https://...``, ``s3://...``), not a path."""
    return isinstance(file, str) and "://" in file


class Remote:
    """A file of fsspec as ranges, for the extension module. Each range is a request; fsspec sends several at once."""

    gap = 1 << 20

    def __init__(self, address: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise ImportError(f"opening {address} needs the package fsspec: pip install fsspec") from error
        self.name = address
        try:
            self._files, self._path = url_to_fs(address)
            size: int | None = self._files.info(self._path).get("size")
        except ImportError as error:  # the package of a protocol
            raise ImportError(f"opening {address} needs another package: {error}") from error
        except Exception as error:  # of the package of the protocol
            raise _unreachable(address, error) from error
        self._whole: bytes | None = None
        self._in_ranges = False  # the server has given a range
        if size is None:  # the server does not know it
            self._whole = whole = self._files.cat_file(self._path)
            size = len(whole)
        self.size: int = size

    def read(self, ranges: list[tuple[int, int]]) -> list[Any]:
        if not self._in_ranges or len(ranges) == 1:
            return [self._read_at(*each) for each in ranges]
        begins, ends = [offset for offset, _ in ranges], [offset + length for offset, length in ranges]
        out = self._files.cat_ranges([self._path] * len(ranges), begins, ends)
        for each in out:
            if isinstance(each, Exception):
                raise each
        return list(out)

    def _read_at(self, offset: int, length: int) -> Any:
        whole = self._whole
        if whole is None:
            out = self._files.cat_file(self._path, start=offset, end=offset + length)
            if len(out) != self.size:
                self._in_ranges = len(out) == length
                return out
            self._whole = whole = out  # the server ignores ranges
        return whole[offset:offset + length]


def _unreachable(address: str, error: BaseException) -> InputOutputError:
    """What an error of fsspec or of a package below it means, with its first cause."""
    kind = MissingFileError if isinstance(error, FileNotFoundError) else InputOutputError
    while error.__cause__ is not None:
        error = error.__cause__
    said = f"{type(error).__name__}: {error}" if str(error) and str(error) != address else type(error).__name__
    message = f"{address}: the address cannot be opened ({said})"
    return kind(message, Finding("io/open", "error", "io", message, file=address))


def to_input(file: Any) -> Any:
    """What the extension module takes for `file`: a path, a buffer or an object with ranges. Raises TypeError for anything else, None included."""
    if is_address(file):
        return Remote(file)
    if isinstance(file, (str, bytes, os.PathLike)) and not isinstance(file, bytes):
        return os.fsdecode(file)
    if hasattr(file, "read") and hasattr(file, "seek"):
        name = getattr(file, "name", None)
        return Reader(file, name if isinstance(name, str) else "<file object>", _size_of(file))
    try:
        return memoryview(file)
    except TypeError:
        kind = "None" if file is None else type(file).__name__
        raise TypeError(f"a path, a buffer or a file object is expected, not {kind}") from None


def to_optional_input(file: Any) -> Any:
    """The same for a file that need not be given."""
    return None if file is None else to_input(file)


def _size_of(file: Any) -> int:
    at = file.seek(0, os.SEEK_CUR)
    if at is None:  # as mmap's
        at = file.tell()
    size = file.seek(0, os.SEEK_END)
    if size is None:
        size = file.tell()
    file.seek(at)
    return int(size)
