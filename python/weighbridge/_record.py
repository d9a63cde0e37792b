# SPDX-License-Identifier: Apache-2.0
"""Immutable records with named fields. Like dataclasses, whose import takes longer than the rest of the package."""

from __future__ import annotations

from ._shown import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    R = TypeVar("R", bound="Record")


_MOST_LISTED = 20


class Record:
    """A record. Subclasses name their fields in ``__slots__`` and give the last ones defaults in ``_defaults``."""

    __slots__: tuple[str, ...] = ()
    _defaults: dict[str, Any] = {}

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self.__slots__, values), **named)
        unknown = given.keys() - set(self.__slots__)
        if len(values) > len(self.__slots__) or unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown)) or 'so many values'}")
        for field in self.__slots__:
            if field not in given and field not in self._defaults:
                raise TypeError(f"{type(self).__name__} needs {field}")
            object.__setattr__(self, field, given[field] if field in given else self._defaults[field])

    @classmethod
    def of(cls: type[R], told: dict[str, Any]) -> R:
        """Makes a record from what the library returned, which may have more fields."""
        return cls(**{field: told[field] for field in cls.__slots__})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def asdict(self) -> dict[str, Any]:
        """The fields by name."""
        return {field: getattr(self, field) for field in self.__slots__}

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.asdict() == other.asdict()

    def __hash__(self) -> int:
        return hash((type(self), tuple(map(repr, self.asdict().values()))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.asdict().items())})"

    def __str__(self) -> str:
        """A line for each field that says something, and for each item of a list of records."""
        out = [type(self).__name__]
        for name, value in self.asdict().items():
            if isinstance(value, (list, tuple)) and any(isinstance(each, (Record, dict)) for each in value):
                out += [f"  {name}: {len(value):,}", *(f"    {each!r}" for each in value[:_MOST_LISTED])]
                if len(value) > _MOST_LISTED:
                    out.append(f"    and {len(value) - _MOST_LISTED:,} more")
            elif value is not None and value != "" and value != () and value != []:
                out.append(f"  {name}: {shown(value) if isinstance(value, str) else repr(value)}")
        return "\n".join(out)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(self.asdict().values())
