"""The second half of `docs/sql.md`, made from the tables and questions themselves.

Run it to bring the page up to date; `test_docs_facts.py` holds the page against it. Rule: what is said of a table or a
question is what the command line says of it.
"""

from collections.abc import Iterator
from pathlib import Path

from radixledger.analytics.beside import BESIDE_TITLES
from radixledger.analytics.queries import Question, of_kind
from radixledger.analytics.store import Database
from radixledger.analytics.tables import TITLES

PATH = Path(__file__).parent.parent / "docs" / "sql.md"
MARK = "<!-- what follows is made by `python -m tests.sql_page` -->\n"

HEADS = {
    "view": ("Views", "Lives that span events, put together from the tables.", "view"),
    "check": ("Checks", "A healthy run gives no row.", "check"),
    "report": ("Reports", "Figures, and stories of one thing.", "report"),
}


def generated() -> str:
    """What stands behind the mark."""
    columns = _columns()
    return (
        "\n".join([*_tables(columns), *(line for kind in HEADS for line in _questions(kind, columns))]) + "\n"
    )


def _columns() -> dict[str, list[str]]:
    """The columns of every table and view, as a connection shows them."""
    database = Database()
    rows = database.connection.execute(
        "SELECT table_name, list(column_name ORDER BY column_index) FROM duckdb_columns()"
        " WHERE schema_name = 'main' AND NOT internal GROUP BY ALL"
    ).fetchall()
    database.close()
    return dict(rows)


def _tables(columns: dict[str, list[str]]) -> Iterator[str]:
    yield "\n## Tables\n\nAll but `labels` begin with `run` and `rank`; those of events go on with `epoch`, `seq`, `step`.\n"
    yield "| table | says | columns |\n|---|---|---|"
    for name, title in (TITLES | BESIDE_TITLES).items():
        shown = [each for each in columns[name] if each not in ("run", "rank", "epoch", "seq", "step")]
        yield f"| `{name}` | {title} | {_code(shown)} |"


def _questions(kind: str, columns: dict[str, list[str]]) -> Iterator[str]:
    title, said, head = HEADS[kind]
    last = "columns" if kind == "view" else "parameters" if kind == "report" else ""
    yield f"\n## {title}\n\n{said}\n"
    yield f"| {head} | says |" + (f" {last} |\n|---|---|---|" if last else "\n|---|---|")
    for question in sorted(of_kind(kind)):
        more = _code(columns[question.name]) if kind == "view" else _parameters(question)
        yield f"| `{question.name}` | {question.title} |" + (f" {more} |" if last else "")


def _parameters(question: Question) -> str:
    return ", ".join(
        f"`{each.name}`" + (f" ({each.default})" if each.default is not None else "")
        for each in question.parameters
    )


def _code(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PATH.write_text(PATH.read_text("utf-8").partition(MARK)[0] + MARK + generated(), "utf-8")
