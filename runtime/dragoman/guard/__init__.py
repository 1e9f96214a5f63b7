"""Tokens of an authorization server, as clients bring them: whose they are, and what they are good for.

`guard` has the guard of a front (`transports.http.bearer.Guard`), `keys` the keys of the issuer, `claims` what a
token has to say. A token is looked at here and goes nowhere else, unless the user says so.
"""
