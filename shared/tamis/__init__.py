"""Tamis: threshold alerts over joined sensor streams with provably bounded memory."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tamis.errors import InputError, NotAcceptedError, SqlErrors, TamisError
    from tamis.frames.arrow_tables import TamisWarning
    from tamis.frames.explain import Explanations, explain
    from tamis.frames.omit import omit
    from tamis.frames.plots import plot_omission, plot_retained
    from tamis.frames.run import run
    from tamis.frames.verify import Verification, verify

__all__ = [
    "Explanations",
    "InputError",
    "NotAcceptedError",
    "SqlErrors",
    "TamisError",
    "TamisWarning",
    "Verification",
    "explain",
    "omit",
    "plot_omission",
    "plot_retained",
    "run",
    "verify",
]

# The module of each name. They are imported only when they are used: services and `tamis --help` need none.
_MODULES = {
    "Explanations": "tamis.frames.explain",
    "InputError": "tamis.errors",
    "NotAcceptedError": "tamis.errors",
    "SqlErrors": "tamis.errors",
    "TamisError": "tamis.errors",
    "TamisWarning": "tamis.frames.arrow_tables",
    "Verification": "tamis.frames.verify",
    "explain": "tamis.frames.explain",
    "omit": "tamis.frames.omit",
    "plot_omission": "tamis.frames.plots",
    "plot_retained": "tamis.frames.plots",
    "run": "tamis.frames.run",
    "verify": "tamis.frames.verify",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        # With the module, Python suggests the name that is most similar, but not `plot_omission` for `plot`.
        longer = " and ".join(one for one in __all__ if one.startswith(f"{name}_"))
        hint = f"; it has {longer}" if longer else ""
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}{hint}", name=name, obj=sys.modules[__name__]
        )
    try:
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "tamis":
            raise
        raise ModuleNotFoundError(
            f"tamis.{name} needs the Python package {error.name.partition('.')[0]!r}; install tamis[tools]",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
