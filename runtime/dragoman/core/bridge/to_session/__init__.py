"""A client whose requests each speak for themselves, at a server that opens a session with `initialize`.

Lives here: `switch` (which session serves a request), `declared_session` (opening one), `open_session` (requests and
answers), `reading` (how both are written), `works` (what the server is at work on), `asking` (its questions in the
middle of a call, and when they are put), `parked` (calls that wait for the answers), `promoting`, `repeating` and
`visiting` (calls that become tasks, are made again, or need a URL visited), `native` (tools that are tasks at the
server), `notifications` and `subscriptions` (what it says without being asked). Must not: open a transport, or read a
clock. Made by `direct`.
"""
