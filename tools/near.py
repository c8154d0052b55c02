"""What to say of a name that is none: which ones are near."""

from collections.abc import Iterable
from difflib import get_close_matches

PART = 4
"""Letters that make a part of a name worth looking for."""


def near(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean this or that?` behind the name of nothing; `otherwise` where nothing of `known` is near.

    Near is what is spelled alike, or else what `name` is a part of.
    """
    names = list(dict.fromkeys(known))
    close = (
        get_close_matches(name, names) or [each for each in names if len(name) >= PART and name in each][:3]
    )
    return f"; did you mean {' or '.join(close)}?" if close else otherwise
