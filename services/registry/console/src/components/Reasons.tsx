/** Reasons of a state, as sentences below each other. */

export function Reasons({ why }: { why: string[] }) {
  if (why.length === 0) return <span class="muted">–</span>;
  if (why.length === 1) return <>{why[0]}</>;
  return (
    <ul class="reasons">
      {why.map((reason) => (
        <li key={reason}>{reason}</li>
      ))}
    </ul>
  );
}
