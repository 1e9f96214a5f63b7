"""The client library: Python calls in the place of a client program, in front of the proxy.

`dragoman.connect` is the way in. Lives here: a front transport whose frames are made of calls (`transport`), who waits
for which answer (`session`), what the server may ask (`handlers`), the calls themselves (`client`) and opening a
session (`connect`). Must not: translate, negotiate or move bytes; all that is `dragoman.proxy`, which stands between
these calls and every server.
"""
