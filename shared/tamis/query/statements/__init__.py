"""The statements of Tamis SQL: from tokens to the definitions and commands of the model.

`parser` takes the first words of a statement and passes it to the module of its kind (`create_stream`, …,
`commands`). A definition reads its parts in the order of the text: the name, the columns (`columns`), the
options of WITH (`options`), and the query or expression after AS. `cascading_errors` remembers which names
a statement with a mistake would have defined, so that statements that use them report no further mistakes.
"""
