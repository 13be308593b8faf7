/** A small chart of readings over event time: a point for each reading, a colour and a name for each series. */
import { short } from "../text/numbers";
import type { Series } from "../text/series";
import { NotLoaded } from "./NotLoaded";
import { useLoaded } from "./useLoaded";

const load = () => import("./PlottedReadings");

export function ReadingsChart({ series, caption }: { series: Series[]; caption: string }) {
  const { part, failed } = useLoaded(load);
  return (
    <figure class="chart">
      {part ? <part.PlottedReadings series={series} /> : <div class="plot" />}
      {failed && <NotLoaded what="The chart" />}
      <figcaption>
        {caption}{" "}
        {series.map(({ name, points }, index) => (
          <span key={name} class={`key series-${index + 1}`}>
            {name}: {summary(points)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

/** The chart in words, for those who don't see it. */
function summary(points: [number, number][]): string {
  const values = points.map(([, value]) => value);
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  return least === greatest ? short(least) : `${short(least)} to ${short(greatest)}`;
}
