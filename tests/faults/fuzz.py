"""Coverage-guided fuzzing of one target by Atheris: `python -m tests.faults.fuzz TARGET SECONDS CORPUS`.

Ends with an exit code other than 0 when an input raises an error, takes longer than 10 s, or makes the
process grow. libFuzzer prints the number of inputs at the end.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import tamis

TOOLS = Path(sys.prefix) / ".faults"
# After so many inputs caches and compiled code are there.
WARM = 3_000
MOST_GROWTH = 128 * 2**20
SECONDS_OF_AN_INPUT = 10
# Modules whose branches guide the fuzzer.
INSTRUMENTED = [
    "tamis.query",
    "tamis.plan",
    "tamis.recordings",
    "tamis_edge.decode",
    "tamis_edge.sources.http",
]


class GrowthError(AssertionError):
    """The process has become larger than it should."""


def resident() -> int:
    """The resident memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def main(name: str, seconds: int, corpus: Path) -> None:
    # Behind all others: its copies of packages that Tamis has, too, are not used.
    sys.path.append(str(TOOLS))
    import atheris  # type: ignore[import-untyped, unused-ignore]

    # Numba compiles no function that is instrumented.
    package = Path(tamis.__file__).parent
    compiled = [
        ".".join(file.relative_to(package.parent).with_suffix("").parts)
        for file in package.rglob("*.py")
        if "@njit" in file.read_text()
    ]
    assert compiled
    with atheris.instrument_imports(include=INSTRUMENTED, exclude=compiled):
        from tests.faults.fuzz_targets import target

        found = target(name)
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(found.seeds):
        found.read(seed)
        (corpus / f"seed-{number}").write_bytes(seed)
    words = corpus.parent / f"{name}.dict"
    # libFuzzer refuses an empty file of words.
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in found.words or ("null",)))
    inputs, warm = 0, 0

    def one_input(data: bytes) -> None:
        nonlocal inputs, warm
        inputs += 1
        found.read(data)
        if inputs % 500 == 0:
            size = resident()
            if inputs == WARM:
                warm = size
            if warm and size > warm + MOST_GROWTH:
                raise GrowthError(f"{warm >> 20} MB after {WARM} inputs, {size >> 20} MB after {inputs}")

    options: list[Any] = [
        f"-max_total_time={seconds}",
        f"-timeout={SECONDS_OF_AN_INPUT}",
        f"-artifact_prefix={corpus.parent}/{name}-",
        f"-dict={words}",
        "-rss_limit_mb=4096",
        "-max_len=4096",
        "-verbosity=0",
        "-print_final_stats=1",
        "-seed=17",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input)
    atheris.Fuzz()


def _escaped(word: str) -> str:
    """A word as a file of words for libFuzzer has it."""
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
