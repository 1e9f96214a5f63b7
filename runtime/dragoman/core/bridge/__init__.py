"""The bridge between the two eras: what a peer of one era needs to work with a peer of the other.

Lives here: functions and small machines on decoded JSON; time and random bytes come in as arguments. Must not: hold
sockets or clocks, know transports, or translate what one message says by itself (that is `dragoman_spec`).
"""
