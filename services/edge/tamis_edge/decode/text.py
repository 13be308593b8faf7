"""Text of CSV cells to the values that JSON would have had.

Text that doesn't fit the column's type remains text. The type check then reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tamis.expressions.nodes import Type


def values(cells: Sequence[str | None], type_: Type) -> Sequence[Any]:
    """The values of one column. The caller has already replaced empty cells by None.

    >>> values(["1.5", None, "x"], Type.DOUBLE)
    [1.5, None, 'x']
    """
    if type_ is Type.VARCHAR:
        return cells
    if type_ is Type.BOOLEAN:
        return [None if cell is None else _BOOLEANS.get(cell.lower(), cell) for cell in cells]
    parse: Callable[[str], Any] = float if type_ is Type.DOUBLE else _number
    try:
        return [None if cell is None else parse(cell) for cell in cells]
    except ValueError:
        return [_try(parse, cell) for cell in cells]


_BOOLEANS = {"true": True, "false": False, "t": True, "f": False, "1": True, "0": False}


def _number(cell: str) -> int | float:
    try:
        return int(cell)
    except ValueError:
        return float(cell)


def _try(parse: Callable[[str], Any], cell: str | None) -> Any:
    if cell is None:
        return None
    try:
        return parse(cell)
    except ValueError:
        return cell
