"""The interactive part of `tamis sql`: statements of several lines, and mistakes at their place."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from tamis.cli.common.output import say, write
from tamis.cli.shell.completion import FORMS, SqlCompleter
from tamis.cli.shell.statements import results, show
from tamis.errors import SqlError, TamisError
from tamis.query.functions import AGGREGATE_FUNCTIONS, SCALAR_FUNCTIONS, SIMILARITY_FUNCTIONS
from tamis.query.syntax.dialect import WORDS
from tamis.query.syntax.text import Text, split
from tamis.web.registry_client import RegistryClient

# Colours of the terminal's own palette, which fits light and dark backgrounds.
STYLE = Style.from_dict(
    {
        "sql.keyword": "bold ansiblue",
        "sql.function": "ansimagenta",
        "sql.name": "ansicyan",
        "sql.string": "ansigreen",
        "sql.number": "ansigreen",
        "sql.comment": "italic ansibrightblack",
    }
)
_PART = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<string>'(?:[^']|'')*(?:'|\Z))|(?P<quoted>\"[^\"]*(?:\"|\Z))"
    r"|(?P<number>\b\d+(?:\.\d*)?(?:[eE][+-]?\d+)?\b)|(?P<word>[^\W\d]\w*)|(?P<other>\s+|.)",
    re.DOTALL,
)

HISTORY = ".tamis_history"  # in the home directory
# A prompt waits for the names, so a registry that is slow or away costs no more than this.
_NAMES_SECONDS = 1.0
_PROMPT = "tamis> "
_ENDS = ("\\q", "quit", "exit")
_HELPS = ("\\?", "help")

_HELP = """\
A statement ends with ; and may have several lines. Tab completes, the arrow up brings earlier statements.

  SELECT … FROM stream [WHERE condition] [LIMIT n];   the newest readings in the topics of the stream
  CREATE, ALTER, DROP, PAUSE ALERT, RESUME ALERT      change definitions, as tamis apply does
  EXPLAIN name;   EXPLAIN SELECT …;                   what edges omit, and the bound on memory
  SHOW ALERTS;   SHOW STREAMS;   SHOW PATTERNS;       the state, as tamis get shows it

  \\? or help   this text          Ctrl-C   discards what is typed
  \\q or quit   ends, as Ctrl-D    Ctrl-R   searches the history

Edges omit readings that no query needs. These are in no topic, so SELECT doesn't show them."""


def fragments(text: str, names: dict[str, Any]) -> StyleAndTextTuples:
    """The text in parts, each with the class of its style."""
    keywords = {word for phrase in names["keywords"] for word in phrase.split()}
    functions = {*names["builtin"], *(one["name"] for one in names["functions"])}
    known = {one["name"] for one in names["streams"]} | {*names["alerts"], *names["patterns"]}
    found: StyleAndTextTuples = []
    for match in _PART.finditer(text):
        kind, part = str(match.lastgroup), match.group()
        if kind == "word":
            if part.lower() in known:
                kind = "name"
            elif part.lower() in functions and text[match.end() :].lstrip().startswith("("):
                kind = "function"
            elif part.upper() in keywords:
                kind = "keyword"
        found.append((f"class:sql.{kind}", part))
    return found


class SqlLexer(Lexer):
    """The colours for prompt_toolkit; `names` returns the newest document of the registry."""

    def __init__(self, names: Callable[[], dict[str, Any]]) -> None:
        self._names = names

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The function that returns the parts of a line."""
        lines = list(split_lines(fragments(document.text, self._names())))
        return lambda number: lines[number] if number < len(lines) else []


class _Names:
    """The names of the registry; until it answers, the words of SQL alone."""

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry
        builtin = sorted({*SCALAR_FUNCTIONS, *AGGREGATE_FUNCTIONS, *SIMILARITY_FUNCTIONS})
        keywords = sorted({*WORDS, *(word for form in FORMS for word in form.split() if word.isalpha())})
        self.newest: dict[str, Any] = {
            **{kind: [] for kind in ("streams", "alerts", "functions", "patterns")},
            "builtin": builtin,
            "keywords": keywords,
        }
        self._failed = False

    def refresh(self) -> None:
        """Ask for them again. A registry that doesn't send them is reported once."""
        try:
            self.newest = self._registry.request("GET", "/v1/names", seconds=_NAMES_SECONDS)
            self._failed = False
        except TamisError as error:
            if not self._failed:
                say(f"no names to complete: {error}")
            self._failed = True


def interact(registry: RegistryClient) -> None:
    """Read statements from the terminal and run them, until Ctrl-D or \\q."""
    names = _Names(registry)
    write(f"Tamis at {registry.url}; \\? shows help, \\q ends")
    session: PromptSession[str] = PromptSession(
        _PROMPT,
        multiline=True,
        prompt_continuation=lambda width, *_: "-> ".rjust(width),
        history=_history(Path.home() / HISTORY),
        enable_history_search=True,
        lexer=SqlLexer(lambda: names.newest),
        completer=SqlCompleter(lambda: names.newest),
        complete_while_typing=False,
        key_bindings=_keys(),
        style=STYLE,
    )
    while True:
        names.refresh()
        try:
            typed = session.prompt()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        word = typed.strip().removesuffix(";").strip().lower()
        if word in _ENDS:
            return
        if word in _HELPS:
            write(_HELP)
            continue
        try:
            for result in results(registry, typed, None):
                show(result)
        except TamisError as error:
            say(f"Error: {error.shown}")
        except KeyboardInterrupt:
            say("interrupted; a statement that was sent may have been applied")


def _history(path: Path) -> History:
    """Earlier statements, which only their user may read; they are not kept where that isn't possible."""
    try:
        path.touch(mode=0o600)
        return FileHistory(str(path))
    except OSError as error:
        say(f"{path}: statements are not kept: {error.strerror}")
        return InMemoryHistory()


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        """Run what is complete; else begin a line."""
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        """Take the selected completion."""
        event.current_buffer.complete_state = None

    @keys.add("tab")
    def _(event: KeyPressEvent) -> None:
        """Complete what is certain at once, and offer the rest.

        prompt_toolkit's own binding completes in a task, and drops the result if another key comes first.
        """
        buffer = event.current_buffer
        if buffer.complete_state:
            buffer.complete_next()
            return
        completer = buffer.completer
        found = list(completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if len(found) == 1:
            buffer.apply_completion(found[0])
        elif common := get_common_complete_suffix(buffer.document, found):
            buffer.insert_text(common)
        elif found:
            buffer.start_completion()

    return keys


def is_complete(typed: str) -> bool:
    """True if Enter runs a text: it ends with a semicolon, or is a command of the shell.

    >>> is_complete("SHOW ALERTS"), is_complete("SHOW ALERTS; "), is_complete("help"), is_complete("x = 'a;")
    (False, True, True, False)
    """
    bare = typed.strip()
    if not bare or bare.lower() in (*_ENDS, *_HELPS):
        return True
    text, errors = Text(bare), list[SqlError]()
    pieces = list(split(text, errors))
    # Behind the last statement, an unclosed quote or comment is no statement of its own.
    rest = bare[pieces[-1].end if pieces else 0 :]
    return bare.endswith(";") and not rest.strip("; \t\r\n")
