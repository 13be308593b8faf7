/** Small pieces of SQL. */

/** A name as an identifier, in quotes if it needs them. */
export function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replace(/"/g, '""')}"`;
}

/** The text of an alert as the statement that replaces it. */
export function replacing(sql: string): string {
  return sql.replace(/^(\s*)CREATE\s+(?!OR\s+REPLACE\b)/i, "$1CREATE OR REPLACE ");
}

/** A text that ends its last statement. */
export function ended(sql: string): string {
  return sql.trimEnd().endsWith(";") ? sql : `${sql.trimEnd()};\n`;
}
