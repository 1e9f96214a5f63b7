"""One server for several client sessions: what tells them apart, without I/O.

`hub.Hub` is the machine; the modules beside it each hold one of its tables. `throwaway.Throwaways` is the opposite: a
fresh server for every request. `dragoman.transports.shared` gives both their transports.
"""
