"""Builds the images and tests them in containers: `make test-containers`.

Exits with 3 and one line that says why where no Docker engine can be had.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.containers import mirrors, wheels
from tests.containers.engine import ImpossibleError, engine, have_base
from tests.containers.images import REPOSITORY, build, have_images

from tamis.local.parent_death_signal import with_parent_death_signal

EVERYTHING = "tests/containers"
# The exit code of a machine on which no engine can be had.
IMPOSSIBLE = 3
# Pytest's exit code where tests failed.
FAILED = 1
# The time that running tests get to remove their containers when the run is told to stop.
CLEANING = 120.0


def main() -> int:
    """Run the tests, or only those that the command line names; returns the exit code."""
    handle_signals()
    try:
        with engine():
            chosen = sys.argv[1:] or [EVERYTHING]
            with _mirrors_answer():
                _step("the base image", have_base)
                _step("all images", partial(_build_everything, chosen))
            return run_tests(chosen)
    except ImpossibleError as error:
        print(f"containers can't be tested here: {error}", file=sys.stderr)
        return IMPOSSIBLE


def handle_signals() -> None:
    """Let containers be removed, and engine and tests be ended, when this process is told to stop."""

    def stop(*_: object) -> None:
        # `timeout` sends the signal twice. The second one must not end what the first one has begun.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    # Shells start programs in the background with this signal ignored, and pytest would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _mirrors_answer() -> Iterator[None]:
    """Raises ImpossibleError for a failure while the mirrors don't answer: it tells nothing about images."""
    try:
        yield
    except (RuntimeError, subprocess.CalledProcessError) as error:
        unreachable = mirrors.unreachable()
        if unreachable:
            raise ImpossibleError(f"{unreachable}: {str(error).strip().splitlines()[-1]}") from error
        raise


def _build_everything(chosen: list[str]) -> None:
    # Downloads, compilers and archives keep two cores busy only together.
    with ThreadPoolExecutor(3) as pool:
        lanes = {"images of the services": _build_services, "images of others": have_images}
        # It takes minutes, and only the chart's tests need it.
        if {EVERYTHING, "tests/containers/test_helm.py"} & set(chosen):
            lanes["helm"] = _have_helm
        for lane in [pool.submit(_step, name, run) for name, run in lanes.items()]:
            lane.result()


def _build_services() -> None:
    _step("wheels of all locks", wheels.make)
    first, *rest = wheels.SERVICES
    # The first one builds the layers that all have in common: compiler, Tamis's wheel, kernels.
    _step(f"image of the {first}", partial(build, first))
    with ThreadPoolExecutor(2) as pool:
        for image in [pool.submit(_step, f"image of the {name}", partial(build, name)) for name in rest]:
            image.result()


def _have_helm() -> None:
    """Helm, where test_helm.py would build it otherwise."""
    if shutil.which("go"):
        subprocess.run(
            ["tests/containers/install_helm.sh", ".helm"], cwd=REPOSITORY, check=True, capture_output=True
        )


def run_tests(chosen: list[str]) -> int:
    """Run the tests; those that fail are run once more. Returns the exit code.

    A run that is told to stop after a test has failed is a failed run all the same.
    """
    with TemporaryDirectory(prefix="tamis-containers-") as cache:
        options = ["--durations", "15", "-o", f"cache_dir={cache}"]
        try:
            code = _pytest([*options, *chosen])
            if code == FAILED:
                # On a busy machine an engine may be slow, or a first start late.
                print("\n*** FAILED TESTS OF CONTAINERS RUN A SECOND TIME, alone ***\n", flush=True)
                code = _pytest([*options, "--last-failed", "--last-failed-no-failures", "none", *chosen])
                print(f"\n*** THE SECOND TIME THEY {'FAILED' if code else 'PASSED'} ***\n", flush=True)
        except (KeyboardInterrupt, SystemExit):
            failures = Path(cache, "v/cache/lastfailed")
            if failures.exists() and json.loads(failures.read_text()):
                return FAILED
            raise
        # An error within pytest has the number that stands for a machine without an engine.
        return FAILED if code == IMPOSSIBLE else code


def _pytest(arguments: list[str]) -> int:
    # In a session of its own it doesn't get the signals that end this process and all of its group.
    process = subprocess.Popen(
        with_parent_death_signal([sys.executable, "-m", "pytest", *arguments]),
        env={**os.environ, "TAMIS_CONTAINERS": "1"},
        start_new_session=True,
    )
    try:
        return process.wait()
    except (KeyboardInterrupt, SystemExit):
        # Pytest ends its fixtures at this signal.
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(CLEANING)
        process.kill()
        raise


def _step(name: str, run: Callable[[], None]) -> None:
    start = time.monotonic()
    run()
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
