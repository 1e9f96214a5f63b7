"""Signing in to servers on the network by OAuth, as the authorization pages of each revision describe it.

`keeper` decides when somebody signs in, and `grants` how; nobody else does. What has to be done is written as
routines without I/O: generators that yield what they want (`wishes`) and are given what came of it. `driver` carries
them out; `authority` is what the transport asks for tokens. Nothing but `authority` and `settings` is imported before
a server asks for a token, or before there is one for it.
"""
