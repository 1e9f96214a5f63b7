"""The modules of `dragoman_spec` that are the same for every input: written here, copied by `regen` with a notice.

They are Python, linted, typed and importable in place. Beside each other they import relatively, which means the same
in both places; what is rendered, such as `dragoman_spec._tables`, they import by its full name. Nothing else of codegen
imports what runs here, and nothing here knows a revision. Where the actions are, `codegen.plan.actions` reads what they
declare about themselves from their source.
"""
