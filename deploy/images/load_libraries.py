"""Loads every compiled module below a directory: `load_libraries.py DIRECTORY` fails if one is broken."""

import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path

broken = []
for path in sorted(Path(sys.argv[1]).rglob("*.so")):
    name = path.name.partition(".")[0]
    try:
        module_from_spec(ModuleSpec(name, ExtensionFileLoader(name, str(path)), origin=str(path)))
    except ImportError as error:
        # A library without a module's entry point was loaded all the same.
        if "does not define module export function" not in str(error):
            broken.append(f"{path}: {error}")
sys.exit("\n".join(broken) or 0)
