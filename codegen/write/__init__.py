"""Plans, types and facts in, text out: everything below `generated/`, and `docs/steps/`.

Must not: find out anything that a plan does not say.
"""
