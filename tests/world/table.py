"""Mistakes that people make, by hand: `python -m tests.world.mistakes -k`. Each was noticed by the rule that it names.

The rows are (what it is, file below the runtime, what stands there, what is put in its place).
"""

from __future__ import annotations

from typing import Final

EXCHANGE: Final = "core/edges/exchange.py"
LOANS: Final = "core/loans.py"
LOAN: Final = "core/serving/loans.py"
TURNS: Final = "core/serving/turns.py"
REASONS: Final = "core/serving/attribution.py"
QUESTIONS: Final = "core/serving/questions.py"

ROWS: Final = (
    (
        "a request that failed is answered again when its answer comes",
        EXCHANGE,
        "for call in self.calls[side].take_all():\n            if self.around",
        "for call in list(self.calls[side].waiting.values()):\n            if self.around",
    ),
    (
        "a lent id is not given back",
        LOANS,
        "            return self.by_key.pop(loan.key)\n",
        "            return loan\n",
    ),
    (
        "a call that ended without an answer is not remembered",
        TURNS,
        "        self._loans.suspects.add(loan.key, Suspect(loan.owner, loan.asks))",
        "        pass",
    ),
    (
        "lent ids come again",
        LOANS,
        "        self.latest += 1\n        loan",
        "        self.latest = (self.latest + 1) % 5\n        loan",
    ),
    (
        "who has left still owns a call",
        LOAN,
        "        return self.session if self.session is not None and self.session.present else None\n",
        "        return self.session\n",
    ),
    (
        "a call that was cancelled is no reason for a question",
        REASONS,
        "            if loan.frame is None and not (only_asking",
        "            if loan.frame is None and loan.cancelled_at is None and not (only_asking",
    ),
    (
        "a question that was answered may be answered again",
        QUESTIONS,
        "        del self._asked[key]\n        return True",
        "        return True",
    ),
    (
        "a question that may be about several goes to one of them",
        QUESTIONS,
        "        session = next(iter(reasons)) if len(reasons) == 1 else None",
        "        session = next(iter(reasons), None)",
    ),
    (
        "what a server asked before it was lost may be answered to the next",
        QUESTIONS,
        "        self._asked.clear()\n        return asked",
        "        return asked",
    ),
)
