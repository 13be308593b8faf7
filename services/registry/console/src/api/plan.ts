/** The physical plan of an alert, as the registry describes it. */
import type { Whole } from "./documents";

export interface PlanBound {
  /** Null if there is no proven number. */
  most: Whole | null;
  unit: "tuples" | "entries";
  formula: string | null;
}

export interface PlanOperator {
  operator: string;
  runs: "edge" | "joiner";
  /** The stream or table that it reads. */
  subject: string | null;
  /** What it does; a name may come several times. */
  details: { name: string; text: string }[];
  keeps: string;
  bound: PlanBound | null;
  /** The operators whose rows it takes. */
  inputs: PlanOperator[];
}

export interface QueryPlan {
  name: string;
  kind: string;
  accepted: boolean;
  /** Why there is no plan. */
  reason: string | null;
  /** Of all operators together. */
  bound: PlanBound | null;
  plan: PlanOperator | null;
}
