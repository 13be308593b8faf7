/** A row or a reading in one cell: names and values. */
import type { Reading } from "../api/documents";
import { Cell } from "./Rows";

/** `times`: the columns that are times. */
export function RowText({ row, times }: { row: Reading; times: string[] }) {
  return (
    <span class="pairs">
      {Object.entries(row).map(([name, value]) => (
        <span key={name}>
          <span class="muted">{name}</span> <Cell value={value} time={times.includes(name)} />
        </span>
      ))}
    </span>
  );
}
