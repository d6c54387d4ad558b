"""English: the language of the rules. Where a translation differs, this holds (rule VIS-6)."""

from __future__ import annotations

from sabot.rules.v1 import rule_set_pb2 as rs
from services.rules.pages.words import BetWords, Words


def _shoe(rule_set: rs.RuleSet) -> str:
    after = (
        "One more round is played after the one in which it comes out."
        if rule_set.rounds_after_cut
        else "The round in which it comes out is the last of the shoe."
    )
    return (
        f"The shoe holds {rule_set.decks} decks of 52 cards. A cut card stands "
        f"{rule_set.cut_depth} cards from its end. {after}"
    )


def _baccarat(rule_set: rs.RuleSet) -> list[str]:
    told = [
        (
            "Two hands are dealt, Player and Banker; you bet on which comes closer to nine. An ace counts "
            "one, two to nine their face value, tens and faces nothing; of a sum only the last digit "
            "counts."
        ),
        (
            "Each hand gets two cards. With an eight or nine on either hand no card is drawn. Otherwise "
            "Player draws a third card on 0 to 5. If Player stood, Banker draws on 0 to 5. If Player "
            "drew, Banker draws on 0 to 2 always, on 3 unless Player's third card is an eight, on 4 "
            "against 2 to 7, on 5 against 4 to 7, on 6 against 6 and 7."
        ),
        (
            "At the start of a shoe its first card is shown, and as many further cards as it counts are "
            "set aside unseen (ten for tens and faces)."
        ),
        _shoe(rule_set),
    ]
    if rule_set.baccarat.ez:
        told.append(
            "No commission is taken at this table: Banker's win with three cards that count seven "
            "returns the stake of Banker instead."
        )
    elif any(offer.bet == "banker_no_commission" for offer in rule_set.bets):
        told.append(
            "Banker may be bet with or without commission; each bettor chooses for each bet."
        )
    return told


def _blackjack(rule_set: rs.RuleSet) -> list[str]:
    options = rule_set.blackjack
    peek = {
        rs.PEEK_ACE_ONLY: "The dealer looks for a blackjack when showing an ace.",
        rs.PEEK_BOTH: "The dealer looks for a blackjack when showing an ace or a ten.",
        rs.PEEK_NONE: "The dealer does not look: doubles and splits lose to a blackjack.",
    }[options.peek]
    told = [
        (
            "Beat the dealer without going over 21. Faces count ten, an ace one or eleven. An ace with a "
            "ten-value as the first two cards is a blackjack, which beats any other 21."
        ),
        "The dealer draws on 16 or less and stands on every 17 or more. " + peek,
        "Insurance is offered when the dealer shows an ace: half the main bet, rounded down.",
        "Two cards of one value may be split once; a split hand may only hit or stand"
        + (", and split aces get one card each." if options.one_card_on_split_aces else "."),
        (
            "A side bet needs a main bet at the same seat. Who does not act in time has the hand played "
            "by the table; the table never adds to a stake."
        ),
        _shoe(rule_set),
    ]
    if options.doubles:
        told.insert(
            3, "The first two cards may be doubled, for any stake up to the first: one more card."
        )
    return told


def _roulette(rule_set: rs.RuleSet) -> list[str]:
    told = [
        (
            "A ball falls on one of 37 numbers, 0 to 36. A bet wins when the number is one of those that "
            "it covers. Zero is neither odd nor even, low nor high, red nor black."
        ),
        (
            "Your bets in a round may cover at most 34 of the 37 numbers. The ball must run at least "
            "three times around, against the wheel; a spin that does not is repeated, and all bets "
            "stand."
        ),
        (
            "Announced bets (voisins du zéro, tiers, orphelins, jeu zéro, neighbours) are placed as the "
            "bets that they are made of."
        ),
    ]
    if rule_set.roulette.la_partage:
        told.append("On zero, red, black, odd, even, low and high lose only half their stake.")
    return told


def _sicbo(rule_set: rs.RuleSet) -> list[str]:
    del rule_set
    return [
        (
            "Three dice are rolled. Small, big, odd and even lose on any triple; totals, doubles and "
            "single numbers win on triples too."
        ),
    ]


def _dragon_tiger(rule_set: rs.RuleSet) -> list[str]:
    return [
        "One card is dealt to Dragon and one to Tiger; the higher one wins. " + _ace(rule_set),
        "On a tie, Dragon and Tiger lose half their stake.",
        _shoe(rule_set),
    ]


def _football_studio(rule_set: rs.RuleSet) -> list[str]:
    return [
        "One card is dealt to Home and one to Away; the higher one wins. " + _ace(rule_set),
        "On a draw, Home and Away lose half their stake.",
        _shoe(rule_set),
    ]


def _ace(rule_set: rs.RuleSet) -> str:
    high = rule_set.two_cards.ace == rs.ACE_RANK_HIGH
    return "The ace is the highest card." if high else "The ace is the lowest card."


_BACCARAT = {
    "player": BetWords("Player", "Player's total is higher; a tie returns the stake"),
    "banker": BetWords("Banker", "Banker's total is higher; a tie returns the stake"),
    "banker_no_commission": BetWords(
        "Banker without commission", "Banker's total is higher; a tie returns the stake"
    ),
    "tie": BetWords("Tie", "both totals are equal"),
    "player_pair": BetWords("Player Pair", "Player's first two cards have one rank"),
    "banker_pair": BetWords("Banker Pair", "Banker's first two cards have one rank"),
    "either_pair": BetWords("Either Pair", "the first two cards of either hand have one rank"),
    "perfect_pair": BetWords(
        "Perfect Pair", "the first two cards of either hand have one rank and one suit"
    ),
    "player_natural": BetWords("Player Natural", "Player's first two cards count 8 or 9"),
    "banker_natural": BetWords("Banker Natural", "Banker's first two cards count 8 or 9"),
    "player_bonus": BetWords(
        "Player Bonus", "Player wins naturally, or by four or more; a natural tie returns the stake"
    ),
    "banker_bonus": BetWords(
        "Banker Bonus", "Banker wins naturally, or by four or more; a natural tie returns the stake"
    ),
    "lucky_six": BetWords("Lucky Six", "Banker wins with 6"),
    "lucky_six_2": BetWords("Lucky Six, two cards", "Banker wins with a 6 of two cards"),
    "lucky_six_3": BetWords("Lucky Six, three cards", "Banker wins with a 6 of three cards"),
    "lucky_seven": BetWords("Lucky Seven", "Player wins with 7"),
    "lucky_seven_2": BetWords("Lucky Seven, two cards", "Player wins with a 7 of two cards"),
    "lucky_seven_3": BetWords("Lucky Seven, three cards", "Player wins with a 7 of three cards"),
    "super_lucky_seven": BetWords(
        "Super Lucky Seven", "Player wins with 7 against 6, by the number of cards on the table"
    ),
    "dragon_7": BetWords("Dragon 7", "Banker wins with a 7 of three cards"),
    "panda_8": BetWords("Panda 8", "Player wins with an 8 of three cards"),
}

_BLACKJACK = {
    "main": BetWords("Main bet", "the hand beats the dealer's; equal totals return the stake"),
    "double": BetWords("Double", "as the hand that was doubled"),
    "split": BetWords("Split", "as the second hand of a split"),
    "insurance": BetWords("Insurance", "the dealer has a blackjack"),
    "perfect_pairs": BetWords("Perfect Pairs", "the seat's first two cards have one rank"),
    "21_plus_3": BetWords(
        "21+3", "the seat's first two cards and the dealer's shown one make a poker hand"
    ),
}

_ROULETTE = {
    "straight": BetWords("Straight", "its number falls"),
    "split": BetWords("Split", "one of two neighbouring numbers falls"),
    "street": BetWords("Street", "one of a row of three falls"),
    "trio": BetWords("Trio", "one of 0-1-2 or of 0-2-3 falls"),
    "corner": BetWords("Corner", "one of four numbers that meet falls"),
    "first_four": BetWords("First Four", "0, 1, 2 or 3 falls"),
    "six_line": BetWords("Six Line", "one of two rows of three falls"),
    "dozen": BetWords("Dozen", "a number of the dozen falls"),
    "column": BetWords("Column", "a number of the column falls"),
    "red": BetWords("Red", "a red number falls"),
    "black": BetWords("Black", "a black number falls"),
    "odd": BetWords("Odd", "an odd number falls"),
    "even": BetWords("Even", "an even number falls, not zero"),
    "low": BetWords("Low", "1 to 18 falls"),
    "high": BetWords("High", "19 to 36 falls"),
}

_SICBO = {
    "small": BetWords("Small", "the total is 4 to 10, no triple"),
    "big": BetWords("Big", "the total is 11 to 17, no triple"),
    "odd": BetWords("Odd", "the total is odd, no triple"),
    "even": BetWords("Even", "the total is even, no triple"),
    "single": BetWords("Single number", "one, two or three dice show it"),
    "combination": BetWords("Combination", "both its numbers show"),
    "double": BetWords("Double", "at least two dice show it"),
    "triple": BetWords("Triple", "all three dice show it"),
    "any_triple": BetWords("Any triple", "all three dice are alike"),
    "total": BetWords("Total", "the dice add up to it"),
}

_DRAGON_TIGER = {
    "dragon": BetWords("Dragon", "Dragon's card is higher; a tie takes half the stake"),
    "tiger": BetWords("Tiger", "Tiger's card is higher; a tie takes half the stake"),
    "tie": BetWords("Tie", "both cards have one rank"),
    "suited_tie": BetWords("Suited Tie", "both cards have one rank and one suit"),
}

_FOOTBALL_STUDIO = {
    "home": BetWords("Home", "Home's card is higher; a draw takes half the stake"),
    "away": BetWords("Away", "Away's card is higher; a draw takes half the stake"),
    "draw": BetWords("Draw", "both cards have one rank"),
}

ENGLISH = Words(
    language="en",
    titles={
        "baccarat": "Baccarat",
        "baccarat_ez": "EZ baccarat",
        "blackjack": "Blackjack",
        "roulette": "Roulette",
        "sicbo_atlantic_city": "Sic bo (Atlantic City paytable)",
        "sicbo_macau": "Sic bo (Macau paytable)",
        "dragon_tiger": "Dragon Tiger",
        "football_studio": "Football Studio",
    },
    play={
        rs.GAME_BACCARAT: _baccarat,
        rs.GAME_BLACKJACK: _blackjack,
        rs.GAME_ROULETTE: _roulette,
        rs.GAME_SICBO: _sicbo,
        rs.GAME_DRAGON_TIGER: _dragon_tiger,
        rs.GAME_FOOTBALL_STUDIO: _football_studio,
    },
    bets={
        rs.GAME_BACCARAT: _BACCARAT,
        rs.GAME_BLACKJACK: _BLACKJACK,
        rs.GAME_ROULETTE: _ROULETTE,
        rs.GAME_SICBO: _SICBO,
        rs.GAME_DRAGON_TIGER: _DRAGON_TIGER,
        rs.GAME_FOOTBALL_STUDIO: _FOOTBALL_STUDIO,
    },
    lines={
        "otherwise": "otherwise",
        "with_6": "with 6",
        "natural": "natural",
        **{f"by_{margin}": f"by {margin}" for margin in range(4, 10)},
        "two_cards": "two cards",
        "three_cards": "three cards",
        "four_cards": "four cards",
        "five_cards": "five cards",
        "six_cards": "six cards",
        "one_die": "one die",
        "two_dice": "two dice",
        "three_dice": "three dice",
        "blackjack": "blackjack",
        "win": "other win",
        "perfect": "one suit",
        "coloured": "one colour",
        "mixed": "two colours",
        "suited_trips": "three of a kind in one suit",
        "straight_flush": "straight flush",
        "trips": "three of a kind",
        "straight": "straight",
        "flush": "flush",
    },
    total="total {total}",
    columns=("Bet", "Wins when", "Pays", "Last round of the shoe", "Return"),
    always="-",
    to_one="{numerator} to {denominator}",
    commission="less {share} commission on the winnings",
    roundings={
        rs.ROUNDING_DOWN: "Fractions of the smallest unit of money are rounded down.",
        rs.ROUNDING_HALF_EVEN: "Fractions of the smallest unit of money are rounded to the nearest "
        "one, halves to the even one.",
        rs.ROUNDING_HALF_UP: "Fractions of the smallest unit of money are rounded to the nearest "
        "one, halves in the bettor's favour.",
    },
    highest="The highest return has {bet}: {share} of the stake",
    in_fresh_shoe=", in the first round of a fresh shoe",
    version="Rule set `{rule_set_id}`, version {version}, `{hash}`.",
    how="The game",
    paytable="What may be staked on",
    prevails="",
)
