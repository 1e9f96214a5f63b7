"""The demonstration: a server and a client of any two revisions, joined by the real proxy.

    server.py             the server: functions on `dragoman.server`, in one revision
    client.py             the client: plain JSON on the session of `dragoman.client`, in one revision
    stage.py              starts both sides, puts `dragoman.proxy.Proxy` between them, writes down every line
    crossings.py          pairs what one sent with what the other got, and with what was lost on the way
    shorten.py            JSON short enough to read, with the differences in it
    ink.py                colour, where a terminal takes it
    narrate.py            the conversation as text

Nothing here translates, and nothing outside knows that it is a demonstration. Called by `dragoman.cli.demo`.
"""
