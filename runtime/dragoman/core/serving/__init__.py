"""Whose is it, and whose turn: what tells the clients of one server with sessions apart.

Lives here: the clients (`sessions`), their requests there (`loans`), which call goes next (`turns`), and whose
something is that the server says (`attribution`, `questions`). Must not: carry frames (`core.switch`).
"""
