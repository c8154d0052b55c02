"""The event table of the docs, made from the vocabulary itself.

Run it to bring `docs/vocabulary.md` up to date; `test_vocabulary.py` holds the file against it. Rule: what the table
says of an event is the first sentence of its docstring and its fields in their order.
"""

import re
from pathlib import Path
from typing import get_args

import msgspec

from radixledger.journal.causes import Operation, Site
from radixledger.journal.events import SCHEMA_VERSION, AnyEvent

PATH = Path(__file__).parent.parent / "docs" / "vocabulary.md"

HEAD = f"""# The vocabulary

Everything that can happen to one rank's cache, as the journal tells it (schema {SCHEMA_VERSION}). An event is a fact: what was chosen
is written in it, so that folding needs no clock, no chance and no policy. Page columns are packed int32, request and
node columns packed int64, both little-endian; lengths are tokens unless a name says pages. Events are only ever
extended: new fields go last and have defaults, tags are never used again.

This table is made from `journal/events.py` and checked against it.

| tag | event | says | fields |
|---:|---|---|---|
"""


def table() -> str:
    """The whole page."""
    rows = []
    for event in sorted(get_args(AnyEvent), key=lambda kind: kind.__struct_config__.tag):
        fields = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(event))
        said = re.sub(r"\s+", " ", (event.__doc__ or "").split("\n\n")[0]).strip()
        rows.append(f"| {event.__struct_config__.tag} | `{event.__name__}` | {said} | {fields} |")
    operations = ", ".join(f"`{operation.name.lower()}`" for operation in Operation)
    sites = ", ".join(f"`{site.name.lower()}`" for site in Site)
    causes = (
        "\n\n## Causes\n\nA cause is one number, `operation * 32 + site`, printed as `operation/site` (`finish/duplicate`), or as the"
        f" operation alone.\n\n- operations: {operations}\n- sites: {sites}\n"
    )
    return HEAD + "\n".join(rows) + causes


if __name__ == "__main__":
    PATH.write_text(table())
