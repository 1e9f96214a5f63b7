"""The protocol with one peer: `front` with a client, `upstream` with a server. Neither knows the other."""
