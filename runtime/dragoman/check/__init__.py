"""Checking a server: one visit in each revision that it takes, and what it does that the revision forbids.

Lives here: the rules (`rules`), what breaks them (`findings`), listening to a server (`listening`) and judging each
frame (`judging`, in pieces: `slicing`), talking to it (`talk`) and for how long (`patience`), what a visit asks
(`visit`, `lists`, `uses`, `manners`, `http`), what older clients lose (`losses`), and reports (`report`). Must not:
move bytes (`transports`), or know a model (`dragoman_spec` does). `dragoman.check.check.check_server` is the way in;
`dragoman.cli.check` and `dragoman.testing` call it.

A check stands where a client stands, with nothing between it and the server: whatever the proxy would repair, answer
or discard on the way is what it is there to see.
"""
