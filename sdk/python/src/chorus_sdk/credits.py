"""An amount of credits: whole hundredths, read from digits and never from a binary float (SDK-14)."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import total_ordering

_DIGITS = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]{1,2})?", re.ASCII)


@total_ordering
class Credits:
    """`Credits("0.10")`, `Credits(Decimal("0.10"))` or `Credits(3)`; a float is a TypeError."""

    __slots__ = ("_hundredths",)
    _hundredths: int

    def __init__(self, amount: str | Decimal | int | Credits) -> None:
        if isinstance(amount, Credits):
            hundredths = amount._hundredths
        elif isinstance(amount, bool) or not isinstance(amount, (str, Decimal, int)):  # pyright: ignore[reportUnnecessaryIsInstance]
            kind = type(amount).__name__
            raise TypeError(f"credits are made from a str, Decimal or int, not from {kind}")
        elif isinstance(amount, int):
            hundredths = amount * 100
        else:
            hundredths = _parse_hundredths(amount)
        object.__setattr__(self, "_hundredths", hundredths)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("credits do not change")

    @classmethod
    def from_hundredths(cls, hundredths: int) -> Credits:
        sign = "-" if hundredths < 0 else ""
        whole, rest = divmod(abs(hundredths), 100)
        return cls(f"{sign}{whole}.{rest:02}")

    @property
    def hundredths(self) -> int:
        return self._hundredths

    def to_decimal(self) -> Decimal:
        return Decimal(self._hundredths).scaleb(-2)

    def __str__(self) -> str:
        sign = "-" if self._hundredths < 0 else ""
        whole, rest = divmod(abs(self._hundredths), 100)
        return f"{sign}{whole}.{rest:02}"

    def __repr__(self) -> str:
        return f"Credits('{self}')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Credits) and self._hundredths == other._hundredths

    def __lt__(self, other: Credits) -> bool:
        return self._hundredths < other._hundredths

    def __hash__(self) -> int:
        return hash(("credits", self._hundredths))

    def __add__(self, other: Credits) -> Credits:
        return Credits.from_hundredths(self._hundredths + other._hundredths)

    def __sub__(self, other: Credits) -> Credits:
        return Credits.from_hundredths(self._hundredths - other._hundredths)


def _parse_hundredths(amount: str | Decimal) -> int:
    text = amount if isinstance(amount, str) else format(amount, "f")
    if not _DIGITS.fullmatch(text):
        raise ValueError("an amount has digits and at most two decimals, such as 0.10")
    return int(Decimal(text).scaleb(2))
