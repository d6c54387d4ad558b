"""The exact edges of the house that rule sets declare: per unit of the stake, in the first round of
a fresh shoe of eight decks, as fractions in lowest terms. They are enumerated anew at every start,
which refuses where one differs.
"""

from __future__ import annotations

EDGES: dict[str, dict[str, str]] = {
    "baccarat": {
        "banker": "114753351728/10847218479825",
        "banker_bonus": "9683026823/103306842665",
        "banker_natural": "796/5395",
        "banker_no_commission": "284694798368/19524993263685",
        "banker_pair": "43/415",
        "either_pair": "108091/788417",
        "lucky_seven": "91597698947/500640852915",
        "lucky_seven_2": "6197320351/47506066335",
        "lucky_seven_3": "334232045669/2169443695965",
        "lucky_six": "47209656769/282970916865",
        "lucky_six_2": "296036033/2065481145",
        "lucky_six_3": "141819481097/929761583985",
        "perfect_pair": "220127/1689465",
        "player": "241149546272/19524993263685",
        "player_bonus": "103547854751/3904998652737",
        "player_natural": "796/5395",
        "player_pair": "43/415",
        "super_lucky_seven": "321821201693/2169443695965",
        "tie": "103841353768/723147898655",
    },
    "baccarat_ez": {
        "banker": "66274384744/6508331087895",
        "dragon_7": "64613588827/848912750595",
        "panda_8": "153010345753/1501922558745",
        "player": "241149546272/19524993263685",
        "tie": "103841353768/723147898655",
    },
    "blackjack": {
        "21_plus_3": "4596/124085",
        "insurance": "31/415",
        "main": (
            "341222043035300427708855285012902795315370967/"
            "48080945712498994147075948343812974975442623375"
        ),
        "perfect_pairs": "17/415",
    },
    "dragon_tiger": {
        "dragon": "31/830",
        "suited_tie": "58/415",
        "tie": "43/415",
        "tiger": "31/830",
    },
    "football_studio": {
        "away": "31/830",
        "draw": "43/415",
        "home": "31/830",
    },
    "roulette": {
        "black": "1/37",
        "column": "1/37",
        "corner": "1/37",
        "dozen": "1/37",
        "even": "1/37",
        "first_four": "1/37",
        "high": "1/37",
        "low": "1/37",
        "odd": "1/37",
        "red": "1/37",
        "six_line": "1/37",
        "split": "1/37",
        "straight": "1/37",
        "street": "1/37",
        "trio": "1/37",
    },
    "sicbo_atlantic_city": {
        "any_triple": "5/36",
        "big": "1/36",
        "combination": "1/6",
        "double": "5/27",
        "even": "1/36",
        "odd": "1/36",
        "single": "17/216",
        "small": "1/36",
        "triple": "35/216",
    },
    "sicbo_macau": {
        "any_triple": "11/36",
        "big": "1/36",
        "combination": "1/6",
        "double": "1/3",
        "even": "1/36",
        "odd": "1/36",
        "single": "17/216",
        "small": "1/36",
        "triple": "65/216",
    },
}
"""By rule-set id and bet. A kind whose positions differ in their edge has none."""
