"""Alerts that call Python functions which aren't installed on the joiner's machine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tamis.expressions.python_functions import FunctionError, calls, installed, name_of
from tamis.identity_cache import IdentityCache
from tamis.plan.model import Definition, Plan

# Most definitions are the same objects in the next plan.
_FUNCTIONS = IdentityCache[tuple[str, ...]]()


def functions_called(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The names of the functions that each alert calls, for the alerts that call any."""
    found = {definition.alert: _functions(definition) for definition in plan.definitions}
    return {alert: names for alert, names in found.items() if names}


def missing_functions(called: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """By alert, an error that names a function which isn't installed, and the remedy. `called`: the result of
    `functions_called`.
    """
    found = {}
    for alert, names in called.items():
        for name in names:
            try:
                installed(name)
            except FunctionError as error:
                found[alert] = str(error)
    return found


def _functions(definition: Definition) -> tuple[str, ...]:
    return _FUNCTIONS.one(definition, partial(_find, definition))


def _find(definition: Definition) -> tuple[str, ...]:
    selected = [expr for _, expr in definition.select]
    filters = [source.filter for source in definition.inputs]
    conditions = [definition.condition, *(absence.condition for absence in definition.absences)]
    return tuple(sorted({name_of(call) for call in calls(*conditions, *filters, *selected)}))
