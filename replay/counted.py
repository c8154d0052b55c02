"""A count with its noun, as every sentence of a report says it."""


def counted(number: int, noun: str) -> str:
    """`1 page`, `12,345 pages`: the noun takes an s."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
