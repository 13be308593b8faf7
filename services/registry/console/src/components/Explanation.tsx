/** The explanation of a query: what edges omit, and how much memory it needs. */
import type { ExplainedQuery, ExplainedSource, Replacement } from "../api/documents";
import { percent, whole } from "../text/numbers";
import { links } from "../text/route";
import { duration } from "../text/time";
import { State } from "./State";

export function Explanation({ query }: { query: ExplainedQuery }) {
  const { memory } = query;
  return (
    <div class="explanation">
      <p>
        <strong>
          {query.kind} {query.name}
        </strong>{" "}
        <State state={query.accepted ? "accepted" : "refused"} />
      </p>
      {query.warnings?.map((warning) => (
        <p key={warning} class="warning">
          <strong>Warning:</strong> {warning}
        </p>
      ))}
      <h3>Memory</h3>
      <p>
        <State state={memory.verdict} />{" "}
        {memory.bound !== null && (
          <>
            at most <strong>{whole(memory.bound)}</strong> tuples or entries
          </>
        )}
      </p>
      {memory.reason && <p>{memory.reason}</p>}
      {memory.repairs.length > 0 && (
        <>
          <p>It would be bounded with one of these:</p>
          <ul>
            {memory.repairs.map((repair) => (
              <li key={repair}>
                <code>{repair}</code>
              </li>
            ))}
          </ul>
        </>
      )}
      {query.history && <p>{query.history}</p>}
      {query.streams.length > 0 && <h3>What edges omit and send</h3>}
      {query.streams.map((source) => (
        <Source key={source.alias} source={source} />
      ))}
      {query.replaces && <Replaced name={query.name} {...query.replaces} />}
    </div>
  );
}

function Replaced({ name, plan, changes, transition }: Replacement & { name: string }) {
  return (
    <>
      <h3>
        What it changes in <a href={links.alert(name)}>{name}</a> of plan {plan}
      </h3>
      {changes.length > 0 ? <Sentences of={changes} /> : <p>Nothing that edges or the joiner do.</p>}
      <h3>How it takes over</h3>
      <Sentences of={transition} />
    </>
  );
}

function Sentences({ of }: { of: string[] }) {
  return (
    <ul>
      {of.map((one) => (
        <li key={one}>{one}</li>
      ))}
    </ul>
  );
}

function Source({ source }: { source: ExplainedSource }) {
  const { alias, stream, key, predicate, omission } = source;
  return (
    <div class="source">
      <p>
        <a href={links.stream(stream)}>{stream}</a>
        {alias !== stream && <> as {alias}</>}: {omission.reason}
      </p>
      <dl class="facts">
        {key.length > 0 && <Fact name="For each">{key.join(", ")}</Fact>}
        {predicate && (
          <Fact name="Of tuples with">
            <code>{predicate}</code>
          </Fact>
        )}
        {omission.interval !== null && <Fact name="Omission interval">{duration(omission.interval)}</Fact>}
        {source.most_omitted !== undefined && <Fact name="Omitted at most">{percent(source.most_omitted)}</Fact>}
        {source.selectivity && (
          <Fact name="Estimated to pass">
            {percent(source.selectivity.share)}, by {source.selectivity.estimated_from}
          </Fact>
        )}
        {source.value && (
          <Fact name="Compared value">
            <code>{source.value}</code>
          </Fact>
        )}
        {omission.certificate && <Fact name="Proof">{omission.certificate}</Fact>}
        {source.sharing && (
          <Fact name="Topic">
            <code>{source.sharing.topic}</code>: {source.sharing.reason}
          </Fact>
        )}
      </dl>
      {source.sent && (
        <ul class="sent" aria-label={`Sent of ${stream}`}>
          {source.sent.text.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
      {source.advice?.map((change) => (
        <p key={change}>To omit more: {change}</p>
      ))}
    </div>
  );
}

function Fact({ name, children }: { name: string; children: preact.ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
