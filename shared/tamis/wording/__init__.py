"""Words for users: suggestions for mistyped names, and hints on the form of files. Begin with `names`."""
