"""The bridge between the two eras: what a peer of one era needs to work with a peer of the other.

Lives here: functions and small machines on decoded JSON; time and random bytes come in as arguments. Must not: hold
sockets or clocks, know transports, or translate what one message says by itself (that is `dragoman_spec`).

- Every hop of the per-request era: `metadata`, `annotations` and `headers`, `errors`.
- Which era, and who is told what: `verdict`, `capabilities`, `discovery`.
- A client with a handshake at a per-request server: `inputs`; `listening`.
- A per-request client at a server with a handshake: `strategy`, then a result or `promoted`, which both ask by
  `asking`, or `replay`; `urls`, `roots`.
- For several of them: `questions`, `tasks`, `notices`; what clients carry for us: `state`.
- What there is between two peers: `features`, `explain`.

In what form. A bridge stands between the newest revision with a handshake and the oldest without (`names.OLDER`,
`names.NEWER`). What it makes for a client or a server with a handshake is of OLDER, and the steps take it from there;
what it takes from one has been brought to OLDER by the steps. Questions and answers are the exception: `questions` goes
all the way, for one half of the way they are no frames.
"""
