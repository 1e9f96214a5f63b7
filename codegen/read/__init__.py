"""Schemas and overlays in, types, facts and words out: the one reader of each.

What a person says of a revision is read here too (`overlay`). Must not: compare revisions.
"""
