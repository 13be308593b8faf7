"""Variable independence and restricted aggregation (goldin-1997, chapter 6).

Two sets of variables are independent in a relation if it is a finite union of tuples in each of which the
values of the one say nothing about those of the other. Then the measure of the one for each value of the
other is again a relation of the same constraints.

| module | contents |
|---|---|
| `slices` | the test on a relation: a relation as a union of products, or why it is none |
| `points` | the hyperplanes where slices can change, and sample points between them |
| `measures` | exact lengths, areas and volumes |
| `aggregation` | the measure of some variables for each value of independent ones |
| `inference` | independence in the result of an expression, inferred from that in its operands |
| `evaluation` | expressions over a database; schemas that keep variables independent |
"""
