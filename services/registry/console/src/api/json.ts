/** JSON with every digit of whole numbers. */

/** Parse JSON. Whole numbers beyond 2^53 become bigint, where the browser tells how a number was written. */
export function parseJson(text: string): unknown {
  const reviver = (_: string, value: unknown, context?: { source?: string }): unknown =>
    typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
      ? BigInt(context!.source!)
      : value;
  return JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
}

/** JSON of a value that may have bigints, for people. */
export function showJson(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map(showJson).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const parts = Object.entries(value).map(([name, part]) => `${JSON.stringify(name)}: ${showJson(part)}`);
    return `{${parts.join(", ")}}`;
  }
  return JSON.stringify(value) ?? "";
}
