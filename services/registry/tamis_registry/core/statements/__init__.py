"""Statements of users: a text is read, and each statement is applied to a draft of the state.

`catalog_changes` decides what a statement changes in the catalogue, also if the statement is applied again.
`outcomes` has the results for the user.
"""
