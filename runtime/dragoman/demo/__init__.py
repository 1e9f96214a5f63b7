"""The demonstration: a server and a client of any two handshake revisions, joined by the real proxy.

    client.py server.py   the two peers: programs of their own that speak one revision each, in plain JSON
    peer.py               what both are made of
    stage.py              starts both, puts `dragoman.proxy.Proxy` between them, writes down every line
    crossings.py          pairs what one sent with what the other got, and with what was lost on the way
    shorten.py            JSON short enough to read, with the differences in it
    ink.py                colour, where a terminal takes it
    narrate.py            the conversation as text

Nothing here translates, and nothing outside knows that it is a demonstration. Called by `dragoman.cli.demo`.
"""
