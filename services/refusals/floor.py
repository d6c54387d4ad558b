"""Refusals of what the floor tells, and the reasons that speak of cards, wheels, dice and the packs
that they come from."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from sabot.shoe.v1 import floor_events_pb2 as floor
from services.kernel import errors
from services.kernel.errors import Reason, Refused, Retry
from services.kernel.tokens import Caller
from services.refusals.table import NOT_ON_FLOOR, SHOE_NOT_FOUND, TABLE_NOT_FOUND

_Code = grpc.StatusCode

SHOE_OVER = Reason(
    "SHOE_OVER",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The shoe {shoe_id} is over.",
    "Le sabot {shoe_id} est terminé.",
)
SHOE_NOT_AWAITED = Reason(
    "SHOE_NOT_AWAITED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The table {table_id} awaits no shoe of this number.",
    "La table {table_id} n'attend pas de sabot de ce numéro.",
)
WRONG_DECKS = Reason(
    "WRONG_DECKS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The decks are not those of the rules of table {table_id}, or of the packs together.",
    "Les jeux ne sont pas ceux des règles de la table {table_id}, ou des paquets réunis.",
)
CONSUMABLE_NOT_FOUND = Reason(
    "CONSUMABLE_NOT_FOUND",
    _Code.NOT_FOUND,
    Retry.NEVER,
    "There is no consumable {consumable_id}.",
    "Il n'existe pas de consommable {consumable_id}.",
)
CONSUMABLE_DESTROYED = Reason(
    "CONSUMABLE_DESTROYED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The consumable {consumable_id} was destroyed.",
    "Le consommable {consumable_id} a été détruit.",
)
CONSUMABLE_IN_USE = Reason(
    "CONSUMABLE_IN_USE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The consumable {consumable_id} is in use.",
    "Le consommable {consumable_id} est en service.",
)
CONSUMABLE_NOT_IN_USE = Reason(
    "CONSUMABLE_NOT_IN_USE",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The consumable {consumable_id} is not in use.",
    "Le consommable {consumable_id} n'est pas en service.",
)
CONSUMABLE_WRONG_KIND = Reason(
    "CONSUMABLE_WRONG_KIND",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The consumable {consumable_id} is of another kind than is needed here.",
    "Le consommable {consumable_id} est d'une autre sorte que celle qu'il faut ici.",
)
CONSUMABLE_EXISTS = Reason(
    "CONSUMABLE_EXISTS",
    _Code.ALREADY_EXISTS,
    Retry.NEVER,
    "A consumable {consumable_id} was registered before.",
    "Un consommable {consumable_id} a déjà été enregistré.",
)
CONSUMABLE_NOT_INSPECTED = Reason(
    "CONSUMABLE_NOT_INSPECTED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The consumable {consumable_id} must be inspected and found right first.",
    "Le consommable {consumable_id} doit d'abord être contrôlé et trouvé conforme.",
)
TOO_MANY_CONSUMABLES = Reason(
    "TOO_MANY_CONSUMABLES",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The cell keeps as many consumables as it may.",
    "La cellule a atteint son nombre maximal de consommables.",
)
CARD_OUT_OF_ORDER = Reason(
    "CARD_OUT_OF_ORDER",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "It is not the next card of shoe {shoe_id}.",
    "Ce n'est pas la carte suivante du sabot {shoe_id}.",
)
ALREADY_RECORDED = Reason(
    "ALREADY_RECORDED",
    _Code.ALREADY_EXISTS,
    Retry.NEVER,
    "The same was recorded before.",
    "La même chose a déjà été enregistrée.",
)
OUTCOME_NOT_CALLED = Reason(
    "OUTCOME_NOT_CALLED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "That spin or roll of round {round_id} is not called, or it is over.",
    "Ce lancer de la manche {round_id} n'est pas demandé, ou il est terminé.",
)
OUTCOME_STANDS = Reason(
    "OUTCOME_STANDS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "That spin or roll of round {round_id} has its outcome already.",
    "Ce lancer de la manche {round_id} a déjà son résultat.",
)
BURN_AWAITED = Reason(
    "BURN_AWAITED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "Cards of shoe {shoe_id} must be burned first, as many as its first card says.",
    "Il faut d'abord brûler des cartes du sabot {shoe_id}, autant que le dit sa première carte.",
)
NO_BURN = Reason(
    "NO_BURN",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "No burn of this kind or number is possible at shoe {shoe_id} now.",
    "Aucun brûlage de ce genre ou de ce nombre n'est possible au sabot {shoe_id} en ce moment.",
)
CUT_CARD_OUT = Reason(
    "CUT_CARD_OUT",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The cut card of shoe {shoe_id} is out already.",
    "La carte de coupe du sabot {shoe_id} est déjà sortie.",
)
SHOE_EMPTY = Reason(
    "SHOE_EMPTY",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The shoe {shoe_id} has no card left.",
    "Le sabot {shoe_id} n'a plus de carte.",
)
SHOE_RUNS = Reason(
    "SHOE_RUNS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The shoe {shoe_id} is still played; it is counted once it is over.",
    "Le sabot {shoe_id} est encore en jeu ; il se compte une fois terminé.",
)
NO_SUCH_OUTCOME = Reason(
    "NO_SUCH_OUTCOME",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "There is no such card, number or dice.",
    "Il n'existe pas de telle carte, de tel numéro ou de tels dés.",
)
TOO_MANY_CARDS = Reason(
    "TOO_MANY_CARDS",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "More cards of shoe {shoe_id} are out than any round takes; a supervisor must look.",
    "Plus de cartes du sabot {shoe_id} sont sorties qu'une manche n'en prend ; un superviseur doit"
    " intervenir.",
)
NOTHING_TO_CORRECT = Reason(
    "NOTHING_TO_CORRECT",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The round {round_id} has no such card, spin or roll.",
    "La manche {round_id} n'a pas de telle carte ni de tel lancer.",
)
CARDS_HELD = Reason(
    "CARDS_HELD",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "Cards of shoe {shoe_id} are held that no call has taken yet.",
    "Des cartes du sabot {shoe_id} sont retenues, qu'aucune demande n'a encore prises.",
)
CARD_FACE_DOWN = Reason(
    "CARD_FACE_DOWN",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "That card of shoe {shoe_id} lies face down, or may have to: what it is, is told when it is"
    " turned over, or once a card that lies open is called there.",
    "Cette carte du sabot {shoe_id} est face cachée, ou devra peut-être l'être : sa valeur"
    " s'annonce quand elle est retournée, ou dès qu'une carte ouverte est demandée à cette place.",
)
NOT_FACE_DOWN = Reason(
    "NOT_FACE_DOWN",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "No card of shoe {shoe_id} is to be laid face down there now.",
    "Aucune carte du sabot {shoe_id} n'est à poser face cachée à cette place maintenant.",
)
CARD_PLACE_NOT_NAMED = Reason(
    "CARD_PLACE_NOT_NAMED",
    _Code.INVALID_ARGUMENT,
    Retry.NEVER,
    "At the blackjack table {table_id} a card must name its round and its place in the shoe.",
    "À la table de blackjack {table_id}, une carte doit nommer sa manche et sa place dans le"
    " sabot.",
)
LOOK_NOT_CALLED = Reason(
    "LOOK_NOT_CALLED",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "No look at a hole card is called in round {round_id}.",
    "Aucun coup d'œil à une carte cachée n'est demandé dans la manche {round_id}.",
)
NOT_A_DEVICE = Reason(
    "NOT_A_DEVICE",
    _Code.PERMISSION_DENIED,
    Retry.NEVER,
    "Only callers with the role device may name one; anybody else's entry is a manual one.",
    "Seul un appelant ayant le rôle device peut nommer un appareil ; toute autre saisie est"
    " manuelle.",
)
DEVICE_NOT_BOUND = Reason(
    "DEVICE_NOT_BOUND",
    _Code.PERMISSION_DENIED,
    Retry.NEVER,
    "The token of {operator} does not speak for the device {device}; what it speaks for stands in"
    " the token file, in its `devices`.",
    "Le jeton de {operator} ne parle pas pour l'appareil {device} ; ceux pour lesquels il parle"
    " sont dans le fichier des jetons, dans ses `devices`.",
)
TABLE_NOT_BOUND = Reason(
    "TABLE_NOT_BOUND",
    _Code.PERMISSION_DENIED,
    Retry.NEVER,
    "The token of {operator} is not for the table {table_id}; its tables stand in the token file,"
    " in its `tables`.",
    "Le jeton de {operator} n'est pas pour la table {table_id} ; ses tables sont dans le fichier"
    " des jetons, dans ses `tables`.",
)
IMPOSSIBLE_CARD = Reason(
    "IMPOSSIBLE_CARD",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "The shoe {shoe_id} has given every {told} that it holds: one of them was misread. A running"
    " round is suspended; a supervisor must look.",
    "Le sabot {shoe_id} a déjà donné tous ses {told} : l'une de ces cartes a été mal lue. Une"
    " manche en cours est suspendue ; un superviseur doit intervenir.",
)
CONTRADICTING_OUTCOME = Reason(
    "CONTRADICTING_OUTCOME",
    _Code.FAILED_PRECONDITION,
    Retry.NEVER,
    "{told} is told, {told_before} was told before. A running round is suspended; a supervisor must"
    " look.",
    "{told} est annoncé, {told_before} l'avait été auparavant. Une manche en cours est suspendue ;"
    " un superviseur doit intervenir.",
)

REASONS = (
    SHOE_OVER,
    SHOE_NOT_AWAITED,
    WRONG_DECKS,
    CONSUMABLE_NOT_FOUND,
    CONSUMABLE_DESTROYED,
    CONSUMABLE_IN_USE,
    CONSUMABLE_NOT_IN_USE,
    CONSUMABLE_WRONG_KIND,
    CONSUMABLE_EXISTS,
    CONSUMABLE_NOT_INSPECTED,
    TOO_MANY_CONSUMABLES,
    CARD_OUT_OF_ORDER,
    ALREADY_RECORDED,
    OUTCOME_NOT_CALLED,
    OUTCOME_STANDS,
    BURN_AWAITED,
    NO_BURN,
    CUT_CARD_OUT,
    SHOE_EMPTY,
    SHOE_RUNS,
    NO_SUCH_OUTCOME,
    TOO_MANY_CARDS,
    NOTHING_TO_CORRECT,
    CARDS_HELD,
    CARD_FACE_DOWN,
    NOT_FACE_DOWN,
    CARD_PLACE_NOT_NAMED,
    LOOK_NOT_CALLED,
    NOT_A_DEVICE,
    DEVICE_NOT_BOUND,
    TABLE_NOT_BOUND,
    IMPOSSIBLE_CARD,
    CONTRADICTING_OUTCOME,
)

REFUSALS: Mapping[int, Reason] = {
    floor.FLOOR_REFUSAL_REQUEST_EXPIRED: errors.REQUEST_EXPIRED,
    floor.FLOOR_REFUSAL_REQUEST_ID_REUSED: errors.REQUEST_ID_REUSED,
    floor.FLOOR_REFUSAL_REQUEST_ID_AHEAD: errors.REQUEST_ID_AHEAD,
    floor.FLOOR_REFUSAL_UNKNOWN_TABLE: TABLE_NOT_FOUND,
    floor.FLOOR_REFUSAL_NOT_ON_FLOOR: NOT_ON_FLOOR,
    floor.FLOOR_REFUSAL_UNKNOWN_SHOE: SHOE_NOT_FOUND,
    floor.FLOOR_REFUSAL_SHOE_OVER: SHOE_OVER,
    floor.FLOOR_REFUSAL_SHOE_NOT_AWAITED: SHOE_NOT_AWAITED,
    floor.FLOOR_REFUSAL_WRONG_DECKS: WRONG_DECKS,
    floor.FLOOR_REFUSAL_UNKNOWN_CONSUMABLE: CONSUMABLE_NOT_FOUND,
    floor.FLOOR_REFUSAL_DESTROYED: CONSUMABLE_DESTROYED,
    floor.FLOOR_REFUSAL_IN_USE: CONSUMABLE_IN_USE,
    floor.FLOOR_REFUSAL_WRONG_KIND: CONSUMABLE_WRONG_KIND,
    floor.FLOOR_REFUSAL_KNOWN_CONSUMABLE: CONSUMABLE_EXISTS,
    floor.FLOOR_REFUSAL_TOO_MANY_CONSUMABLES: TOO_MANY_CONSUMABLES,
    floor.FLOOR_REFUSAL_NOT_INSPECTED: CONSUMABLE_NOT_INSPECTED,
    floor.FLOOR_REFUSAL_NOT_IN_USE: CONSUMABLE_NOT_IN_USE,
    floor.FLOOR_REFUSAL_OUT_OF_ORDER: CARD_OUT_OF_ORDER,
    floor.FLOOR_REFUSAL_ALREADY_RECORDED: ALREADY_RECORDED,
    floor.FLOOR_REFUSAL_NOT_CALLED: OUTCOME_NOT_CALLED,
    floor.FLOOR_REFUSAL_OUTCOME_STANDS: OUTCOME_STANDS,
    floor.FLOOR_REFUSAL_BURN_AWAITED: BURN_AWAITED,
    floor.FLOOR_REFUSAL_NO_BURN: NO_BURN,
    floor.FLOOR_REFUSAL_CUT_CARD_OUT: CUT_CARD_OUT,
    floor.FLOOR_REFUSAL_SHOE_EMPTY: SHOE_EMPTY,
    floor.FLOOR_REFUSAL_SHOE_RUNS: SHOE_RUNS,
    floor.FLOOR_REFUSAL_IMPOSSIBLE: NO_SUCH_OUTCOME,
    floor.FLOOR_REFUSAL_TOO_MANY_CARDS: TOO_MANY_CARDS,
    floor.FLOOR_REFUSAL_NOTHING_TO_CORRECT: NOTHING_TO_CORRECT,
    floor.FLOOR_REFUSAL_CARDS_HELD: CARDS_HELD,
    floor.FLOOR_REFUSAL_FACE_DOWN: CARD_FACE_DOWN,
    floor.FLOOR_REFUSAL_NOT_FACE_DOWN: NOT_FACE_DOWN,
    floor.FLOOR_REFUSAL_PLACE_NOT_NAMED: CARD_PLACE_NOT_NAMED,
    floor.FLOOR_REFUSAL_LOOK_NOT_CALLED: LOOK_NOT_CALLED,
}
"""Every `sabot.shoe.v1.FloorRefusal` but the unspecified one."""

FAULTS: Mapping[int, Reason] = {
    floor.FLOOR_FAULT_IMPOSSIBLE_CARD: IMPOSSIBLE_CARD,
    floor.FLOOR_FAULT_CONTRADICTION: CONTRADICTING_OUTCOME,
}
"""The faults for which what was told is refused."""


def rejected(body: floor.FloorRejected) -> Refused:
    """The refusal that tells of it."""
    facts = {
        "request_id": body.request_id,
        "table_id": body.table_id,
        "shoe_id": body.shoe_id,
        "round_id": body.round_id,
        "consumable_id": body.consumable_id,
    }
    return Refused(REFUSALS.get(body.refusal, errors.UNEXPECTED_OUTCOME), facts)


def faulty(body: floor.FloorFaultFound) -> Refused | None:
    """The refusal that tells of a fault; None where what was told was taken all the same."""
    reason = FAULTS.get(body.fault)
    if reason is None:
        return None
    facts = {
        "table_id": body.table_id,
        "shoe_id": body.shoe_id,
        "round_id": body.round_id,
        "told": body.told,
        "told_before": body.told_before,
    }
    return Refused(reason, facts)


EVERY_TABLE = "*"
"""What an order is about that may concern every table: no token for single tables is for that."""


def check_table(caller: Caller, table_id: str) -> None:
    """Whether a caller's token is for a table; an order about none is not asked for. Raises
    Refused."""
    if table_id and not caller.reaches(table_id):
        raise Refused(TABLE_NOT_BOUND, {"operator": caller.operator, "table_id": table_id})
