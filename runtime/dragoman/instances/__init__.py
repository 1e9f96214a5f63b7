"""Several instances of one proxy, of which any takes a request for what another one has.

Lives here: who is where (`directory`, `store`), handing a request on (`relay`), taking one that was handed on (`door`),
what servers tell those who listen elsewhere (`news`), and what clients may resume elsewhere (`events`). Must not: know
MCP beyond what a request names, or be imported where a proxy is alone. Called by `cli.instances`.

Theory of operation. Behind a balancer that knows nothing of MCP, a request may come to an instance that does not have
its session, or its call that waits for an answer. The id of a session names its instance, as `requestState` and the id
of a task do. Whoever gets such a request hands the same HTTP request on, over a connection that is kept, and sends the
answer back as it comes. So a stream stays a stream, a client that leaves is seen to leave, and nothing is said twice.
The other instance finds out for itself who the client is: a request that is handed on gives nobody more than the same
request at the instance's own port.
"""
