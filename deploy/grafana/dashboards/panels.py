"""Rows, panels and variables of a dashboard, built with grafana-foundation-sdk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard, stat, timeseries
from grafana_foundation_sdk.builders.common import VizLegendOptions
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DashboardLinkType,
    DataSourceRef,
    VariableRefresh,
)

from tamis.telemetry.metric_catalogue import CATALOGUE

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
HELP = {metric.name: metric.help for metric in CATALOGUE}
COLUMNS = 24  # of Grafana's grid
HEIGHT = 8


def rate(counter: str, by: str, where: str = "") -> str:
    """PromQL for a counter's rate in the time range of the panel, summed by the labels `by`.

    >>> rate("tamis_alarms_total", by="query")
    'sum by (query) (rate(tamis_alarms_total[$__rate_interval]))'
    """
    chosen = f"{{{where}}}" if where else ""
    return f"sum by ({by}) (rate({counter}{chosen}[$__rate_interval]))"


def quantile(share: float, histogram: str, by: str = "", where: str = "") -> str:
    """PromQL for a quantile of a histogram in the time range of the panel, by the labels `by`."""
    labels = f"{by}, le" if by else "le"
    return f"histogram_quantile({share}, {rate(histogram + '_bucket', labels, where)})"


@dataclass(frozen=True)
class Panel:
    """A panel: `queries` are pairs of a PromQL expression and the legend of its series.

    `unit` is one of Grafana's. `kind`: "lines" over time, or "number" for the value now.
    """

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "lines"
    note: str = ""

    @property
    def description(self) -> str:
        """The note, and the help of each metric that the queries read."""
        names = dict.fromkeys(re.findall(r"tamis_\w+", " ".join(query for query, _ in self.queries)))
        known = [HELP[_family(name)] for name in names if _family(name) in HELP]
        return ". ".join([*([self.note] if self.note else []), *known])


@dataclass(frozen=True)
class Row:
    """Panels side by side under a title."""

    title: str
    panels: tuple[Panel, ...]


def _family(name: str) -> str:
    """The metric of the catalogue that a series of a histogram belongs to."""
    return name if name in HELP else re.sub(r"_(bucket|count|sum)$", "", name)


def build(
    uid: str, title: str, rows: Sequence[Row], labels: Sequence[tuple[str, str]] = ()
) -> dashboard.Dashboard:
    """A dashboard of `rows`. Each of `labels` is a variable: a label, and a metric that has it."""
    made = (
        dashboard.Dashboard(title)
        .uid(uid)
        .tags(["tamis"])
        .readonly()
        .refresh("15s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .link(
            dashboard.DashboardLink("Tamis")
            .type(DashboardLinkType.DASHBOARDS)
            .tags(["tamis"])
            .as_dropdown(True)
        )
    )
    for label, metric in labels:
        made = made.with_variable(
            dashboard.QueryVariable(label)
            .label(label.capitalize())
            .datasource(SOURCE)
            .query(f"label_values({metric}, {label})")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(True)
            .include_all(True)
        )
    for row in rows:
        made = made.with_row(dashboard.Row(row.title))
        for panel in row.panels:
            made = made.with_panel(_panel(panel, COLUMNS // len(row.panels)))
    return made


def _panel(panel: Panel, span: int) -> timeseries.Panel | stat.Panel:
    made: timeseries.Panel | stat.Panel
    if panel.kind == "lines":
        legend = VizLegendOptions().display_mode(LegendDisplayMode.LIST).placement(LegendPlacement.BOTTOM)
        made = timeseries.Panel().legend(legend.show_legend(True)).min(0).fill_opacity(10)
    else:
        made = stat.Panel()
    made = made.title(panel.title).description(panel.description).unit(panel.unit)
    made = made.datasource(SOURCE).height(HEIGHT if panel.kind == "lines" else HEIGHT // 2).span(span)
    for expression, legend_text in panel.queries:
        target = Dataquery().expr(expression).legend_format(legend_text).datasource(SOURCE)
        made = made.with_target(target if panel.kind == "lines" else target.instant())
    return made
