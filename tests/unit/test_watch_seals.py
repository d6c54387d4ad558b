"""Partners see the signed heads of the log go by as they watch a table."""

from __future__ import annotations

from sabot.audit.v1 import events_pb2 as audit
from sabot.partner.v1 import partner_service_pb2 as partners
from tests.unit.test_watch import WHOLE_ROUND, Hall, following, hall

__all__ = ["hall"]

SEAL = audit.LogSealed(size=5, root=b"r" * 32, head=b"h" * 32, signature=b"s", key_id="k")


async def test_the_newest_seal_comes_with_states_heartbeats_and_the_end_of_each_round(
    hall: Hall,
) -> None:
    first = await anext(hall.watch())
    assert not first.HasField("seal")
    hall.edge.happens(SEAL)
    stream = hall.watch()
    assert (await anext(stream)).seal == SEAL
    assert (await anext(stream)).heartbeat
    hall.open_round()
    for body in WHOLE_ROUND:
        hall.edge.happens(body)
    seen = [await following(stream) for _ in range(1 + len(WHOLE_ROUND))]
    with_seal = [each.round.state for each in seen if each.HasField("seal")]
    assert with_seal == [partners.ROUND_STATE_PAID]
    newer = audit.LogSealed(size=9)
    hall.edge.happens(newer)
    assert (await anext(hall.watch())).seal == newer
