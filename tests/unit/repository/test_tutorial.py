"""Pages with steps: the commands that need no fleet print what the page shows, and the others fit them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import orjson
import pytest
import yaml
from click.testing import CliRunner
from tests.unit.repository.test_operate_pages import check, commands

from tamis.cli import main
from tamis.errors import InputError
from tamis.query.parse import catalog_of
from tamis_alerts.core.notifications import is_routed
from tamis_alerts.settings import load_config
from tamis_edge.settings import EdgeConfig, FileSource
from tamis_edge.settings import load_config as load_edge

REPOSITORY = Path(__file__).resolve().parents[3]
TUTORIAL = (REPOSITORY / "docs" / "tutorial.md").read_text()
TIMES = (REPOSITORY / "docs" / "choose-times.md").read_text()
WITHOUT_FLEET, WITH_FLEET = TUTORIAL.split("## 7. Start a fleet")
# Commands of a page that a test need not repeat: they set up the shell.
SET_UP = {"make", "source", "mkdir"}


def blocks(page: str) -> list[tuple[str, str | None]]:
    """The blocks of shell commands of a page, each with the output below it, if one is shown."""
    found = re.findall(r"```sh\n(.*?)```\n(?:\n```text\n(.*?)```)?", page, re.DOTALL)
    return [(block, output or None) for block, output in found]


def without_files(block: str) -> str:
    """The block, once the files in it are written (`cat > FILE <<'END'`)."""
    pattern = re.compile(r"cat > (\S+) <<'END'\n(.*?)\nEND\n", re.DOTALL)
    for path, text in pattern.findall(block):
        Path(path).write_text(text + "\n")
    return pattern.sub("", block)


def run(line: str) -> str:
    """What a line of shell commands prints on standard output and standard error."""
    words, _, pipe = line.partition(" | head -n ")
    name, *arguments = shlex.split(words)
    if name == "tamis":
        output = CliRunner().invoke(main, arguments).output
        return "".join(output.splitlines(keepends=True)[: int(pipe)]) if pipe else output
    if name == "head":
        heads = (f"==> {path} <==\n" + first_lines(path, int(arguments[1])) for path in arguments[2:])
        return "\n".join(heads)
    assert name == "sed", f"the test knows no {name}"
    script, path, _, target = arguments
    _, old, new, _ = script.split("/")
    before = Path(path).read_text()
    assert before.count(old) == 1
    Path(target).write_text(before.replace(old, new))
    return ""


def first_lines(path: str, count: int) -> str:
    return "".join(Path(path).read_text().splitlines(keepends=True)[:count])


def follow(page: str) -> int:
    """Run the commands of a page and compare their output; the number of outputs compared."""
    compared = 0
    for block, shown in blocks(page):
        lines = [line for line in without_files(block).splitlines() if line.split()[0] not in SET_UP]
        printed = "".join(map(run, lines))
        if shown is not None:
            assert printed == shown
            compared += 1
    return compared


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory as the pages expect it."""
    (tmp_path / "demo").symlink_to(REPOSITORY / "demo")
    (tmp_path / "tutorial").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tutorial_prints_what_it_shows_and_its_readings_raise_alarms(folder: Path) -> None:
    assert follow(WITHOUT_FLEET) == 7
    assert follow(TIMES) == 2
    # The readings that are sent to the fleet by HTTP, MQTT and Kafka, as recordings.
    sent = re.findall(r"curl -X POST localhost:8282/v1/streams/(\w+) -d '(.*)'", WITH_FLEET)
    sent += re.findall(r"amqtt_pub .* -t plant/(\w+)/\w+ -m '(.*)'", WITH_FLEET)
    sent += [("surface", row) for row in re.findall(r"^python3 tutorial/send.py '(.*)'", WITH_FLEET, re.M)]
    inputs = []
    for stream in ("air", "surface"):
        rows = [row for name, row in sent if name == stream]
        assert len(rows) == {"air": 4, "surface": 5}[stream]
        (folder / f"{stream}.ndjson").write_text("\n".join(rows) + "\n")
        inputs += ["--input", f"{stream}={stream}.ndjson"]
    alarms = CliRunner().invoke(main, ["run", "tutorial/alerts.sql", *inputs, "--format", "ndjson"])
    found = [orjson.loads(line) for line in alarms.stdout.splitlines()]
    assert [(row["station"], round(row["dew"], 1), row["surface"]) for row in found] == [
        ("k1", 11.8, 3.5),
        ("k2", 13.2, 5.0),
    ]


def test_the_commands_for_a_fleet_exist_and_their_files_are_in_order(folder: Path) -> None:
    found = []
    for block, _ in blocks(WITH_FLEET):
        found += commands(without_files(block))
    for words in found:
        check(words)
    assert [words[0] for words in found] == ["up", "get", "watch", "sql", "up"]
    (sink,) = load_config(folder / "tutorial" / "alerts.yaml").sinks
    (written,) = yaml.safe_load((folder / "tutorial" / "alerts.yaml").read_text())["sinks"]
    assert (sink.kind, sink.name) == ("webhook", written["name"])
    receiver = (folder / "tutorial" / "receiver.py").read_text()
    compile(receiver, "receiver.py", "exec")
    compile((folder / "tutorial" / "send.py").read_text(), "send.py", "exec")
    edge = load_edge(folder / "tutorial" / "edge.yaml")
    assert (edge.name, edge.http.port) == ("edge", 8282)
    assert [(source.kind, source.name) for source in edge.sources] == [
        ("http", EdgeConfig().sources[0].name),
        ("mqtt", "plant"),
        ("kafka", "central"),
    ]
    assert f'("127.0.0.1", {str(written["url"]).rsplit(":", 1)[1].strip("/")})' in receiver


def test_the_configurations_of_sources_are_in_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTT_PASSWORD", "planted")
    page = (REPOSITORY / "docs" / "connect.md").read_text()
    configurations: list[EdgeConfig] = []
    for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        (folder / "edge.yaml").write_text(text)
        configurations.append(load_edge(folder / "edge.yaml"))
    sources = [source for edge in configurations for source in edge.sources]
    assert [source.kind for source in sources] == ["http", "mqtt", "kafka", "file", "file", "http"]
    assert all(source.path.is_file() for source in sources if isinstance(source, FileSource))
    ((row, port, stream),) = re.findall(r"curl -d '(.*)' localhost:(\d+)/v1/streams/(\w+)", page)
    assert configurations[0].http.port == int(port) and configurations[0].streams == frozenset([stream])
    assert orjson.loads(row).keys() == {"station", "ts", "temp", "rh"}
    # The reading with other names, by the map of the last configuration.
    (nested,) = re.findall(r"^This edge takes `(.*)`\.$", page, re.M)
    reading = orjson.loads(nested)
    for path in sources[-1].map.values():
        first, second = path.split(".")
        assert reading[first][second] is not None
    assert sources[-1].time_unit == "ms" and 1_700_000_000_000 < reading["ts"] < 2_000_000_000_000


def test_the_page_of_replays_prints_what_it_shows_and_its_files_are_in_order(folder: Path) -> None:
    page = (REPOSITORY / "docs" / "replay.md").read_text()
    recordings, fleets = page.split("## Through a fleet")
    assert follow(recordings) == 2
    (text,) = re.findall(r"```yaml\n(.*?)```", fleets, re.DOTALL)
    (folder / "replay.yaml").write_text(text)
    sources = load_edge(folder / "replay.yaml").sources
    assert [isinstance(source, FileSource) and source.path.is_file() for source in sources] == [True, True]
    (text,) = re.findall(r"```sql\n(.*?)```", fleets, re.DOTALL)
    assert catalog_of(text).alerts["frost"].options.from_ is not None


def test_the_sinks_and_routes_of_the_page_of_notifications_are_in_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (REPOSITORY / "docs" / "notify.md").read_text()
    for name in re.findall(r"\$\{(\w+)\}", page):
        monkeypatch.setenv(name, "https://planted.example/")
    (text,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    alert = catalog_of(text).alerts["frost"]
    episode = {"alert": "frost", "severity": alert.options.severity, "labels": dict(alert.options.labels)}
    kinds = set()
    for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        (folder / "alerts.yaml").write_text(text)
        config = load_config(folder / "alerts.yaml")
        kinds |= {sink.kind for sink in config.sinks}
        if config.routes:
            notified = [s.name for s in config.sinks if is_routed(config.core_routes, s.name, episode)]
            assert sorted(notified) == ["chat", "north", "on-call"]
    assert kinds == {"slack", "pagerduty", "email", "webhook", "alertmanager", "mqtt", "kafka"}
    # The message of a route to a sink that isn't there.
    wrong = (
        "sinks: [{kind: webhook, name: team, url: 'http://127.0.0.1:9000/'}]\nroutes: [{sinks: [pagerduty]}]"
    )
    (folder / "alerts.yaml").write_text(wrong)
    with pytest.raises(InputError) as raised:
        load_config(folder / "alerts.yaml")
    (shown,) = re.findall(r"```text\nError: (.*?)\n```", page)
    assert str(raised.value).replace(f"{folder}/", "") == shown
