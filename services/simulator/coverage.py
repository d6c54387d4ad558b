"""What a campaign must have reached to be complete: every event type that a core knows, and every
way that a round, a shoe or a consumable on the floor can go.

The auditor counts both as it reads the final log, so what counts is what happened, not what was
tried.
"""

from __future__ import annotations

from sabot.shoe.v1 import floor_events_pb2 as floor
from services.simulator.releases import BASE

EVENT = "event: "
"""How an event type is counted: this and its full name."""

SEAMLESS = "what seldom comes of partners' own wallets: tests/unit and the certification"
LIMITS = "player protection: tests/unit plays every order of it against a model"
OWED = "what corrected accounts owe: tests/unit"
NOTED = "the audit's own notes of what a shell or an operator finds: tests/unit"
CLOSED = "no simulated account is closed: tests/unit"
BLACKJACK = "blackjack on the floor is simulated where it is named: tests/simulation"
ATTESTED = "no simulated process has files to attest: tests/unit and tests/fleet"
ELSEWHERE: dict[str, str] = {
    "sabot.shoe.v1.RecordFaceDown": BLACKJACK,
    "sabot.shoe.v1.RecordPeek": BLACKJACK,
    "sabot.rules.v1.PlayContradicted": BLACKJACK,
    "sabot.audit.v1.SealLog": "seals are made by a shell with files: tests/unit and tests/fleet",
    "sabot.audit.v1.LogSealed": "the same",
    "sabot.table.v1.CloseBets": "exact odds at every round take too long: tests/unit",
    "sabot.table.v1.BetsClosed": "the same",
    "sabot.wallet.v1.CloseAccount": CLOSED,
    "sabot.wallet.v1.AccountClosed": CLOSED,
    "sabot.wallet.v1.ReceivableSettled": OWED,
    "sabot.wallet.v1.SettleReceivable": OWED,
    "sabot.wallet.v1.SetShortfallPolicy": OWED,
    "sabot.wallet.v1.ShortfallPolicySet": OWED,
    "sabot.audit.v1.FactsRefuted": "no simulated shell recalls what is not so: tests/unit",
    "sabot.audit.v1.EventsNoted": NOTED,
    "sabot.audit.v1.LargeAmountsFound": NOTED,
    "sabot.audit.v1.NoteEvents": NOTED,
    "sabot.log.v1.NoteCalls": NOTED,
    "sabot.log.v1.Attest": ATTESTED,
    "sabot.audit.v1.AttestationTaken": ATTESTED,
    "sabot.audit.v1.AttestationChanged": ATTESTED,
    "sabot.audit.v1.ReadsNoted": NOTED,
    "sabot.audit.v1.SetThresholds": NOTED,
    "sabot.audit.v1.ThresholdsSet": NOTED,
    "sabot.audit.v1.ContestSettlement": NOTED,
    "sabot.audit.v1.SettlementContested": NOTED,
    "sabot.table.v1.SetSwitch": LIMITS,
    "sabot.table.v1.SwitchSet": LIMITS,
    "sabot.limits.v1.AccountDescribed": LIMITS,
    "sabot.limits.v1.DescribeAccount": LIMITS,
    "sabot.limits.v1.ExclusionLifted": LIMITS,
    "sabot.limits.v1.LiftExclusion": LIMITS,
    "sabot.wallet.v1.MovementRefused": SEAMLESS,
    "sabot.wallet.v1.MovementRetried": SEAMLESS,
    "sabot.wallet.v1.MovementWrittenOff": SEAMLESS,
    "sabot.wallet.v1.SeamlessOrderRejected": SEAMLESS,
    "sabot.wallet.v1.CorrectionDebitDeclined": SEAMLESS,
}
"""Event types that no simulation brings about for certain, and where they are tried instead. A new
type that is not named here must be reached."""

EVENTS: tuple[str, ...] = tuple(
    EVENT + name
    for name in sorted(
        {
            str(kind.DESCRIPTOR.full_name)
            for core in BASE.values()
            for kind in core.folds | core.answers
        }
    )
    if name not in ELSEWHERE
)
"""All others."""

FLOOR_PATHS: tuple[str, ...] = (
    # A shoe, its cards and its count.
    "burned on the floor: BURN_REASON_SHOE_START",
    "burned on the floor: BURN_REASON_ROUND_OVER",
    "burned on the floor: BURN_REASON_NOT_CALLED",
    "burned on the floor: BURN_REASON_DROPPED",
    "burned on the floor: BURN_REASON_BETWEEN_ROUNDS",
    "burned on the floor: BURN_REASON_PROCEDURE",
    "card dealt by a device",
    "card dealt by a dealer's entry",
    "card held",
    "held card dealt",
    "cut card in a round",
    "cut card between rounds",
    "shoe on the floor runs out",
    "shoe counted: whole",
    "shoe counted: in parts",
    "shoe counted: not whole",
    # Wheels and dice.
    "toss by a sensor",
    "toss by a dealer's entry",
    "toss held",
    "held toss taken by its call",
    "held toss is void",
    "toss declared void",
    "void: INVALID_REASON_TOO_FEW_TURNS",
    "void: INVALID_REASON_WRONG_DIRECTION",
    "void: INVALID_REASON_DECLARED",
    "spun or rolled again",
    # What was wrong, and was corrected.
    "early card",
    "early toss",
    "toss contradicted",
    *(
        f"fault: {floor.FloorFault.Name(fault)}"
        for fault in floor.FloorFault.values()
        if fault not in (floor.FLOOR_FAULT_UNSPECIFIED, floor.FLOOR_FAULT_CARD_OUT_OF_TURN)
    ),
    "result after a fault that was looked at",
    "card corrected",
    "held card corrected",
    "hands corrected",
    "card drawn in error is not played",
    "call recalled",
    "corrected round settled",
    "round of cards on the floor",
    "toss corrected",
    "corrected toss settled",
    "round of told tosses",
    "suspension escalated on the floor",
    # No more bets.
    "late bets returned",
    "withdrawal waits for the close",
    "withdrawal made before the call",
    "withdrawal made after the call",
    "close in several steps",
    "betting closed by a timer",
    "call without a device's time",
    "call with a device's time",
    "call at a time that cannot be",
    "outcome ends the betting",
    # Consumables.
    *(
        f"consumable: {floor.Movement.Name(movement)}"
        for movement in floor.Movement.values()
        if movement
    ),
)
"""The ways of the floor; those of blackjack have a campaign of their own."""

UNREACHED_REFUSALS = {
    floor.FLOOR_REFUSAL_UNSPECIFIED: "none",
    floor.FLOOR_REFUSAL_FACE_DOWN: BLACKJACK,
    floor.FLOOR_REFUSAL_NOT_FACE_DOWN: BLACKJACK,
    floor.FLOOR_REFUSAL_PLACE_NOT_NAMED: BLACKJACK,
    floor.FLOOR_REFUSAL_LOOK_NOT_CALLED: BLACKJACK,
    floor.FLOOR_REFUSAL_TOO_MANY_CONSUMABLES: "after twenty thousand: tests/unit",
}
FLOOR_REFUSALS: tuple[str, ...] = tuple(
    f"refused: {floor.FloorRefusal.Name(refusal)}"
    for refusal in floor.FloorRefusal.values()
    if refusal not in UNREACHED_REFUSALS
)
"""Each refusal of what the floor tells, but those of `UNREACHED_REFUSALS`."""

REACHED: tuple[str, ...] = (*EVENTS, *FLOOR_PATHS, *FLOOR_REFUSALS)
"""What a campaign of 200 seeds must have reached."""
