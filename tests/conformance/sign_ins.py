"""The suite's scenarios that sign in, by the revision that they are for; and what is wrong in what they found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

_SINCE_2025_11_25: Final = (
    "metadata-default",
    "metadata-var1",
    "metadata-var2",
    "metadata-var3",
    "basic-cimd",
    "scope-from-www-authenticate",
    "scope-from-scopes-supported",
    "scope-omitted-when-undefined",
    "scope-step-up",
    "scope-retry-limit",
    "token-endpoint-auth-basic",
    "token-endpoint-auth-post",
    "token-endpoint-auth-none",
    "pre-registration",
)
_SINCE_2026_07_28: Final = (
    "resource-mismatch",
    "offline-access-scope",
    "offline-access-not-supported",
    "authorization-server-migration",
    "iss-supported",
    "iss-not-advertised",
    "iss-supported-missing",
    "iss-wrong-issuer",
    "iss-unexpected",
    "iss-normalized",
    "metadata-issuer-mismatch",
)

EXTENSIONS: Final = "extensions"
"""Stands for a revision where the suite takes none."""

SIGN_INS: Final[Mapping[str, tuple[str, ...]]] = {
    revision: tuple(f"auth/{name}" for name in names)
    for revision, names in {
        "2025-03-26": ("2025-03-26-oauth-metadata-backcompat", "2025-03-26-oauth-endpoint-fallback"),
        "2025-11-25": _SINCE_2025_11_25,
        "2026-07-28": (*_SINCE_2025_11_25, *_SINCE_2026_07_28),
        EXTENSIONS: (
            "client-credentials-jwt",
            "client-credentials-basic",
            "enterprise-managed-authorization",
            "wif-jwt-bearer",
        ),
    }.items()
}
"""All that there are, but for DPoP, which the proxy does not know."""


def find_faults(revision: str, columns: Mapping[str, Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    """Name each check that the proxy does not pass, whatever the SDK does; and count the scenarios that all pass."""
    for column, found in columns.items():
        bad = {scenario: [name for name, said in found.get(scenario, {}).items() if said in ("FAILURE", "WARNING")]
               for scenario in SIGN_INS[revision]}  # fmt: skip
        whole = [scenario for scenario in bad if found.get(scenario) and not bad[scenario]]
        print(f"\n  auth of {revision}, {column}: {len(whole)} of {len(bad)} scenarios")
        if column != "SDK":
            missing = {scenario: ["no result"] for scenario in bad if not found.get(scenario)}
            for scenario, names in {**bad, **missing}.items():
                yield from (f"auth of {revision}, {column}: {scenario}: {name}" for name in names)
