/** Parser of server-sent events (the HTML standard, section 9.2.6), for streams that are read with fetch. */

export interface ServerEvent {
  kind: string;
  data: string;
  id: string | null;
}

/** Takes pieces of a stream and returns the events that each completes. */
export class EventParser {
  private rest = "";
  private kind = "";
  private data: string[] = [];
  private id: string | null = null;

  feed(piece: string): ServerEvent[] {
    const found: ServerEvent[] = [];
    this.rest += piece;
    // A carriage return at the end may be the first half of a line end.
    const lines = this.rest.split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.data.length > 0) found.push({ kind: this.kind || "message", data: this.data.join("\n"), id: this.id });
        this.kind = "";
        this.data = [];
      } else {
        this.field(line);
      }
    }
    return found;
  }

  private field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.kind = value;
    else if (name === "data") this.data.push(value);
    else if (name === "id" && !value.includes("\0")) this.id = value;
  }
}
