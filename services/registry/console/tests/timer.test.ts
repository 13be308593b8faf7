import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Timer } from "../src/api/timer";

describe("a timer", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("isn't put off by requests that follow each other closely", () => {
    const action = vi.fn();
    const timer = new Timer(action);
    for (let elapsed = 0; elapsed < 1000; elapsed += 100) {
      timer.within(250);
      vi.advanceTimersByTime(100);
    }
    // At 250 ms, and then 250 ms after the next request each time: 300 + 250, 600 + 250.
    expect(action).toHaveBeenCalledTimes(3);
  });
  it("runs once, at the earliest time", () => {
    const action = vi.fn();
    const timer = new Timer(action);
    timer.within(15_000);
    timer.within(250);
    timer.within(5_000);
    vi.advanceTimersByTime(250);
    expect(action).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(60_000);
    expect(action).toHaveBeenCalledTimes(1);
  });
  it("doesn't run after stop, and can be set again", () => {
    const action = vi.fn();
    const timer = new Timer(action);
    timer.within(250);
    timer.stop();
    vi.advanceTimersByTime(1000);
    expect(action).not.toHaveBeenCalled();
    timer.within(500);
    vi.advanceTimersByTime(500);
    expect(action).toHaveBeenCalledTimes(1);
  });
});
