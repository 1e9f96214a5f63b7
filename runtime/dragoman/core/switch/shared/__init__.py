"""One server for several clients: what tells them apart.

`switch.Shared` is the switch; `from_clients` and `from_server` take what each side says; the modules beside them each
hold one of the tables, and `desk` all of them.
"""
