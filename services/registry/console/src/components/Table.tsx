/**
 * A table with a caption, headings that stay in sight, and a sentence in place of rows where there are none.
 * On phones rows are blocks; the roles tell screen readers that it is still a table.
 */
import { Fragment, type ComponentChildren } from "preact";

export interface Column<T> {
  heading: string;
  /** Right-aligned digits of equal width. */
  number?: boolean;
  /** This cell names its row. */
  head?: boolean;
  /** Texts that may break anywhere between words. */
  wide?: boolean;
  cell: (row: T) => ComponentChildren;
}

interface Properties<T> {
  caption: string;
  columns: Column<T>[];
  rows: T[] | undefined;
  rowKey: (row: T) => string;
  empty: ComponentChildren;
  /** A text about a row that is too long for a cell, as a row of its own; null for none. */
  note?: (row: T) => ComponentChildren;
}

export function Table<T>({ caption, columns, rows, rowKey, empty, note }: Properties<T>) {
  if (rows === undefined) return <p class="muted">Loading …</p>;
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table role="table">
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr role="row">
            {columns.map(({ heading, number }) => (
              <th key={heading} scope="col" role="columnheader" class={number ? "number" : undefined}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const more = note?.(row) ?? null;
            return (
              <Fragment key={rowKey(row)}>
                <tr role="row" class={more === null ? undefined : "noted"}>
                  {columns.map(({ heading, number, head, wide, cell }) => {
                    const style = [number && "number", wide && "wide"].filter(Boolean).join(" ") || undefined;
                    return head ? (
                      <th key={heading} scope="row" role="rowheader" class={style}>
                        {cell(row)}
                      </th>
                    ) : (
                      <td key={heading} role="cell" class={style} data-heading={heading}>
                        <div>{cell(row)}</div>
                      </td>
                    );
                  })}
                </tr>
                {more !== null && (
                  <tr role="row" class="note">
                    <td role="cell" colSpan={columns.length}>
                      <div>{more}</div>
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
