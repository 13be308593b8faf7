"""The search of the built site: questions lead to the page that answers them, by the code of browsers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
NODE = shutil.which("node")
# Questions, and the pages of which one must be among the first three.
ANSWERS = {
    "reading far behind": {"recover"},
    "in order": {"upgrade"},
    "dead letters": {"runbook", "topics"},
    "silence an alarm": {"silences"},
    "Why does a stream retain everything?": {"explain"},
    "connect mqtt": {"connect"},
    "stop the joiner": {"runbook"},
    "replace an alert": {"explain"},
    "how do I upgrade": {"upgrade"},
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """By question, the pages that the search finds, the best first."""
    if NODE is None:
        pytest.skip("NOT TESTED: this machine has no Node")
    site = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(site)]
    subprocess.run(build, cwd=REPOSITORY, check=True, timeout=300)
    asking = [NODE, str(Path(__file__).with_name("search.mjs")), str(site)]
    asked = json.dumps(list(ANSWERS))
    done = subprocess.run(asking, input=asked, capture_output=True, text=True, check=True, timeout=60)
    pages = [[page.removesuffix(".html") for page in one] for one in json.loads(done.stdout)]
    return dict(zip(ANSWERS, pages, strict=True))


@pytest.mark.parametrize("question", ANSWERS)
def test_the_page_that_answers_is_among_the_first_three(question: str, found: dict[str, list[str]]) -> None:
    assert ANSWERS[question] & set(found[question][:3]), found[question][:6]


def test_short_words_find_no_longer_ones(found: dict[str, list[str]]) -> None:
    # `in` is the beginning of Install.
    assert not {"install", "install-compose", "install-helm"} & set(found["in order"][:10])
