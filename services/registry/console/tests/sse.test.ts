import { describe, expect, it } from "vitest";
import { EventParser } from "../src/api/sse";

const STREAM = ': hello\n\nid: 1\nevent: plan\ndata: {"version": 4}\n\ndata: a\r\ndata: b\r\n\r\nevent: nothing\n\ndata\rdata:x\r\r';
const EVENTS = [
  { kind: "plan", data: '{"version": 4}', id: "1" },
  { kind: "message", data: "a\nb", id: "1" },
];

describe("the parser of server-sent events", () => {
  it("doesn't depend on where the stream is cut", () => {
    for (let cut = 0; cut <= STREAM.length; cut++) {
      const parser = new EventParser();
      const found = [...parser.feed(STREAM.slice(0, cut)), ...parser.feed(STREAM.slice(cut)), ...parser.feed("\n")];
      expect(found).toEqual([...EVENTS, { kind: "message", data: "\nx", id: "1" }]);
    }
  });
  it("takes single characters", () => {
    const parser = new EventParser();
    const found = [...`${STREAM}\n`].flatMap((character) => parser.feed(character));
    expect(found.slice(0, 2)).toEqual(EVENTS);
  });
});
