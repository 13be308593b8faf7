"""Checks of the Helm chart that run `helm`.

`chart` knows the chart's files, `values_table` makes the table of its README, and `update` writes all files
that are copies or renderings. Checks without helm are in tests/unit/repository/test_helm_chart.py.
"""
