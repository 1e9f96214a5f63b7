"""A client whose requests each speak for themselves, at a server that opens a session with `initialize`.

Lives here: `switch` (opening, requests, answers), `works` (what the server is at work on), `asking` (questions of the
server in the middle of a call) and `hearing` (log messages and listen streams). Must not: open anything, or read a
clock. Made by `dragoman.core.switch.direct` when the first request of such a client comes.
"""
