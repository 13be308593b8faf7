"""Settings page: docs/settings.md, from the models of settings and the docstrings below their fields.

`python -m tests.unit.repository.settings_page` writes the page anew.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from tamis.settings import KafkaSettings, ServiceSettings, TableSettings
from tamis.settings.client import ClientSettings
from tamis.settings.schema_registry import SchemaRegistrySettings
from tamis.settings.secret_files import SUFFIX
from tamis_alerts.settings import AlertsConfig, RouteConfig
from tamis_edge.service import EdgeHttpSettings
from tamis_edge.settings import EdgeConfig, FileSource, HttpSource, KafkaSource, MqttSource
from tamis_joiner.settings import JoinerSettings
from tamis_registry.settings import RegistryHttpSettings, RegistrySettings

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = REPOSITORY / "docs" / "settings.md"

HEAD = f"""\
# Settings

Every setting of the services and of the command `tamis`. Options of commands are in `tamis COMMAND --help`,
options of streams and alerts in [SQL](sql.md#options). `python -m tests.unit.repository.settings_page` writes
this page from the code, and a test compares the two.

- A service reads its settings from the environment when it starts. A variable with a wrong value ends it with
  exit code 2. A variable `TAMIS_…` that no service knows gives a warning with the nearest name.
- A *secret* is never printed. Instead of a secret `NAME`, set `NAME{SUFFIX}` to the path of its file.
- Where no default stands, the setting is not used unless you set it, or the meaning says what applies.
"""


@dataclass(frozen=True)
class Row:
    """One setting."""

    name: str
    kind: str
    default: str
    meaning: str

    def __str__(self) -> str:
        return f"| `{self.name}` | {self.kind} | {self.default} | {self.meaning} |"


def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstring below each field of a model, and of the models that it inherits from."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if not (issubclass(base, BaseModel) and base.__module__.startswith("tamis")):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(definition, ast.ClassDef)
        for field, below in zip(definition.body, definition.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                found[field.target.id] = " ".join(below.value.value.split())
    return found


def _unwrapped(annotation: Any) -> tuple[Any, list[Any]]:
    """A type without None and without its constraints, and these."""
    constraints: list[Any] = []
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            constraints += more
        elif get_origin(annotation) in (Union, UnionType) and NoneType in get_args(annotation):
            others = [part for part in get_args(annotation) if part is not NoneType]
            annotation = Union[tuple(others)]  # noqa: UP007
        else:
            return annotation, constraints


def _number(value: Any) -> str:
    return f"{value:,}"


def _limits(constraints: list[Any]) -> str:
    least = most = above = None
    for constraint in constraints:
        for part in getattr(constraint, "metadata", [constraint]):
            if isinstance(part, annotated_types.Ge):
                least = part.ge
            elif isinstance(part, annotated_types.Gt):
                above = part.gt
            elif isinstance(part, annotated_types.Le):
                most = part.le
    begin = f"at least {_number(least)}" if least is not None else ""
    if above is not None:
        begin = f"above {_number(above)}"
    if most is None:
        return begin
    if least is not None:
        return f"{_number(least)} to {_number(most)}"
    return f"{begin}, at most {_number(most)}" if begin else f"at most {_number(most)}"


def kind(annotation: Any, constraints: list[Any]) -> str:
    """The type of a setting in words.

    >>> kind(bool, []), kind(Literal["a", "b"], []), kind(list[str] | None, [])
    ('`true` or `false`', '`a`, `b`', 'list of texts')
    """
    bare, more = _unwrapped(annotation)
    constraints = constraints + more
    if get_origin(bare) in (Union, UnionType):
        return " or ".join(kind(part, constraints) for part in get_args(bare))
    if get_origin(bare) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(bare))
    if get_origin(bare) is list:
        return "list of texts"
    if get_origin(bare) is dict:
        return "mapping of texts"
    if isinstance(bare, type) and issubclass(bare, bool):
        return "`true` or `false`"
    if isinstance(bare, type) and issubclass(bare, (int, float)):
        word = "whole number" if issubclass(bare, int) else "number"
        limits = _limits(constraints)
        return f"{word}, {limits}" if limits else word
    words = {SecretStr: "secret", Path: "path", str: "text"}
    if bare in words:
        return words[bare]
    return {"HttpUrl": "URL"}[bare.__name__]


def _default(field: FieldInfo) -> str:
    if field.is_required() or field.default is PydanticUndefined:
        return "required"
    value = field.default
    if value is None or value in ("", [], {}):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value}`"


def _nested(field: FieldInfo) -> type[BaseModel] | None:
    bare, _ = _unwrapped(field.annotation)
    for part in get_args(bare) if get_origin(bare) in (Union, UnionType) else (bare,):
        if isinstance(part, type) and issubclass(part, BaseModel):
            return part
    return None


def rows(model: type[BaseModel], prefix: str = "", leave_out: frozenset[str] = frozenset()) -> Iterator[Row]:
    """The settings of a model; those of a nested model have the name of its field before theirs."""
    meanings = docstrings(model)
    for name, field in model.model_fields.items():
        if name in leave_out:
            continue
        shown_name = f"{prefix}{field.alias or name}"
        nested = _nested(field)
        if nested is not None:
            if name in meanings:  # the field also takes a value that is no mapping
                yield Row(shown_name, _others(field), _default(field), meanings[name])
            yield from rows(nested, f"{prefix}{name}.")
        else:
            assert name in meanings, f"{model.__name__}.{name} needs a docstring below it"
            shown = kind(field.annotation, list(field.metadata))
            yield Row(shown_name, shown, _default(field), meanings[name])


def _others(field: FieldInfo) -> str:
    bare, _ = _unwrapped(field.annotation)
    parts = get_args(bare) if get_origin(bare) in (Union, UnionType) else (bare,)
    plain = [part for part in parts if not (isinstance(part, type) and issubclass(part, BaseModel))]
    return " or ".join([*(kind(part, []) for part in plain), "mapping"])


def variables(model: type[BaseModel], leave_out: frozenset[str] = frozenset()) -> Iterator[Row]:
    """The settings of a model as environment variables."""
    prefix = str(model.model_config.get("env_prefix", ""))
    for row in rows(model, "", leave_out):
        yield Row(f"{prefix}{row.name}".upper(), row.kind, row.default, row.meaning)


def table(found: Iterator[Row] | list[Row], first: str) -> str:
    return "\n".join((f"| {first} | type | default | meaning |", "|---|---|---|---|", *map(str, found)))


KIND = frozenset({"kind"})

# Variables that are read without a model.
FUNCTIONS = Row(
    "TAMIS_FUNCTIONS",
    "text",
    "",
    "Modules of Python, separated by commas, with the "
    "[functions of Python](certificates.md#functions-of-python) that queries call.",
)
KERNELS = Row(
    "TAMIS_KERNELS",
    "path",
    "",
    "Directory of the kernels that were compiled ahead of time, for edges ([Install](install.md)). "
    "`tamis edge` finds those of the set-up itself.",
)
JARS = Row(
    "TAMIS_JARS",
    "path",
    "",
    "Directory with the jars of Spark's connector (`spark`) and of the embedded Kafka (`broker`). By default "
    "`.jars` in the repository.",
)
UNAVAILABLE = Row(
    "TAMIS_EXIT_UNAVAILABLE",
    "whole number, 1 to 127",
    "`2`",
    "Exit code if something that is needed isn't available ([exit codes](cli.md#exit-codes)).",
)
REGISTRY = Row(
    "TAMIS_REGISTRY",
    "URL",
    "`http://127.0.0.1:8181`",
    "The registry that `tamis apply`, `get` and `drop` send requests to; also `--registry`.",
)
EDGE_HOST = Row(
    "TAMIS_EDGE_HTTP_HOST",
    "text",
    "",
    "The address of the HTTP sources, before `http.host` of the file; also `--http-host`. The image of the "
    "edge sets it to every address.",
)
VERSION = Row("TAMIS_VERSION", "text", "", "Tag of the images that the Compose files start.")
IMAGES = Row("TAMIS_IMAGES", "text", "", "Prefix of the names of the images that the Compose files start.")


def sinks() -> Iterator[str]:
    """The fields that all sinks have, and then those of each kind, or with another default there."""
    (item,) = get_args(AlertsConfig.model_fields["sinks"].annotation)
    models: list[type[BaseModel]] = list(get_args(_unwrapped(item)[0]))
    common = {str(row) for row in rows(models[0], "", KIND)}
    for model in models[1:]:
        names = {row.name for row in rows(model, "", KIND)}
        common = {line for line in common if line.split("`")[1] in names}
    yield table([row for row in rows(models[0], "", KIND) if str(row) in common], "field") + "\n"
    for model in models:
        (name,) = get_args(model.model_fields["kind"].annotation)
        own = [row for row in rows(model, "", KIND) if str(row) not in common]
        yield f"#### sink: {name}\n"
        yield table(own, "field") + "\n" if own else "No further fields.\n"


def page() -> str:
    """The whole page."""
    common = frozenset(ServiceSettings.model_fields)
    parts = [
        HEAD,
        "## All services\n",
        table([*variables(ServiceSettings), FUNCTIONS, KERNELS, JARS, UNAVAILABLE], "variable") + "\n",
        "### Kafka\n",
        "[Security](security.md) says which of these belong together. `tamis watch` and `tamis redeliver` "
        "use them, too.\n",
        table(variables(KafkaSettings), "variable") + "\n",
        "### Schema registry\n",
        "For sources in Avro or Protobuf, and for streams with `value_format`.\n",
        table(variables(SchemaRegistrySettings), "variable") + "\n",
        "### Tables\n",
        "For registry and joiner.\n",
        table(variables(TableSettings), "variable") + "\n",
        "## Registry\n",
        table([*variables(RegistrySettings, common), *variables(RegistryHttpSettings)], "variable") + "\n",
        "## Joiner\n",
        table(variables(JoinerSettings), "variable") + "\n",
        "## Edge\n",
        table([EDGE_HOST, *variables(EdgeHttpSettings)], "variable") + "\n",
        "### The edge's file\n",
        "`tamis edge --config FILE.yaml`; [an example](../services/edge/example.yaml) explains the "
        "fields. A dot stands for one level of the file. Relative paths begin at the file's folder. A secret "
        "is written as `${NAME}`: its value is in the environment variable `NAME`, or in the file whose path "
        "is in `NAME_FILE`.\n",
        table(rows(EdgeConfig, "", frozenset({"sources"})), "field") + "\n",
    ]
    shared = frozenset(HttpSource.model_fields) & frozenset(FileSource.model_fields)
    parts += [
        "### Sources of an edge\n",
        "Each entry of `sources` has these fields and those of its `kind`. Without `sources` there is one "
        "source, of kind `http`.\n",
        table(rows(HttpSource, "", frozenset(HttpSource.model_fields) - (shared - {"kind"})), "field") + "\n",
    ]
    for source in (HttpSource, MqttSource, KafkaSource, FileSource):
        name = get_args(source.model_fields["kind"].annotation)[0]
        parts += [f"#### kind: {name}\n", table(rows(source, "", shared), "field") + "\n"]
    parts += [
        "## Alerts\n",
        "The service has the settings of [all services](#all-services), and a file with its sinks: "
        "`tamis alerts --config FILE.yaml`. [An example](../services/alerts/example.yaml) explains the "
        "fields. Each entry of `sinks` has these fields and those of its `kind`:\n",
        *sinks(),
        "### Routes and links\n",
        "Beside `sinks`, the file has these fields:\n",
        table(rows(AlertsConfig, "", frozenset({"sinks", "routes"})), "field") + "\n",
        "Each entry of `routes` has these:\n",
        table(rows(RouteConfig, "", frozenset()), "field") + "\n",
        "## Commands\n",
        table([REGISTRY, *variables(ClientSettings)], "variable") + "\n",
        "## Docker Compose\n",
        table([VERSION, IMAGES], "variable") + "\n",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
