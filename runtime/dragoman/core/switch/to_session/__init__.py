"""A client whose requests each speak for themselves, at a server that opens a session with `initialize`.

Lives here: `switch` (which session serves a request), `session` (opening one; requests and
answers), `reading` (how both are written), `loans` (what the server is at work on), `attribution` (which call a
question of the server is about), `asking` (how it is put to the client, and the calls that wait for the answers),
`promoting` (tasks: calls that become one for it, and those that are one at the server), `notifications` and
`subscriptions` (what the server says without being asked). Must not: open a transport, or read a clock. Made by
`direct`.
"""
