/** The shards of a stream: how far each has come, and since when it obeys its plan. */
import type { ShardDocument } from "../api/documents";
import { received } from "../text/decisions";
import { perSecond } from "../text/numbers";
import { Reasons } from "./Reasons";
import { Since } from "./Since";
import { State } from "./State";
import { Table } from "./Table";
import { Time } from "./Time";

export function Shards({ rows }: { rows: ShardDocument[] }) {
  return (
    <Table
      caption="Shards"
      rows={rows}
      rowKey={({ shard }) => shard}
      empty="No edge has announced a source of this stream yet. Check the streams in the configuration of the edge."
      columns={[
        { heading: "Shard", head: true, cell: ({ shard }) => shard },
        { heading: "State", cell: ({ state }) => <State state={state} /> },
        { heading: "Edge", cell: ({ edge }) => edge },
        { heading: "Watermark", cell: ({ watermark }) => <Time at={watermark} /> },
        { heading: "Plan", number: true, cell: ({ plan }) => plan ?? "–" },
        { heading: "Active since (event time)", cell: ({ activation }) => <Since at={activation} /> },
        { heading: "Received", number: true, cell: ({ rates }) => rate(received(rates)) },
        { heading: "Published", number: true, cell: ({ rates }) => rate(rates === null ? null : (rates.published ?? 0)) },
        { heading: "Why", wide: true, cell: ({ why, doubts }) => <Reasons why={[...(why ? [why] : []), ...doubts]} /> },
      ]}
    />
  );
}

function rate(value: number | null): string {
  return value === null ? "–" : perSecond(value);
}
