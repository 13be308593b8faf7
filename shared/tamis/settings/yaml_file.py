"""Configuration files in YAML: every field is checked, and each mistake is reported with its line.

For an unknown field, kind or value, the message has the one that is most similar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import yaml
from pydantic import BaseModel, BeforeValidator, SecretStr, ValidationError

from tamis.errors import InputError
from tamis.settings.secret_files import PIPE_HINT, SUFFIX, environment_secret, read_limited
from tamis.wording.names import suggest

_Schema = Mapping[str, Any]


def mistake(fault: Mapping[str, Any], model: type[BaseModel]) -> str:
    """The message about one of pydantic's errors of a file, with a hint if something similar is known.

    Unknown fields, unknown kinds and unknown values have hints; other errors have pydantic's own message.

    >>> class Sink(BaseModel, extra="forbid"):
    ...     url: str = ""
    >>> mistake({"type": "extra_forbidden", "loc": ("ulr",), "msg": "", "ctx": {}}, Sink)
    "there is no such field; did you mean 'url'?"
    """
    context = fault.get("ctx") or {}
    match fault["type"]:
        case "extra_forbidden":
            *place, name = fault["loc"]
            known = _fields(model.model_json_schema(mode="validation"), place)
            return f"there is no such field; {suggest(str(name), known, _listed('fields', known))}"
        case "union_tag_invalid":
            known = _texts(str(context["expected_tags"]))
            field, tag = str(context["discriminator"]).strip("'"), str(context["tag"])
            return f"there is no {field} {tag!r}; {suggest(tag, known, _listed(f'{field}s', known))}"
        case _:
            # The prefix that pydantic sets before the message of a validator.
            return str(fault["msg"]).removeprefix("Value error, ")


def _listed(what: str, known: Sequence[str]) -> str:
    return f"the {what} are: {', '.join(known)}"


def _texts(listed: str) -> list[str]:
    """The texts of a list that pydantic has written.

    >>> _texts("'http', 'mqtt'")
    ['http', 'mqtt']
    """
    return [one.strip().strip("'") for one in listed.split(",")]


def _fields(whole: _Schema, place: Sequence[str | int]) -> list[str]:
    """The fields of the mappings that may stand at a place, by the JSON schema of the file."""
    found: list[_Schema] = [whole]
    for step in place:
        # A step that pydantic adds for one form of a union leads nowhere.
        found = [inner for schema in found for inner in _inside(schema, step, whole)] or found
    known = {name for schema in found for one in _forms(schema, whole) for name in one.get("properties", {})}
    return sorted(known)


def _inside(schema: _Schema, step: str | int, whole: _Schema) -> Iterator[_Schema]:
    """The schemas of the part of a value to which one step of a place leads."""
    for form in _forms(schema, whole):
        if isinstance(step, int):
            if "items" in form:
                yield form["items"]
        elif step in form.get("properties", {}):
            yield form["properties"][step]
        elif step in (mapping := form.get("discriminator", {}).get("mapping", {})):
            # The kind of a union is a step of its own.
            yield {"$ref": mapping[step]}


def _forms(schema: _Schema, whole: _Schema) -> Iterator[_Schema]:
    """The schema and its alternatives, with references followed."""
    if "$ref" in schema:
        yield from _forms(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
        return
    yield schema
    for word in ("anyOf", "allOf"):
        for one in schema.get(word, ()):
            yield from _forms(one, whole)


_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

# A file with thousands of tokens takes seconds without the loader in C.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# More than any configuration has. A device may have no end.
_MOST_BYTES = 16 * 2**20
# More than any configuration has. Aliases of aliases make gigabytes of a few hundred bytes.
_MOST_VALUES = 1_000_000
# The loader in C calls itself for each level: thousands of them would end the process.
_MOST_LEVELS = 100

M = TypeVar("M", bound=BaseModel)


def _from_environment(value: object) -> object:
    # Secrets that aren't in files aren't in repositories and backups either.
    if value is None:
        return None
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a secret is not written here: write ${NAME} and set that environment variable")
    secret = environment_secret(match[1])
    if secret is None:
        raise ValueError(
            f"the environment variable {match[1]} is not set; set it, or set {match[1]}{SUFFIX} to the path "
            "of a file with the secret"
        )
    return secret


def _referred(value: object) -> object:
    refers = isinstance(value, str) and _REFERENCE.fullmatch(value)
    return _from_environment(value) if refers else value


# For values that may be secret, and often aren't: they are written in the file, or as `${NAME}`.
Referred = BeforeValidator(_referred)
Secret = Annotated[SecretStr, BeforeValidator(_from_environment)]


def referred_variables(path: Path | None) -> set[str]:
    """The variables to which a configuration file refers as `${NAME}`; none without a regular file."""
    return set(_REFERENCE.findall(path.read_text())) if path is not None and path.is_file() else set()


def _is_deep(text: str) -> bool:
    """True if a YAML text has more than `_MOST_LEVELS` levels. Raises yaml.YAMLError.

    >>> _is_deep("[" * 100 + "]" * 100), _is_deep("[" * 101 + "]" * 101)
    (False, True)
    """
    depth = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MOST_LEVELS:
                return True
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return False


def _count(value: object, known: dict[int, float]) -> float:
    """The number of values in a tree, where a part that aliases repeat counts each time.

    >>> part = [1, 2]
    >>> _count({"a": part, "b": part}, {})
    7
    """
    if not isinstance(value, (dict, list)):
        return 1
    if id(value) not in known:
        known[id(value)] = float("inf")  # while it is counted: an alias of a part that it is in has no end
        parts = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_count(part, known) for part in parts)
    return known[id(value)]


def read_yaml(path: Path, model: type[M], example: str) -> M:
    """The content of the file as a model; the defaults if the file is empty.

    Messages refer to the file `example`. Raises InputError if the file can't be read or is wrong, with the
    line of every mistake but with no value, which might be a secret.
    """
    try:
        content = read_limited(path, _MOST_BYTES).bytes
        if len(content) > _MOST_BYTES:
            raise InputError(f"the file has more than {_MOST_BYTES:,} bytes", where=str(path))
        text = content.decode()
        if _is_deep(text):
            raise InputError(f"the file has more than {_MOST_LEVELS} levels", where=str(path))
        values = yaml.load(text, _LOADER)
    except TimeoutError as error:
        raise InputError(
            f"can't read the configuration: {error.strerror}", where=str(path), hint=PIPE_HINT
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read the configuration: {error}", where=str(path)) from error
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {error}", where=str(path)) from error
    if _count(values, {}) > _MOST_VALUES:
        raise InputError(
            f"the file has more than {_MOST_VALUES:,} values, counted with its aliases", where=str(path)
        )
    try:
        # Strict models take paths and nested models from JSON, but not from Python values.
        return model.model_validate_json(orjson.dumps({} if values is None else values))
    except TypeError as error:
        raise InputError(
            "the file may only have texts, numbers, true, false, null, lists, and mappings whose keys are "
            f"texts: {error}",
            where=str(path),
        ) from None
    except ValidationError as error:
        tree = yaml.compose(text, _LOADER)
        faults = error.errors(include_url=False, include_input=False)
        messages = [_message(tree, fault["loc"], mistake(fault, model)) for fault in faults]
        raise InputError("\n".join(messages), where=str(path), hint=f"{example} shows every field") from None


def _message(tree: yaml.Node | None, place: tuple[Any, ...], text: str) -> str:
    """The text of a mistake, behind its line and its field. A mistake of several fields has no line.

    >>> _message(yaml.compose("name: a/b"), ("name",), "use letters")
    'line 1: name: use letters'
    """
    # Pydantic names the validator of a form of a union, which isn't in the file.
    fields = ".".join(str(step) for step in place if "[" not in str(step))
    return f"line {_line(tree, place)}: {fields}: {text}" if place else text


def _line(node: yaml.Node | None, place: tuple[Any, ...]) -> int:
    """The line of the field at `place`, or of the innermost part of the path that exists."""
    line = 1
    for step in place:
        if isinstance(node, yaml.MappingNode):
            found = next(((k, v) for k, v in node.value if k.value == step), None)
            if found is None:
                continue  # a step that pydantic adds, such as the kind of a source
            line, node = found[0].start_mark.line + 1, found[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
    return line
