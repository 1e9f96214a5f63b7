"""What a step does, as data: derived from the types, or ruled by an entry of an overlay; else it is a question.

`plan` is the way in, `nodes` what comes out, `verbs` and `actions` what an entry may say. Must not: write Python.
"""
