"""The only owner of transports, timers, tasks and backpressure: carries out the commands of a switch.

`host` joins the edges of a switch to transports; `shared` does so where several clients share a server; `pool` chooses
which client gets which; `port` is one transport as a host sees it; `settings` is what can be decided.
"""
