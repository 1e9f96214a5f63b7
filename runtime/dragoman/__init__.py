"""Dragoman: the interpreter between revisions of the Model Context Protocol.

`dragoman.proxy` joins a client and a server of any two revisions; `dragoman.cli` is the command line; `dragoman_spec`,
a package of its own, holds the revisions and the steps between them. Nothing is imported here, so that commands start
quickly.
"""
