"""The protocol with one peer each: `front` faces a client, `upstream` a server; neither knows the other."""
