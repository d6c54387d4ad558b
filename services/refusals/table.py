"""The table's refusals, and the reasons that speak of tables, rounds, bets and shoes."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from sabot.rules.v1 import rule_set_pb2 as rule_sets
from sabot.table.v1 import events_pb2 as table
from sabot.table.v1 import switch_pb2 as switches
from services.kernel import errors
from services.kernel.errors import Reason, Refused, Retry
from services.refusals import corrections
from services.refusals.wallet import CURRENCY_MISMATCH, DECISION_FAILED

_Code = grpc.StatusCode

TABLE_NOT_FOUND = Reason(
    "TABLE_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "There is no table {table_id}.",
    "Il n'existe pas de table {table_id}.",
)
ROUND_NOT_FOUND = Reason(
    "ROUND_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "There is no round {round_id} there.",
    "Il n'existe pas de manche {round_id} à cet endroit.",
)
BET_NOT_FOUND = Reason(
    "BET_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "The account {account_id} has no such bet on in round {round_id}.",
    "Le compte {account_id} n'a pas de tel pari en cours dans la manche {round_id}.",
)
REQUEST_NOT_FOUND = Reason(
    "REQUEST_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "No request {request_id} stands in the log up to {position}.",
    "Aucune requête {request_id} ne figure au journal jusqu'à {position}.",
)
SHOE_NOT_FOUND = Reason(
    "SHOE_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "There is no shoe {shoe_id} in use.",
    "Il n'y a pas de sabot {shoe_id} en service.",
)
SHOE_NOT_PLAYED = Reason(
    "SHOE_NOT_PLAYED",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "No round was opened with a shoe {shoe_id}.",
    "Aucune manche n'a été ouverte avec un sabot {shoe_id}.",
)
NO_ROADS = Reason(
    "NO_ROADS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The game of table {table_id} has no roads.",
    "Le jeu de la table {table_id} n'a pas de tableau de marque.",
)
RULE_SET_NOT_FOUND = Reason(
    "RULE_SET_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "There is no rule set {rule_set_id}.",
    "Il n'existe pas de règles {rule_set_id}.",
)
BAD_RULE_SET = Reason(
    "BAD_RULE_SET",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "These are no rules that a table may be opened with: {detail}.",
    "Aucune table ne peut être ouverte avec ces règles : {detail}.",
)
BETTING_CLOSED = Reason(
    "BETTING_CLOSED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} takes no more bets.",
    "La manche {round_id} ne prend plus de paris.",
)
ROUND_SUSPENDED = Reason(
    "ROUND_SUSPENDED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} is suspended.",
    "La manche {round_id} est suspendue.",
)
BET_NOT_OFFERED = Reason(
    "BET_NOT_OFFERED",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The table {table_id} does not offer {place}.",
    "La table {table_id} ne propose pas {place}.",
)
TOO_MANY_BETS = Reason(
    "TOO_MANY_BETS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The account {account_id} would have too many bets in round {round_id}.",
    "Le compte {account_id} aurait trop de paris dans la manche {round_id}.",
)
TOO_MANY_REQUESTS = Reason(
    "TOO_MANY_REQUESTS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} takes no further requests of this account.",
    "La manche {round_id} ne prend plus de requêtes de ce compte.",
)
ROUND_RUNNING = Reason(
    "ROUND_RUNNING",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "A round is running at table {table_id}.",
    "Une manche est en cours à la table {table_id}.",
)
TABLE_CLOSED = Reason(
    "TABLE_CLOSED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The table {table_id} is closed.",
    "La table {table_id} est fermée.",
)
SHOE_NOT_READY = Reason(
    "SHOE_NOT_READY",
    _Code.UNAVAILABLE,
    Retry.LATER,
    "The shoe at table {table_id} is not ready yet; ask again with a new request id.",
    "Le sabot de la table {table_id} n'est pas encore prêt ; redemandez avec un autre identifiant.",
    retry_ms=1000,
)
ALREADY_SUSPENDED = Reason(
    "ALREADY_SUSPENDED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} is suspended already.",
    "La manche {round_id} est déjà suspendue.",
)
NOT_SUSPENDED = Reason(
    "NOT_SUSPENDED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} is not suspended.",
    "La manche {round_id} n'est pas suspendue.",
)
RESULT_ACCEPTED = Reason(
    "RESULT_ACCEPTED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} has its result: what is wrong with it is a correction now.",
    "La manche {round_id} a son résultat : toute erreur relève désormais d'une correction.",
)
ROUND_VOIDED = Reason(
    "ROUND_VOIDED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} was voided.",
    "La manche {round_id} a été annulée.",
)
ROUND_OVER = Reason(
    "ROUND_OVER",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} is over.",
    "La manche {round_id} est terminée.",
)
BAD_TABLE_SPEC = Reason(
    "BAD_TABLE_SPEC",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The table's rules, limits and pacing do not fit together: {detail}.",
    "Les règles, limites et rythme de la table ne vont pas ensemble : {detail}.",
)
NO_ODDS = Reason(
    "NO_ODDS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "There are no exact odds of shoe {shoe_id} now: {detail}.",
    "Il n'y a pas de cotes exactes du sabot {shoe_id} en ce moment : {detail}.",
)
TOO_MANY_TABLES = Reason(
    "TOO_MANY_TABLES",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The cell has as many open tables as it may.",
    "La cellule a atteint son nombre maximal de tables ouvertes.",
)
NOT_ON_LAYOUT = Reason(
    "NOT_ON_LAYOUT",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The layout of table {table_id} has no {place}.",
    "Le tapis de la table {table_id} n'a pas de {place}.",
)
NOT_WHOLE_CHIPS = Reason(
    "NOT_WHOLE_CHIPS",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "The stake of {place} must be a whole multiple of its number of chips.",
    "La mise de {place} doit être un multiple entier de son nombre de jetons.",
)
BET_BY_ACT = Reason(
    "BET_BY_ACT",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "{place} is staked by Act, at its seat's turn, not by PlaceBets.",
    "{place} se mise par Act, au tour de sa place, et non par PlaceBets.",
)
SWITCHED_OFF = Reason(
    "SWITCHED_OFF",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "No new bets or rounds: {switch} is switched off.",
    "Ni nouveaux paris ni nouvelles manches : {switch} est désactivé.",
)
SWITCH_UNCHANGED = Reason(
    "SWITCH_UNCHANGED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{switch} is switched so already.",
    "{switch} est déjà dans cet état.",
)
BAD_SWITCH = Reason(
    "BAD_SWITCH",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "There is nothing like this to switch off: {detail}.",
    "Il n'y a rien de tel à désactiver : {detail}.",
)
TOO_MANY_SWITCHES = Reason(
    "TOO_MANY_SWITCHES",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "As much is switched off as can be kept; switch off a partner or a game instead.",
    "Le nombre de désactivations est au maximum ; désactivez plutôt un partenaire ou un jeu.",
)
SEAT_TAKEN = Reason(
    "SEAT_TAKEN",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "Another account holds that seat in round {round_id}.",
    "Un autre compte occupe cette place dans la manche {round_id}.",
)
NOT_YOUR_SEAT = Reason(
    "NOT_YOUR_SEAT",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The account {account_id} does not hold that seat in round {round_id}.",
    "Le compte {account_id} n'occupe pas cette place dans la manche {round_id}.",
)
NOT_YOUR_TURN = Reason(
    "NOT_YOUR_TURN",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "It is another turn in round {round_id}, or that turn is over.",
    "C'est un autre tour dans la manche {round_id}, ou ce tour est terminé.",
)
ACTION_NOT_ALLOWED = Reason(
    "ACTION_NOT_ALLOWED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The hand does not allow that action; it is as it was.",
    "La main ne permet pas cette action ; elle reste inchangée.",
)
BAD_EXTRA_STAKE = Reason(
    "BAD_EXTRA_STAKE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The further stake is not one that the turn allows; the hand is as it was.",
    "La mise supplémentaire n'est pas de celles que le tour permet ; la main reste inchangée.",
)
ACTION_PENDING = Reason(
    "ACTION_PENDING",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The seat's further stake is not decided yet; wait for its outcome.",
    "La mise supplémentaire de cette place n'est pas encore décidée ; attendez son issue.",
)
NOT_ON_FLOOR = Reason(
    "NOT_ON_FLOOR",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The outcomes of table {table_id} are drawn, not told from the floor.",
    "Les résultats de la table {table_id} sont tirés, et non transmis par la salle.",
)
CORRECTION_PENDING = Reason(
    "CORRECTION_PENDING",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "A correction of round {round_id} is not decided yet; ask again with a new request id.",
    "Une correction de la manche {round_id} n'est pas encore décidée ; redemandez avec un autre"
    " identifiant.",
)
NOT_CORRECTABLE = Reason(
    "NOT_CORRECTABLE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "Bettors have acted on what was told in round {round_id}: it can be voided, not corrected.",
    "Des parieurs ont agi d'après ce qui était annoncé dans la manche {round_id} : elle peut être"
    " annulée, non corrigée.",
)
PLAY_CONTRADICTED = Reason(
    "PLAY_CONTRADICTED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "With the corrected cards, what was played in round {round_id} cannot have been played: it can"
    " be voided, or corrected again.",
    "Avec les cartes corrigées, ce qui a été joué dans la manche {round_id} n'a pas pu l'être :"
    " elle peut être annulée, ou corrigée de nouveau.",
)

REASONS = (
    TABLE_NOT_FOUND,
    ROUND_NOT_FOUND,
    BET_NOT_FOUND,
    REQUEST_NOT_FOUND,
    SHOE_NOT_FOUND,
    SHOE_NOT_PLAYED,
    NO_ROADS,
    RULE_SET_NOT_FOUND,
    BAD_RULE_SET,
    BETTING_CLOSED,
    ROUND_SUSPENDED,
    BET_NOT_OFFERED,
    TOO_MANY_BETS,
    TOO_MANY_REQUESTS,
    ROUND_RUNNING,
    TABLE_CLOSED,
    SHOE_NOT_READY,
    ALREADY_SUSPENDED,
    NOT_SUSPENDED,
    RESULT_ACCEPTED,
    ROUND_VOIDED,
    ROUND_OVER,
    BAD_TABLE_SPEC,
    NO_ODDS,
    TOO_MANY_TABLES,
    NOT_ON_LAYOUT,
    NOT_WHOLE_CHIPS,
    BET_BY_ACT,
    SEAT_TAKEN,
    NOT_YOUR_SEAT,
    NOT_YOUR_TURN,
    ACTION_NOT_ALLOWED,
    BAD_EXTRA_STAKE,
    ACTION_PENDING,
    NOT_ON_FLOOR,
    CORRECTION_PENDING,
    NOT_CORRECTABLE,
    PLAY_CONTRADICTED,
    SWITCHED_OFF,
    SWITCH_UNCHANGED,
    BAD_SWITCH,
    TOO_MANY_SWITCHES,
)

REFUSALS: Mapping[int, Reason] = {
    table.REFUSAL_UNKNOWN_TABLE: TABLE_NOT_FOUND,
    table.REFUSAL_UNKNOWN_ROUND: ROUND_NOT_FOUND,
    table.REFUSAL_REQUEST_EXPIRED: errors.REQUEST_EXPIRED,
    table.REFUSAL_REQUEST_ID_REUSED: errors.REQUEST_ID_REUSED,
    table.REFUSAL_REQUEST_ID_AHEAD: errors.REQUEST_ID_AHEAD,
    table.REFUSAL_BETTING_CLOSED: BETTING_CLOSED,
    table.REFUSAL_ROUND_SUSPENDED: ROUND_SUSPENDED,
    table.REFUSAL_CURRENCY_MISMATCH: CURRENCY_MISMATCH,
    table.REFUSAL_UNKNOWN_BET: BET_NOT_OFFERED,
    table.REFUSAL_TOO_MANY_BETS: TOO_MANY_BETS,
    table.REFUSAL_NO_SUCH_BET: BET_NOT_FOUND,
    table.REFUSAL_ROUND_RUNNING: ROUND_RUNNING,
    table.REFUSAL_TABLE_CLOSED: TABLE_CLOSED,
    table.REFUSAL_SHOE_NOT_READY: SHOE_NOT_READY,
    table.REFUSAL_ALREADY_SUSPENDED: ALREADY_SUSPENDED,
    table.REFUSAL_NOT_SUSPENDED: NOT_SUSPENDED,
    table.REFUSAL_RESULT_ACCEPTED: RESULT_ACCEPTED,
    table.REFUSAL_ROUND_VOIDED: ROUND_VOIDED,
    table.REFUSAL_BAD_TABLE_SPEC: BAD_TABLE_SPEC,
    table.REFUSAL_TOO_MANY_REQUESTS: TOO_MANY_REQUESTS,
    table.REFUSAL_TOO_MANY_TABLES: TOO_MANY_TABLES,
    table.REFUSAL_ROUND_OVER: ROUND_OVER,
    table.REFUSAL_FAILED: DECISION_FAILED,
    table.REFUSAL_NOT_ON_LAYOUT: NOT_ON_LAYOUT,
    table.REFUSAL_NOT_WHOLE_CHIPS: NOT_WHOLE_CHIPS,
    table.REFUSAL_SEAT_TAKEN: SEAT_TAKEN,
    table.REFUSAL_NOT_YOUR_SEAT: NOT_YOUR_SEAT,
    table.REFUSAL_NOT_YOUR_TURN: NOT_YOUR_TURN,
    table.REFUSAL_ACTION_NOT_ALLOWED: ACTION_NOT_ALLOWED,
    table.REFUSAL_BAD_EXTRA_STAKE: BAD_EXTRA_STAKE,
    table.REFUSAL_ACTION_PENDING: ACTION_PENDING,
    table.REFUSAL_NOT_ON_FLOOR: NOT_ON_FLOOR,
    table.REFUSAL_CORRECTION_PENDING: CORRECTION_PENDING,
    table.REFUSAL_NOT_CORRECTABLE: NOT_CORRECTABLE,
    table.REFUSAL_UNKNOWN_CORRECTION: corrections.CORRECTION_NOT_FOUND,
    table.REFUSAL_CORRECTION_OVER: corrections.CORRECTION_OVER,
    table.REFUSAL_ALREADY_APPROVED: corrections.ALREADY_APPROVED,
    table.REFUSAL_SAME_PERSON: corrections.SAME_PERSON,
    table.REFUSAL_DRY_RUN_STALE: corrections.DRY_RUN_STALE,
    table.REFUSAL_NOTHING_TO_CORRECT: corrections.SAME_OUTCOME,
    table.REFUSAL_BAD_RESULT: corrections.BAD_RESULT,
    table.REFUSAL_TOO_MANY_CORRECTIONS: corrections.TOO_MANY_CORRECTIONS,
    table.REFUSAL_PLAY_CONTRADICTED: PLAY_CONTRADICTED,
    table.REFUSAL_SWITCHED_OFF: SWITCHED_OFF,
    table.REFUSAL_SWITCH_UNCHANGED: SWITCH_UNCHANGED,
    table.REFUSAL_BAD_SWITCH: BAD_SWITCH,
    table.REFUSAL_TOO_MANY_SWITCHES: TOO_MANY_SWITCHES,
}
"""Every `sabot.table.v1.Refusal` but the unspecified one."""


BY_ACT = frozenset({"double", "split", "insurance"})
"""Stakes of blackjack that a layout names, but that are made by Act."""
UNTOLD: Mapping[str, str | int] = {"place": "?", "switch": "?"}
"""What stands in a text for a fact that only some refusals have, where it is not known."""


def refused(refusal: int, facts: Mapping[str, str | int]) -> Refused:
    """The refusal that tells of it. `facts` must name `request_id`, `table_id`, `round_id`,
    `account_id` and `detail`, empty where there is none; where they are known, `place` (the bet
    that is wrong) and `switch` (what is off)."""
    reason = REFUSALS.get(refusal, errors.UNEXPECTED_OUTCOME)
    untold = {name: value for name, value in UNTOLD.items() if f"{{{name}}}" in reason.english}
    return Refused(reason, {**untold, **facts})


def wrong_bet(
    reason: Reason, game: int, bet: str, position: str, facts: Mapping[str, str | int]
) -> Refused:
    """The refusal of a request for one of its bets. A double, a split or insurance, which lie on a
    layout of blackjack but are not placed on it, is told how it is staked."""
    if reason is NOT_ON_LAYOUT and game == rule_sets.GAME_BLACKJACK and bet in BY_ACT:
        reason = BET_BY_ACT
    told = {"bet": bet, "position": position, "place": f"{bet} {position}".rstrip()}
    return Refused(reason, {**facts, **told})


def switch_text(switch: switches.Switch) -> str:
    """What is switched off, as texts of every language say it."""
    match switch.scope:
        case switches.SWITCH_SCOPE_GAME:
            name = rule_sets.Game.Name(switch.game).removeprefix("GAME_")
            return f"GAME {name}"
        case switches.SWITCH_SCOPE_RULE_SET:
            return f"RULE SET {switch.rule_set_hash.hex()}"
        case switches.SWITCH_SCOPE_PARTNER:
            return f"PARTNER {switch.partner_id}"
        case switches.SWITCH_SCOPE_ACCOUNT:
            return f"ACCOUNT {switch.account_id}"
        case _:
            return "ALL"
