"""Configuration files: YAML, every field checked, each mistake named with its line; secrets stay outside."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import yaml
from pydantic import BaseModel, BeforeValidator, SecretStr, ValidationError

from tamis.errors import InputError

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

M = TypeVar("M", bound=BaseModel)


def _from_environment(value: object) -> object:
    # Where secrets stay out of files they stay out of repositories and backups.
    if value is None:
        return None
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError("a secret is not written here: write ${NAME} and set that environment variable")
    if match[1] not in os.environ:
        raise ValueError(f"the environment variable {match[1]} is not set")
    return os.environ[match[1]]


Secret = Annotated[SecretStr, BeforeValidator(_from_environment)]


def read_yaml(path: Path, model: type[M], example: str) -> M:
    """The file's content as a model, its defaults where the file is empty.

    `example` is the file that a message sends its reader to. Raises InputError where the file can't be read
    or says what it must not; every mistake with its line, none with a value.
    """
    try:
        text = path.read_text()
        tree = yaml.compose(text, yaml.SafeLoader)
        values = yaml.safe_load(text)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"can't read the configuration: {error}", where=str(path)) from error
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {error}", where=str(path)) from error
    try:
        # Strict models take paths and nested models from JSON, but not from Python values.
        return model.model_validate_json(orjson.dumps({} if values is None else values))
    except TypeError as error:
        raise InputError(f"not plain values: {error}", where=str(path)) from None
    except ValidationError as error:
        faults = [
            f"line {_line(tree, fault['loc'])}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise InputError("\n".join(faults), where=str(path), hint=f"{example} shows every field") from None


def _line(node: yaml.Node | None, place: tuple[Any, ...]) -> int:
    """The line of the field at `place`, or of the innermost part of it that is there."""
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
