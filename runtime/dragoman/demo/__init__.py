"""The demonstration: a server and a client of any two revisions, joined by the real proxy.

    server.py             the server: functions on `dragoman.server`, in one revision
    client.py             the client: a program of its own, in plain JSON, that opens a session
    stateless_client.py   the same for a revision without sessions
    peer.py               what both clients are made of
    stage.py              starts both sides, puts `dragoman.proxy.Proxy` between them, writes down every line
    crossings.py          pairs what one sent with what the other got, and with what was lost on the way
    shorten.py            JSON short enough to read, with the differences in it
    ink.py                colour, where a terminal takes it
    narrate.py            the conversation as text

Nothing here translates, and nothing outside knows that it is a demonstration. Called by `dragoman.cli.demo`.
"""
