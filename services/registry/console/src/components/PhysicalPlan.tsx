/** The physical plan of an alert: boxes of operators, from the edges on the left to the rows on the right. */
import { useLive } from "../api/live";
import type { PlanOperator, QueryPlan } from "../api/plan";
import { boundText, keepsNothing, planText, title } from "../text/plan";
import { ProblemMessage } from "./ProblemMessage";
import { Section } from "./Section";

const NOTE = "The operators that run for the alert, at edges and in the joiner, with the state that each keeps and its bound.";

export function PhysicalPlan({ alert }: { alert: string }) {
  const { data, problem } = useLive<QueryPlan>(`/v1/alerts/${encodeURIComponent(alert)}/plan`, ["plan"]);
  return (
    <Section title="Physical plan" note={NOTE}>
      <ProblemMessage problem={problem} />
      {data?.plan && (
        <>
          {data.bound !== null && (
            <p>
              All operators together keep <strong>{boundText(data.bound) || data.bound.formula}</strong>.
            </p>
          )}
          {/* The picture is wider than the page where operators are deeply nested. */}
          <div class="plan" role="region" aria-label="Operators" tabIndex={0}>
            <ul class="inputs">
              <Step operator={data.plan} />
            </ul>
          </div>
          <details>
            <summary>As text</summary>
            <pre class="sql tree">{planText(data.plan)}</pre>
          </details>
        </>
      )}
      {data && data.plan === null && <p class="empty">There is no plan: {data.reason}.</p>}
    </Section>
  );
}

/** An operator behind those whose rows it takes: the reading order is that of the rows. */
function Step({ operator }: { operator: PlanOperator }) {
  return (
    <li class="step">
      {operator.inputs.length > 0 && (
        <ul class="inputs">
          {operator.inputs.map((input, number) => (
            <Step key={number} operator={input} />
          ))}
        </ul>
      )}
      <Box operator={operator} />
    </li>
  );
}

function Box({ operator }: { operator: PlanOperator }) {
  const { details, runs, keeps, bound } = operator;
  return (
    <div class={`operator ${runs}`}>
      <p class="name">
        <strong>{title(operator)}</strong> <span class="place">{runs}</span>
      </p>
      <dl>
        {details.map(({ name, text }, number) => (
          <div key={number}>
            <dt>{name}</dt>
            <dd title={text}>
              <code>{text}</code>
            </dd>
          </div>
        ))}
        <div class={keepsNothing(operator) ? "muted" : "state-kept"}>
          <dt>keeps</dt>
          <dd title={keeps}>{keeps}</dd>
        </div>
        {bound !== null && (
          <div class="state-kept">
            <dt>bound</dt>
            <dd title={bound.formula ?? ""}>{boundText(bound) || bound.formula}</dd>
          </div>
        )}
      </dl>
    </div>
  );
}
