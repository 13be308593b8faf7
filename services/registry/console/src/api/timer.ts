/** A timer that many may set: it runs its action at the earliest time that was asked for. */
export class Timer {
  private handle: ReturnType<typeof setTimeout> | undefined;
  private due = Infinity;

  constructor(private readonly action: () => void) {}

  /**
   * Run the action within some milliseconds. A run that is due sooner stays as it is, so that events that follow each
   * other closely can't put it off.
   */
  within(milliseconds: number): void {
    const due = Date.now() + milliseconds;
    if (due >= this.due) return;
    this.stop();
    this.due = due;
    this.handle = setTimeout(() => {
      this.due = Infinity;
      this.action();
    }, milliseconds);
  }

  stop(): void {
    clearTimeout(this.handle);
    this.due = Infinity;
  }
}
