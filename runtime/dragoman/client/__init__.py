"""The client library: Python calls in the place of a client program, in front of the proxy.

`dragoman.connect` is the way in. Lives here: a front transport whose frames are made of calls (`transport`), who waits
for which answer (`session`), how each era opens and asks (`eras`), what the server may ask (`handlers`) and tells
(`notifications`, `subscriptions`), calls that run as tasks (`tasks`), the calls themselves (`client`) and opening a
session (`connect`). Must not: translate, negotiate or move bytes; all that is `dragoman.proxy`, which stands between
these calls and every server.
"""
