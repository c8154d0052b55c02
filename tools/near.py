"""What to say of a name that is none: which ones are near."""

from collections.abc import Iterable
from difflib import get_close_matches


def near(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`; did you mean this or that?` behind the name of nothing; `otherwise` where nothing of `known` is near."""
    close = get_close_matches(name, dict.fromkeys(known))
    return f"; did you mean {' or '.join(close)}?" if close else otherwise
