/** Readings or rows of which every column is shown. */
import type { Reading, Value, Whole } from "../api/documents";
import { shown } from "../text/numbers";
import { Table, type Column } from "./Table";
import { Time } from "./Time";

interface Properties {
  caption: string;
  rows: Reading[] | undefined;
  /** The columns that are times in microseconds. */
  times: string[];
  empty: string;
}

export function Rows({ caption, rows, times, empty }: Properties) {
  const names = [...new Set((rows ?? []).flatMap((row) => Object.keys(row)))].filter((name) => name !== "_");
  const columns: Column<[number, Reading]>[] = names.map((name) => ({
    heading: name,
    number: (rows ?? []).every((row) => !times.includes(name) && isNumber(row[name])),
    cell: ([, row]) => <Cell value={row[name]} time={times.includes(name)} />,
  }));
  const numbered = rows?.map((row, index): [number, Reading] => [index, row]);
  return <Table caption={caption} columns={columns} rows={numbered} rowKey={([n]) => String(n)} empty={empty} />;
}

export function Cell({ value, time }: { value: Value | undefined; time: boolean }) {
  if (time && isNumber(value)) return <Time at={value as Whole} />;
  return <>{shown(value)}</>;
}

export function isNumber(value: Value | undefined): boolean {
  return typeof value === "number" || typeof value === "bigint";
}
