"""Texts in one spelling, in a time that grows with their length, whoever wrote them."""

from __future__ import annotations

import re
import unicodedata


def compose(text: str) -> str:
    """Return a text in the form NFKC.

    Marks are put in order before, as NFKC does, which takes the square of their number for it: 5 s for 64,000 marks.
    """
    if text.isascii():
        return text
    plain = text.translate({ord(one): unicodedata.normalize("NFKD", one) for one in set(text)})
    if marks := "".join(filter(unicodedata.combining, set(plain))):
        plain = re.sub(f"[{marks}]+", lambda run: "".join(sorted(run[0], key=unicodedata.combining)), plain)
    return unicodedata.normalize("NFKC", plain)
