"""Whose is it, and whose turn: what tells the clients of one server with sessions apart.

Lives here: the clients (`sessions`), ids and progress tokens that are lent (`loans`), which call goes next
(`call_queue`), and whose a question of the server is (`questions`, `attribution`). Must not: carry frames
(`core.switch`).
"""
