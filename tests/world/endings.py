"""Rules about what a world leaves behind, and about defects of ours."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.world.leftovers import OF_CLIENTS
from tests.world.plan import Plan
from tests.world.rules import Asked, Talk, rule, short


def _owes(one: Asked) -> bool:
    return not one.answers and one.frame["method"] != "subscriptions/listen"


@rule("no-rows")
def no_table_has_rows_when_all_have_left(plan: Plan, talk: Talk) -> Iterator[str]:
    """When all clients have left, and no server owes an answer, nothing is kept of what was under way."""
    if plan.router and plan.network.late_s > 1:
        return  # its servers may be opening still
    if plan.front == "http" and any(talk.is_gone(peer) for peer in talk.clients()):
        return  # sessions of clients that have gone without a word are kept for those
    if plan.instances > 1 and (plan.faults or plan.network.late):
        return  # and those of clients whose goodbye did not come through
    yield from (text for text in talk.record.left_over if any(place in text for place in OF_CLIENTS))
    if "health_s" in plan.options:
        return  # a look at the server may be under way
    owed = [one for peer in talk.servers() for one in talk.got[peer] if _owes(one)]
    given_up = [one for peer in talk.clients() for one in talk.asked[peer] if not one.answers]
    both = [*(talk.got[peer] for peer in talk.servers()), *(talk.asked[peer] for peer in talk.servers())]
    cancelled = any(one.cancelled for requests in both for one in requests)  # bounded, and kept for a while
    if not owed and not given_up and not cancelled and "request_timeout_s" not in plan.options:
        yield from talk.record.left_over


@rule("no-defect")
def nothing_is_logged_as_a_defect(plan: Plan, talk: Talk) -> Iterator[str]:
    """Nothing is logged as a defect of ours, and no exception is lost in the loop."""
    for level, text in talk.record.log:
        if "internal error" in text or "never retrieved" in text or "Traceback" in text or level == "CRITICAL":
            yield f"the log says: {text}"
    for peer in talk.clients():
        for event in talk.by_peer[peer]:
            if event.is_heard and "internal error" in json.dumps(event.frame):
                yield f"{peer} heard {short(event.frame)}"
