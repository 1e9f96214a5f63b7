"""Types of two revisions side by side: whether one fits another, which arm is which, and what changed, in words.

Must not: decide what a step does about it.
"""
