"""Several servers as one: what a router says to its client, and to whom it takes what the client says.

Lives here: names (`names`), merged lists (`lists`), opening (`opening`), whom a request is for (`catalogue`), questions
of servers (`asking`) and streams of notifications (`subscriptions`). Must not: translate, bridge or share; all that is
the business of the proxy that stands between this and each server, so every member of a catalogue speaks the client's
revision.
"""
