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
    """A record. Subclasses annotate their fields, the last ones with defaults."""

    __match_args__: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        cls.__match_args__ = tuple(cls.__annotations__)  # type: ignore[misc]

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = self.__match_args__
        given = dict(zip(fields, values), **named)
        unknown = given.keys() - set(fields)
        if len(values) > len(fields) or unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown)) or 'so many values'}")
        for field in fields:
            if field not in given and not hasattr(type(self), field):
                raise TypeError(f"{type(self).__name__} needs {field}")
            object.__setattr__(self, field, given[field] if field in given else getattr(type(self), field))

    @classmethod
    def of(cls: type[R], told: dict[str, Any]) -> R:
        """Makes a record from what the library returned, which may have more fields."""
        return cls(**{field: told[field] for field in cls.__match_args__ if field in told})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def asdict(self) -> dict[str, Any]:
        """The fields by name; records in them are dicts too, and bytes are base64, so that ``json.dumps`` takes the result."""
        return {field: _plain(value) for field, value in self._items()}

    def _items(self) -> list[tuple[str, Any]]:
        return [(field, getattr(self, field)) for field in self.__match_args__]

    def __replace__(self: R, **changes: Any) -> R:
        return type(self)(**{**dict(self._items()), **changes})

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._items() == other._items()

    def __hash__(self) -> int:
        return hash((type(self), _frozen(list(self.asdict().values()))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._items())})"

    def __str__(self) -> str:
        """A line for each field that says something, and for each item of a list of records."""
        out = [type(self).__name__]
        for name, value in self._items():
            if isinstance(value, (list, tuple)) and any(isinstance(each, Record) for each in value):
                out += [f"  {name}: {len(value):,}", *(f"    {each!r}" for each in value[:_MOST_LISTED])]
                if len(value) > _MOST_LISTED:
                    out.append(f"    and {len(value) - _MOST_LISTED:,} more")
            elif value is not None and value != "" and value != () and value != []:
                out.append(f"  {name}: {shown(value) if isinstance(value, str) else repr(value)}")
        return "\n".join(out)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(value for _, value in self._items())


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.asdict()
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode()
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _frozen(value: Any) -> Any:
    """What can be hashed in the place of lists and dicts."""
    if isinstance(value, dict):
        return tuple((name, _frozen(each)) for name, each in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
