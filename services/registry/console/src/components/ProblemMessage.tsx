/** A problem document as a message: what is wrong, and what to do. */
import type { Problem } from "../api/client";

export function ProblemMessage({ problem, what }: { problem: Problem | null; what?: string }) {
  if (problem === null) return null;
  const { detail, title, hint } = problem.document;
  return (
    <div class="problem" role="alert">
      <p>
        {what && <strong>{what} </strong>}
        {detail ?? title}
      </p>
      {hint && <p>{hint}</p>}
    </div>
  );
}
