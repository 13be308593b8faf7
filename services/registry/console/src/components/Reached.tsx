/** The event time below which the joiner is complete; in words once the sources have ended. */
import type { Whole } from "../api/documents";
import { END_OF_TIME } from "../text/joiner";
import { Time } from "./Time";

export function Reached({ at }: { at: Whole | null }) {
  if (at === END_OF_TIME) return <>the end of its sources</>;
  return <Time at={at} />;
}
