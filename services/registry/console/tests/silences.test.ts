import { describe, expect, it } from "vitest";
import type { Episode, Silence } from "../src/api/documents";
import { keyShown } from "../src/text/keys";
import { links, parseRoute } from "../src/text/route";
import { conditions, covers, held, keyText, opening, requested, type Wanted } from "../src/text/silences";

const EMPTY: Wanted = { alert: "", key: "", severity: "", label: "", seconds: 60, comment: "" };

describe("a form", () => {
  it("becomes a request with the conditions that are given", () => {
    const wanted = { ...EMPTY, alert: "hot", severity: "page, critical", label: "team=ops, team=night, site=a=b", comment: " x " };
    expect(requested({ ...wanted, key: "k1" })).toEqual({
      alerts: ["hot"], keys: [["k1"]], severities: ["page", "critical"],
      labels: { team: ["ops", "night"], site: ["a=b"] }, seconds: 60, comment: "x",
    });
    expect(requested({ ...EMPTY, key: '["k1", 3]' })).toEqual({ keys: [["k1", 3]], seconds: 60, comment: "" });
  });
  it("is refused with the mistake in it", () => {
    expect(requested(EMPTY)).toContain("would cover every alert");
    expect(requested({ ...EMPTY, label: "team" })).toContain("The label team has no value");
    expect(requested({ ...EMPTY, key: "[k1" })).toContain("is no JSON list");
  });
  it("gets the key of an episode", () => {
    for (const key of [["k1"], ["[x"], ["k1", 3], [7]]) {
      const made = requested({ ...EMPTY, key: keyText(key) });
      expect(made).toMatchObject({ keys: [key.length === 1 && key[0] === 7 ? [7] : key] });
    }
    expect(parseRoute(links.silence("hot", '["a b", 3]'))).toEqual({ page: "silences", alert: "hot", key: '["a b", 3]' });
    expect(parseRoute(links.silences)).toEqual({ page: "silences", alert: "", key: "" });
  });
});

describe("a key", () => {
  it("has times where its columns are times", () => {
    expect(keyShown(["k1", 1_700_000_000_500_000, 7, null], [1, 3])).toBe("k1, 2023-11-14T22:13:20.5Z, 7, NULL");
    expect(keyShown([], [])).toBe("");
  });
});

describe("a silence", () => {
  const silence: Silence = {
    id: "1", alerts: ["hot"], severities: null, labels: {}, keys: null, from: 0, until: 1, by: "", comment: "", made: 0, state: "active",
    held_notifications: 0, held_episodes: 0,
  };
  const episode: Episode = {
    alert: "hot", key: ["k1", 3], episode: "e", event: "opened", start: 0, end: 0, alarms: 1, row: {},
    severity: null, labels: { team: "ops" },
  };
  it("covers episodes that meet all conditions while it is active", () => {
    const cases: [Partial<Silence>, boolean][] = [
      [{}, true],
      [{ state: "pending" }, false],
      [{ state: "over" }, false],
      [{ alerts: ["cold"] }, false],
      [{ alerts: null, severities: [""] }, true],
      [{ severities: ["page"] }, false],
      [{ labels: { team: ["dev", "ops"] } }, true],
      [{ labels: { team: ["ops"], site: ["a"] } }, false],
      [{ labels: { site: [""] } }, true],
      [{ keys: [["k2", 3], ["k1", "3"]] }, true],
      [{ keys: [["k1"]] }, false],
      [{ keys: [["k1", "1970-01-01T00:00:00.000003Z"]] }, true],
      [{ keys: [["k1", "1970-01-01T01:00:00.000003+01:00"]] }, true],
      [{ keys: [["k1", "1970-01-01T00:00:00Z"]] }, false],
    ];
    for (const [part, expected] of cases) expect(covers({ ...silence, ...part }, episode)).toBe(expected);
  });
  it("says what it holds back while it is active", () => {
    const holds = { held_notifications: 3, held_episodes: 1 };
    expect(held({ ...silence, ...holds })).toBe("3 openings of 1 episode");
    expect([held(silence), held({ ...silence, ...holds, state: "over" })]).toEqual(["nothing", "–"]);
  });
  it("holds the opening of an episode that opened while a silence covered it", () => {
    const later = { ...silence, from: 100, until: 200, made: 100 };
    expect(opening(episode, 150, [later])).toBe("held");
    expect(opening(episode, 99, [later])).toBe("sent");
    // It begins in the past, but was made later.
    expect(opening(episode, 99, [{ ...later, from: 0 }])).toBe("sent");
    expect(opening(episode, 150, [{ ...later, alerts: ["cold"] }])).toBe("sent");
    // One that is over held it, and another one covers the episode since.
    expect(opening(episode, 50, [{ ...later, from: 0, made: 0, until: 120, state: "over" }, later])).toBe("held");
    expect(opening(episode, undefined, [later])).toBe(undefined);
  });
  it("tells its conditions", () => {
    expect(conditions({ ...silence, keys: [["k1", 3], ["k2", 4]], severities: ["page"], labels: { team: ["a", "b"] } })).toEqual([
      "alert hot", "key k1, 3 or k2, 4", "severity page", "label team: a or b",
    ]);
  });
});
