"""The currencies of ISO 4217 that money is held in, with their exponents (rule MON-3)."""

from __future__ import annotations

_WITHOUT_MINOR = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_THREE_DIGITS = "BHD IQD JOD KWD LYD OMR TND"
_TWO_DIGITS = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY
COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF
IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR
MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG
SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST
XCD XCG YER ZAR ZMW ZWG
"""

EXPONENTS: dict[str, int] = {
    **dict.fromkeys(_WITHOUT_MINOR.split(), 0),
    **dict.fromkeys(_TWO_DIGITS.split(), 2),
    **dict.fromkeys(_THREE_DIGITS.split(), 3),
}
"""By code: how many decimal digits a minor unit is of the unit."""


def decimal(minor: int, currency_code: str) -> str:
    """An amount as a decimal number of units: 1234 is `12.34` EUR, `1234` JPY, `1.234` KWD. For
    people and files; money itself stays whole minor units. Raises KeyError: no such currency."""
    digits = EXPONENTS[currency_code]
    whole, rest = divmod(abs(minor), 10**digits)
    return f"{'-' if minor < 0 else ''}{whole}" + (f".{rest:0{digits}}" if digits else "")
