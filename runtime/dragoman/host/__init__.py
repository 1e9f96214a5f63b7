"""The only owner of transports, timers, tasks and backpressure: carries out the commands of a switch.

`host` joins the edges of a switch to transports; `shared` does so when several clients share a server; `port` is one
transport as a host sees it. `dragoman.pool` chooses which client gets which server.
"""
