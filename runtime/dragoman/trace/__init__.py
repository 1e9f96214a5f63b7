"""The frame trace: what crosses the proxy, written down as it happens, an object a line.

Lives here: watching transports and translations (`trace`), what a line says (`lines`), what it must not say (`redact`)
and writing without making anybody wait (`writer`). Must not: change a frame, or be there at all unless somebody asked
for a trace. `ProxyConfig.trace` takes a `Trace`; docs/trace.md describes the lines.

Beside it: seeing calls rather than frames (`calls`), for metrics (`metrics`, served by `port`) and
the access log (`access`).
"""
