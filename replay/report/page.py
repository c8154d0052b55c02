"""The page itself: verdict, charts and findings as HTML that needs no script, and the data that a script shows moments of.

Rule: every text that a journal could have brought goes through `shown` (`phrases`), and the page's policy forbids any script and style
but its own, and any request. So a hostile journal can be looked at.
"""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from radixledger.journal.absent import Absent
from radixledger.replay.report.charts import charts, legend
from radixledger.replay.report.headline import headline
from radixledger.replay.report.phrases import Sheet, shown
from radixledger.replay.report.tables import detail, findings

SCRIPTS = (
    "varints.js",
    "fold.js",
    "words.js",
    "moves.js",
    "closeup.js",
    "pagemap.js",
    "treemap.js",
    "panel.js",
    "moment.js",
)
"""In the order in which they stand in the page, as one script."""


def page(title: str, sheets: Sequence[Sheet], made: str, absent: Sequence[Absent] = ()) -> str:
    """The whole page as HTML; `absent` is what the runs on it lack."""
    style = _asset("page.css")
    script = "\n".join(map(_asset, SCRIPTS))
    assert "</" not in script, "a script that ends its own element"
    return Template(_asset("page.html")).substitute(
        policy=_policy(script, style),
        title=shown(title),
        style=style,
        verdict=headline(sheets, absent),
        legend=legend(sheets),
        charts=charts(sheets),
        findings="".join(findings(place, sheet) for place, sheet in enumerate(sheets))
        or "<p>There are none.</p>",
        detail=detail(sheets),
        loading="Unpacking the run&#8230;",
        made=shown(made),
        data="\n".join(
            f'<script type="text/plain" class="track" data-track="{place}" data-label="{shown(sheet.label)}">{sheet.bundle}</script>'
            for place, sheet in enumerate(sheets)
            if sheet.bundle
        ),
        script=script,
    )


def _asset(name: str) -> str:
    return files(__package__ or "").joinpath(name).read_text("utf-8")


def _policy(script: str, style: str) -> str:
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    return (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
        "connect-src 'none'; base-uri 'none'; form-action 'none'"
    )
