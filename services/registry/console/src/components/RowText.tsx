/** A row or a reading in one cell: names and values. */
import type { Reading } from "../api/documents";
import { Cell } from "./Rows";

export function RowText({ row, times }: { row: Reading; times?: Set<string> }) {
  return (
    <span class="pairs">
      {Object.entries(row).map(([name, value]) => (
        <span key={name}>
          <span class="muted">{name}</span> <Cell value={value} time={times?.has(name) ?? false} />
        </span>
      ))}
    </span>
  );
}
