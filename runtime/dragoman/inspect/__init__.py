"""The live page: what crosses a proxy, shown in a browser while it happens, or from a trace afterwards.

    feed.py       in the proxy: hands on what crosses, as it is
    records.py    the form in which that reaches the viewer
    recording.py  in the viewer: the last lines, up to a number of bytes
    viewer.py     the viewer's process: reads a feed or a file, and serves the page
    site.py       what a browser gets, and who may have it
    bundle.py     the page as one HTML file that needs nothing else
    capture.py    a trace as a conversation, to be played back
    mock.py       a server that answers as the recorded one did
    play.py       a client that says what the recorded one said
    page/         the page itself: plain ES modules and a style sheet

Theory of operation. The viewer is a process of its own. The proxy writes to it what crosses, undecoded and many
frames at a time; the viewer makes lines of it, takes secrets out, keeps the last of them and serves them. So a large
frame or a slow browser takes time from the viewer, never from a call. Without `--inspect` nothing of this is
imported, and nothing is collected.
"""
