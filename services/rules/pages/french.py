"""French."""

from __future__ import annotations

from sabot.rules.v1 import rule_set_pb2 as rs
from services.rules.pages.words import BetWords, Words


def _shoe(rule_set: rs.RuleSet) -> str:
    after = (
        "Un tour est encore joué après celui où elle sort."
        if rule_set.rounds_after_cut
        else "Le tour où elle sort est le dernier du sabot."
    )
    return (
        f"Le sabot contient {rule_set.decks} jeux de 52 cartes. Une carte de coupe est placée à "
        f"{rule_set.cut_depth} cartes de la fin. {after}"
    )


def _baccarat(rule_set: rs.RuleSet) -> list[str]:
    told = [
        (
            "Deux mains sont servies, Joueur et Banque ; on mise sur celle qui approche le plus de neuf. "
            "L'as vaut un, les cartes de deux à neuf leur valeur, les dix et les figures zéro ; d'une "
            "somme, seul le dernier chiffre compte."
        ),
        (
            "Chaque main reçoit deux cartes. Avec un huit ou un neuf d'un côté ou de l'autre, on ne tire "
            "plus. Sinon Joueur tire une troisième carte de 0 à 5. Si Joueur est resté, Banque tire de "
            "0 à 5. Si Joueur a tiré, Banque tire toujours de 0 à 2, à 3 sauf si la troisième carte de "
            "Joueur est un huit, à 4 contre 2 à 7, à 5 contre 4 à 7, à 6 contre 6 et 7."
        ),
        (
            "Au début d'un sabot, la première carte est montrée, et autant d'autres cartes qu'elle vaut "
            "sont écartées sans être vues (dix pour un dix ou une figure)."
        ),
        _shoe(rule_set),
    ]
    if rule_set.baccarat.ez:
        told.append(
            "Aucune commission n'est prise à cette table : quand Banque gagne avec trois cartes "
            "valant sept, la mise sur Banque est rendue."
        )
    elif any(offer.bet == "banker_no_commission" for offer in rule_set.bets):
        told.append(
            "On peut miser sur Banque avec ou sans commission ; chacun choisit pour chaque mise."
        )
    return told


def _blackjack(rule_set: rs.RuleSet) -> list[str]:
    options = rule_set.blackjack
    peek = {
        rs.PEEK_ACE_ONLY: "Le croupier vérifie s'il a un blackjack quand il montre un as.",
        rs.PEEK_BOTH: "Le croupier vérifie s'il a un blackjack quand il montre un as ou un dix.",
        rs.PEEK_NONE: "Le croupier ne vérifie pas : les mises doublées ou séparées sont perdues "
        "contre un blackjack.",
    }[options.peek]
    told = [
        (
            "Il faut battre le croupier sans dépasser 21. Les figures valent dix, l'as un ou onze. Un as "
            "et une carte valant dix, reçus d'emblée, font un blackjack, qui bat tout autre 21."
        ),
        "Le croupier tire à 16 et moins et reste à 17 et plus, même avec un as. " + peek,
        (
            "Une assurance est proposée quand le croupier montre un as : la moitié de la mise "
            "principale, arrondie vers le bas."
        ),
        "Deux cartes de même valeur peuvent être séparées une fois ; une main séparée ne peut "
        "ensuite que tirer ou rester"
        + (
            ", et chaque as séparé ne reçoit qu'une carte."
            if options.one_card_on_split_aces
            else "."
        ),
        (
            "Une mise annexe demande une mise principale à la même place. À qui n'agit pas à temps, la "
            "table joue la main ; elle n'ajoute jamais à une mise."
        ),
        _shoe(rule_set),
    ]
    if options.doubles:
        told.insert(
            3,
            "Les deux premières cartes peuvent être doublées, d'une somme allant jusqu'à la première "
            "mise : une seule carte de plus.",
        )
    return told


def _roulette(rule_set: rs.RuleSet) -> list[str]:
    told = [
        (
            "Une bille tombe sur l'un des 37 numéros, de 0 à 36. Une mise gagne quand le numéro est de "
            "ceux qu'elle couvre. Le zéro n'est ni pair ni impair, ni manque ni passe, ni rouge ni noir."
        ),
        (
            "Vos mises d'un tour peuvent couvrir au plus 34 des 37 numéros. La bille doit faire au moins "
            "trois tours, contre le sens du cylindre ; sinon le lancer est répété, et toutes les mises "
            "restent."
        ),
        (
            "Les annonces (voisins du zéro, tiers, orphelins, jeu zéro, voisins d'un numéro) sont posées "
            "comme les mises qui les composent."
        ),
    ]
    if rule_set.roulette.la_partage:
        told.append(
            "Sur le zéro, rouge, noir, pair, impair, manque et passe ne perdent que la moitié de "
            "leur mise."
        )
    return told


def _sicbo(rule_set: rs.RuleSet) -> list[str]:
    del rule_set
    return [
        (
            "Trois dés sont lancés. Petit, grand, pair et impair perdent sur tout triple ; les totaux, "
            "les doubles et les numéros simples gagnent aussi sur un triple."
        ),
    ]


def _dragon_tiger(rule_set: rs.RuleSet) -> list[str]:
    return [
        "Une carte est servie à Dragon, une à Tigre ; la plus haute gagne. " + _ace(rule_set),
        "En cas d'égalité, Dragon et Tigre perdent la moitié de leur mise.",
        _shoe(rule_set),
    ]


def _football_studio(rule_set: rs.RuleSet) -> list[str]:
    return [
        "Une carte est servie à Domicile, une à Extérieur ; la plus haute gagne. " + _ace(rule_set),
        "En cas de match nul, Domicile et Extérieur perdent la moitié de leur mise.",
        _shoe(rule_set),
    ]


def _ace(rule_set: rs.RuleSet) -> str:
    high = rule_set.two_cards.ace == rs.ACE_RANK_HIGH
    return "L'as est la carte la plus haute." if high else "L'as est la carte la plus basse."


_BACCARAT = {
    "player": BetWords("Joueur", "Joueur a le total le plus haut ; une égalité rend la mise"),
    "banker": BetWords("Banque", "Banque a le total le plus haut ; une égalité rend la mise"),
    "banker_no_commission": BetWords(
        "Banque sans commission", "Banque a le total le plus haut ; une égalité rend la mise"
    ),
    "tie": BetWords("Égalité", "les deux totaux sont égaux"),
    "player_pair": BetWords(
        "Paire Joueur", "les deux premières cartes de Joueur sont de même rang"
    ),
    "banker_pair": BetWords(
        "Paire Banque", "les deux premières cartes de Banque sont de même rang"
    ),
    "either_pair": BetWords(
        "Une paire", "les deux premières cartes d'une des mains sont de même rang"
    ),
    "perfect_pair": BetWords(
        "Paire parfaite",
        "les deux premières cartes d'une des mains sont de même rang et de même couleur (enseigne)",
    ),
    "player_natural": BetWords(
        "Naturel Joueur", "les deux premières cartes de Joueur valent 8 ou 9"
    ),
    "banker_natural": BetWords(
        "Naturel Banque", "les deux premières cartes de Banque valent 8 ou 9"
    ),
    "player_bonus": BetWords(
        "Bonus Joueur",
        "Joueur gagne avec un naturel, ou de quatre points ou plus ; une égalité de naturels rend "
        "la mise",
    ),
    "banker_bonus": BetWords(
        "Bonus Banque",
        "Banque gagne avec un naturel, ou de quatre points ou plus ; une égalité de naturels rend "
        "la mise",
    ),
    "lucky_six": BetWords("Lucky Six", "Banque gagne avec 6"),
    "lucky_six_2": BetWords("Lucky Six, deux cartes", "Banque gagne avec un 6 de deux cartes"),
    "lucky_six_3": BetWords("Lucky Six, trois cartes", "Banque gagne avec un 6 de trois cartes"),
    "lucky_seven": BetWords("Lucky Seven", "Joueur gagne avec 7"),
    "lucky_seven_2": BetWords("Lucky Seven, deux cartes", "Joueur gagne avec un 7 de deux cartes"),
    "lucky_seven_3": BetWords(
        "Lucky Seven, trois cartes", "Joueur gagne avec un 7 de trois cartes"
    ),
    "super_lucky_seven": BetWords(
        "Super Lucky Seven", "Joueur gagne avec 7 contre 6, selon le nombre de cartes servies"
    ),
    "dragon_7": BetWords("Dragon 7", "Banque gagne avec un 7 de trois cartes"),
    "panda_8": BetWords("Panda 8", "Joueur gagne avec un 8 de trois cartes"),
}

_BLACKJACK = {
    "main": BetWords(
        "Mise principale", "la main bat celle du croupier ; à égalité la mise est rendue"
    ),
    "double": BetWords("Double", "comme la main doublée"),
    "split": BetWords("Séparation", "comme la seconde main séparée"),
    "insurance": BetWords("Assurance", "le croupier a un blackjack"),
    "perfect_pairs": BetWords(
        "Paires parfaites", "les deux premières cartes de la place sont de même rang"
    ),
    "21_plus_3": BetWords(
        "21+3",
        "les deux premières cartes de la place et celle que montre le croupier font une main de "
        "poker",
    ),
}

_ROULETTE = {
    "straight": BetWords("Plein", "son numéro tombe"),
    "split": BetWords("Cheval", "l'un de deux numéros voisins tombe"),
    "street": BetWords("Transversale", "l'un d'une rangée de trois tombe"),
    "trio": BetWords("Trio", "l'un de 0-1-2 ou de 0-2-3 tombe"),
    "corner": BetWords("Carré", "l'un de quatre numéros qui se touchent tombe"),
    "first_four": BetWords("Quatre premiers", "0, 1, 2 ou 3 tombe"),
    "six_line": BetWords("Sixain", "l'un de deux rangées de trois tombe"),
    "dozen": BetWords("Douzaine", "un numéro de la douzaine tombe"),
    "column": BetWords("Colonne", "un numéro de la colonne tombe"),
    "red": BetWords("Rouge", "un numéro rouge tombe"),
    "black": BetWords("Noir", "un numéro noir tombe"),
    "odd": BetWords("Impair", "un numéro impair tombe"),
    "even": BetWords("Pair", "un numéro pair tombe, sauf zéro"),
    "low": BetWords("Manque", "1 à 18 tombe"),
    "high": BetWords("Passe", "19 à 36 tombe"),
}

_SICBO = {
    "small": BetWords("Petit", "le total va de 4 à 10, sans triple"),
    "big": BetWords("Grand", "le total va de 11 à 17, sans triple"),
    "odd": BetWords("Impair", "le total est impair, sans triple"),
    "even": BetWords("Pair", "le total est pair, sans triple"),
    "single": BetWords("Numéro simple", "un, deux ou trois dés le montrent"),
    "combination": BetWords("Combinaison", "ses deux numéros sortent"),
    "double": BetWords("Double", "deux dés au moins le montrent"),
    "triple": BetWords("Triple", "les trois dés le montrent"),
    "any_triple": BetWords("Triple quelconque", "les trois dés sont pareils"),
    "total": BetWords("Total", "la somme des dés"),
}

_DRAGON_TIGER = {
    "dragon": BetWords(
        "Dragon", "la carte de Dragon est plus haute ; une égalité prend la moitié de la mise"
    ),
    "tiger": BetWords(
        "Tigre", "la carte de Tigre est plus haute ; une égalité prend la moitié de la mise"
    ),
    "tie": BetWords("Égalité", "les deux cartes sont de même rang"),
    "suited_tie": BetWords(
        "Égalité parfaite", "les deux cartes sont de même rang et de même enseigne"
    ),
}

_FOOTBALL_STUDIO = {
    "home": BetWords(
        "Domicile", "la carte de Domicile est plus haute ; un nul prend la moitié de la mise"
    ),
    "away": BetWords(
        "Extérieur", "la carte d'Extérieur est plus haute ; un nul prend la moitié de la mise"
    ),
    "draw": BetWords("Match nul", "les deux cartes sont de même rang"),
}

FRENCH = Words(
    language="fr",
    titles={
        "baccarat": "Baccara",
        "baccarat_ez": "Baccara EZ",
        "blackjack": "Blackjack",
        "roulette": "Roulette",
        "sicbo_atlantic_city": "Sic bo (barème Atlantic City)",
        "sicbo_macau": "Sic bo (barème Macao)",
        "dragon_tiger": "Dragon Tigre",
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
        "otherwise": "sinon",
        "with_6": "avec 6",
        "natural": "naturel",
        **{f"by_{margin}": f"de {margin} points" for margin in range(4, 10)},
        "two_cards": "deux cartes",
        "three_cards": "trois cartes",
        "four_cards": "quatre cartes",
        "five_cards": "cinq cartes",
        "six_cards": "six cartes",
        "one_die": "un dé",
        "two_dice": "deux dés",
        "three_dice": "trois dés",
        "blackjack": "blackjack",
        "win": "autre gain",
        "perfect": "même enseigne",
        "coloured": "même couleur",
        "mixed": "deux couleurs",
        "suited_trips": "brelan de même enseigne",
        "straight_flush": "quinte flush",
        "trips": "brelan",
        "straight": "suite",
        "flush": "couleur",
    },
    total="total {total}",
    columns=("Mise", "Gagne quand", "Paie", "Dernier tour du sabot", "Retour"),
    always="-",
    to_one="{numerator} pour {denominator}",
    commission="moins {share} de commission sur le gain",
    roundings={
        rs.ROUNDING_DOWN: "Les fractions de la plus petite unité de monnaie sont arrondies vers le "
        "bas.",
        rs.ROUNDING_HALF_EVEN: "Les fractions de la plus petite unité de monnaie sont arrondies à "
        "la plus proche, les moitiés à la paire.",
        rs.ROUNDING_HALF_UP: "Les fractions de la plus petite unité de monnaie sont arrondies à la "
        "plus proche, les moitiés en faveur du parieur.",
    },
    highest="Le retour le plus élevé est celui de {bet} : {share} de la mise",
    in_fresh_shoe=", au premier tour d'un sabot neuf",
    version="Règlement `{rule_set_id}`, version {version}, `{hash}`.",
    how="Le jeu",
    paytable="Ce sur quoi l'on peut miser",
    prevails="*Traduction. En cas de différence, le texte anglais prévaut.*",
)
