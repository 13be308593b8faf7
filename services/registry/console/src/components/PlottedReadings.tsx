/** The drawn part of a chart of readings, which is loaded when a chart is first shown. */
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { aligned, type Series } from "../text/series";
import { clock } from "../text/time";

const HEIGHT = 180;
const COLOURS = ["--series-1", "--series-2", "--series-3", "--series-4"];

export function PlottedReadings({ series }: { series: Series[] }) {
  const place = useRef<HTMLDivElement>(null);
  const [dark, setDark] = useState(() => matchMedia("(prefers-color-scheme: dark)").matches);
  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setDark(query.matches);
    query.addEventListener("change", changed);
    return () => query.removeEventListener("change", changed);
  }, []);
  const names = series.map(({ name }) => name).join("\n");
  const chart = useRef<uPlot | null>(null);
  const newest = useRef(series);
  newest.current = series;
  useEffect(() => {
    const target = place.current;
    if (!target) return undefined;
    const made = draw(target, newest.current);
    chart.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: target.clientWidth, height: HEIGHT }));
    resized.observe(target);
    return () => {
      resized.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [names, dark]);
  useEffect(() => {
    chart.current?.setData(aligned(series) as uPlot.AlignedData);
  }, [series]);
  return <div ref={place} class="plot" aria-hidden="true" />;
}

function draw(target: HTMLElement, series: Series[]): uPlot {
  const colour = (name: string) => getComputedStyle(target).getPropertyValue(name).trim();
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return new uPlot(
    {
      width: target.clientWidth,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { range: margins } },
      axes: [
        { ...axis, size: 30, space: 100, values: (_, splits) => clock(splits) },
        { ...axis, size: widest },
      ],
      series: [
        {},
        ...series.map(({ name }, index) => {
          const stroke = colour(COLOURS[index % COLOURS.length] ?? "--text");
          // Points without lines: the readings of several keys are in one series.
          return { label: name, stroke, paths: () => null, points: { show: true, size: 5, fill: stroke } };
        }),
      ],
    },
    aligned(series) as uPlot.AlignedData,
    target,
  );
}

/** The room for the labels of the vertical axis: 7 px for each character, and a margin. */
function widest(_: uPlot, values: string[] | null): number {
  return Math.max(40, 18 + 7 * Math.max(0, ...(values ?? []).map(({ length }) => length)));
}

/** The times of the horizontal axis, in seconds, with room for the first and the last point. */
function margins(_: uPlot, first: number, last: number): [number, number] {
  const room = (last - first) * 0.02 || 1;
  return [first - room, last + room];
}
