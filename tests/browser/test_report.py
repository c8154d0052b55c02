"""The page of `radixledger report` in a browser: true, reachable by keys, readable small, dark and printed, and safe."""

import random
import re
import shlex
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from radixledger.cache.state import State
from radixledger.journal.accounts import Kind
from radixledger.journal.events import Admitted, Refused
from radixledger.journal.moves import moves
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import ROOT, Rank, RequestId, Seq, TokenCount
from radixledger.journal.writer import JournalWriter
from radixledger.replay.report.write import write_report
from radixledger.replay.seek import state_at
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as radixledger

from ..cache.driven import Driven, opened
from ..replay.report_reader import DATA
from ..replay.runs import Clock
from .conftest import TRACE, Open

pytestmark = pytest.mark.browser

WRONG = Rank(1)
FOLDED = """async ([coded, places]) => {
  const track = new Track(await unpacked(coded));
  return places.map(place => {
    const tables = track.at(place);
    return {
      seq: track.seq[place], kind: tables.kind.map(each => [...each]), holder: tables.holder.map(each => [...each]),
      since: tables.since.map(each => [...each]), mapped: [...tables.mapped],
      nodes: [...tables.nodes], requests: [...tables.requests].map(each => [each[0], track.head.texts[each[1][track.ask.rid]], each[1][track.ask.length]]),
    };
  });
}"""


def at(page: Page, seq: int) -> None:
    """Wait until the page shows an event."""
    expect(page.locator("body")).to_have_attribute("data-seq", str(seq))


def told(state: State) -> dict[str, object]:
    """A state as FOLDED tells it."""
    books = (state.full, state.swa, state.recurrent, state.host)
    return {
        "seq": state.seq,
        "kind": [(book.account & 7).tolist() for book in books],
        "holder": [(book.account >> 3).tolist() for book in books],
        "since": [book.since.tolist() for book in books],
        "mapped": state.mapping.swa_of.tolist(),
        "requests": [
            [each.id, each.rid, int(state.rows.length[each.row])] for each in state.requests.values()
        ],
    }


def test_what_the_browser_folds_is_what_replay_folds(page: Page, page_file: Path, incident: Path) -> None:
    """J12: at events drawn by chance, forwards and backwards."""
    reader = JournalReader(incident, WRONG)
    coded = [text for _, _, text in DATA.findall(page_file.read_text("utf-8"))][WRONG]
    places = random.Random(3).sample(range(reader.last_seq), 12)
    for place, found in zip(places, page.evaluate(FOLDED, [coded, places]), strict=True):
        state = state_at(reader, place + 1)
        nodes = dict(found.pop("nodes"))
        found["requests"].sort()
        assert found == told(state)
        assert nodes.keys() == state.nodes.keys()
        for number, node in state.nodes.items():
            assert nodes[number][:5] == [
                node.parent.id if node.parent else -1, node.end, node.pages, len(node.full) // 4, len(node.swa) // 4,
            ]  # fmt: skip


def test_it_opens_at_the_first_wrong_event_with_the_life_of_its_page(page: Page, incident: Path) -> None:
    """J14: without a click."""
    first = verify_rank(incident, WRONG).findings[0]
    at(page, first.seq)
    expect(page.locator("#track")).to_have_value("1")
    expect(page.locator("#told .wrong")).to_contain_text("a_page_is_freed_once")
    expect(page.locator("#panel h3")).to_have_text(f"FULL page {first.pages[0]}")
    expect(page.locator("#panel ol")).to_contain_text(f"event {first.seq} → free")
    assert f"blame {shlex.quote(str(incident))} --rank 1 --pool full" in page.locator("#panel").inner_text()


def test_keys_step_by_event_and_by_finding(page: Page, incident: Path) -> None:
    wrong = verify_rank(incident, WRONG).findings[0].seq
    page.keyboard.press("ArrowRight")
    at(page, wrong + 1)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    at(page, wrong - 1)
    page.keyboard.press("v")
    at(page, wrong)
    page.keyboard.press("Home")
    at(page, 1)
    page.keyboard.press("Shift+ArrowRight")
    at(page, 101)
    page.keyboard.press("End")
    last = JournalReader(incident, WRONG).last_seq
    at(page, last)
    page.keyboard.press("Shift+V")
    at(page, wrong)
    slider = page.locator("#slider")
    slider.focus()
    page.keyboard.press("ArrowRight")
    at(page, wrong + 1)
    assert f"event {wrong + 1}" in (slider.get_attribute("aria-valuetext") or "")
    page.keyboard.press("f")
    page.keyboard.type("event 9")
    page.keyboard.press("Enter")
    at(page, 9)
    page.locator("#wanted").fill("nobody")
    page.keyboard.press("Enter")
    expect(page.locator("#found")).to_contain_text("Nothing here is called “nobody”")
    page.locator("#wanted").fill("event 99999")
    page.keyboard.press("Enter")
    expect(page.locator("#found")).to_have_text(f"There is no event 99,999 here: they go from 1 to {last:,}.")
    at(page, 9)


def test_the_slider_and_a_click_on_a_chart_go_to_an_event(page: Page) -> None:
    page.locator("#slider").fill("42")
    at(page, 42)
    chart = page.locator('#occupancy [data-track="0"] .plot').first
    box = chart.bounding_box()
    assert box is not None
    chart.click(position={"x": box["width"] / 2, "y": 20})
    expect(page.locator("body")).to_have_attribute("data-track", "0")
    first, last = (int(chart.get_attribute(f"data-{name}") or 0) for name in ("first", "last"))
    assert abs(int(page.locator("body").get_attribute("data-seq") or 0) - (first + last) / 2) <= 2
    assert page.locator('#occupancy [data-track="0"] .hair').count() == 3


def test_a_page_tells_its_life_a_request_its_events_a_node_its_locks(page: Page, incident: Path) -> None:
    """J16: by clicks, and by keys on the maps."""
    reader = JournalReader(incident, WRONG)
    seq = next(seq for seq in range(60, reader.last_seq) if state_at(reader, seq).requests)
    page.locator("#wanted").fill(f"event {seq}")
    page.keyboard.press("Enter")
    at(page, seq)
    state = state_at(reader, seq)
    page.get_by_role("application", name=re.compile("^FULL pages")).click(position={"x": 5 * 16, "y": 5})
    expect(page.locator("#panel h3")).to_contain_text("FULL page")
    expect(page.locator("#panel ol li").first).to_be_visible()
    request = next(iter(state.requests.values()))
    page.locator("#requests button", has_text=re.compile(f"^{request.rid}$")).click()
    expect(page.locator("#panel h3")).to_have_text(f"Request {request.rid}")
    expect(page.locator("#panel ul").first).to_contain_text("Admitted")
    assert request.receipt is not None
    page.locator("#panel button", has_text=re.compile(f"^node {request.receipt.node}$")).click()
    expect(page.locator("#panel h3")).to_have_text(f"Node {request.receipt.node}")
    expect(page.get_by_role("list", name="Who holds it")).to_contain_text(
        f"request {request.id} {request.rid}"
    )
    page.get_by_role("application", name=re.compile("^Radix tree")).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_contain_text("Its locks")
    page.get_by_role("application", name=re.compile("^SWA pages")).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#panel h3")).to_have_text("SWA page 2")
    page.keyboard.press("Escape")
    expect(page.locator("#panel h3")).to_have_text("Choose something")


PAINTED = """() => {
  const canvas = document.querySelector("#maps canvas"), pen = canvas.getContext("2d");
  const wide = canvas.width, cell = Math.max(3, Math.min(16, Math.floor(Math.sqrt(wide * 300 / window.pages))));
  const columns = Math.floor(wide / cell), style = getComputedStyle(document.documentElement);
  const names = Object.fromEntries(STACK.map(name => [style.getPropertyValue("--" + name).trim(), name]));
  return Array.from({ length: window.pages }, (_, page) => {
    const [red, green, blue] = pen.getImageData(page % columns * cell + 1, Math.floor(page / columns) * cell + 1, 1, 1).data;
    return names["#" + [red, green, blue].map(each => each.toString(16).padStart(2, "0")).join("")] || "?";
  });
}"""


@pytest.mark.parametrize("pages", [70, 20_000])
def test_every_page_of_a_pool_has_the_colour_of_its_account(opens: Open, tmp_path: Path, pages: int) -> None:
    """Small pools as squares, large ones as one picture."""
    (tmp_path / "trace.jsonl").write_text(TRACE)
    drive = [
        "drive",
        str(tmp_path / "trace.jsonl"),
        "--journal",
        str(tmp_path / "run"),
        "--page-size=64",
        "--window=256",
    ]
    sizes = [f"--full-pages={pages}", "--swa-pages=30"]
    assert radixledger([*drive, *sizes, "--enable-unified-radix-tree"]) == 1, "some are refused"
    write_report([tmp_path / "run"], tmp_path / "page.html", tell=str)
    page = opens(tmp_path / "page.html", viewport={"width": 1280, "height": 900})
    reader = JournalReader(tmp_path / "run", Rank(0))
    seq = next(seq for seq in range(90, reader.last_seq) if not reader_event_names_pages(reader, seq))
    page.keyboard.press("Escape")
    page.locator("#slider").fill(str(seq))
    at(page, seq)
    state = state_at(reader, seq)
    page.evaluate(f"window.pages = {pages + 1}")
    expected = ["reserved", *(account_of(state, int(each)) for each in state.full.account[1:])]
    assert page.evaluate(PAINTED) == expected
    assert {"protected", "request", "free"} <= set(expected)


def reader_event_names_pages(reader: JournalReader, seq: int) -> bool:
    """Whether an event moves pages, which then have a ring on the map; or nobody is live by then."""
    frame = next(iter(reader.frames(Seq(seq))))
    return bool(moves(frame.events[0])) or not state_at(reader, seq).full.held[Kind.REQUEST]


def account_of(state: State, account: int) -> str:
    """The class of a FULL page's owner."""
    if account & 7 != Kind.TREE:
        return Kind(account & 7).name.lower()
    return "protected" if state.nodes[account >> 3].holds > 0 else "evictable"


CONTRAST = """() => {
  const value = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const light = text => {
    const short = text.length === 4, at = place => short ? text[1 + place].repeat(2) : text.slice(1 + 2 * place, 3 + 2 * place);
    const parts = [0, 1, 2].map(place => parseInt(at(place), 16) / 255).map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ratio = (one, other) => { const [low, high] = [light(value(one)), light(value(other))].sort((a, b) => a - b); return (high + 0.05) / (low + 0.05); };
  return [["ink", "ground"], ["ink", "raised"], ["soft", "ground"], ["soft", "raised"], ["accent", "ground"], ["accent", "raised"],
    ["ink", "alarm-ground"], ["ink", "calm-ground"], ["alarm", "raised"]].map(pair => [...pair, ratio(...pair)]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_colour_schemes_can_be_read(opens: Open, page_file: Path, scheme: str) -> None:
    """WCAG AA: 4.5 to 1 for every text on every ground."""
    page = opens(page_file, color_scheme=scheme)
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 27)")
    assert [pair for pair in page.evaluate(CONTRAST) if pair[2] < 4.5] == []
    for told_as, expected in (
        ("light", "rgb(255, 255, 255)"),
        ("dark", "rgb(20, 23, 27)"),
        ("system", ground),
    ):
        page.locator("#theme").click()
        expect(page.locator("#theme")).to_have_text(f"Colours: {told_as}")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == expected


def test_print_has_the_verdict_the_findings_and_the_charts_and_nothing_to_press(page: Page) -> None:
    page.emulate_media(media="print")
    for shown in ("#verdict .banner", "#findings table", "#occupancy svg.chart", "#detail table"):
        expect(page.locator(shown).first).to_be_visible()
    for hidden in ("#moment", "#theme", ".keys"):
        expect(page.locator(hidden).first).to_be_hidden()
    page.set_viewport_size({"width": 700, "height": 900})
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_whoever_tabs_sees_where_and_everything_has_a_name(page: Page) -> None:
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        if seen[-1] in ("slider", "BODY"):
            break
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none", seen[-1]
    order = [name for name in seen if name in ("theme", "track", "to-next", "wanted", "slider")]
    assert order == ["theme", "track", "to-next", "wanted", "slider"]
    nameless = """() => [...document.querySelectorAll("button, input, select, canvas, [role=group], aside")].filter(each =>
      !(each.getAttribute("aria-label") || each.textContent.trim() || each.labels?.length)).map(each => each.outerHTML)"""
    assert page.evaluate(nameless) == []


def test_a_hostile_journal_runs_no_script(opens: Open, tmp_path: Path) -> None:
    """Neither written into the page nor by what the page writes later; and the policy stands behind both."""
    attack = "<img src=x onerror=\"document.title='had'\"><script>document.title='had'</script>"
    with JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock()) as writer:
        Driven(7, recorder=writer).run(10)
        for number in range(2):
            writer.append(
                Admitted(
                    RequestId((1 << 20) + number), attack + str(number), TokenCount(5), TokenCount(0), ROOT
                )
            )
            writer.append(Refused(attack, attack))
            writer.end_command()
    write_report([tmp_path / "run"], tmp_path / "page.html", tell=str)
    page = opens(tmp_path / "page.html")
    page.locator("#wanted").fill(attack + "0")
    page.keyboard.press("Enter")
    expect(page.locator("#panel h3")).to_contain_text(f"Request {attack}0")
    for _ in range(4):
        page.locator("#to-before").click()
    assert page.locator("img").count() == 0
    assert page.title() == "run"


def test_a_script_that_got_in_all_the_same_would_not_run(browser: Browser, page_file: Path) -> None:
    """The policy stands behind the escaping, and behind text nodes."""
    page = browser.new_page()
    page.goto(page_file.as_uri())
    blocked = """() => new Promise(resolve => {
      document.addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective));
      const script = document.createElement("script");
      script.textContent = "document.title = 'had'";
      document.body.append(script);
    })"""
    assert page.evaluate(blocked) == "script-src-elem"
    assert page.title() == "incident"
    asked = "() => fetch('data:text/plain,hello').then(() => 'answered', () => 'refused')"
    assert page.evaluate(asked) == "refused"
    page.close()


def test_a_summary_says_that_it_is_one(
    opens: Open, incident: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("radixledger.replay.report.shares.DETAIL_EVENTS", 120)
    summary = write_report([incident], tmp_path / "page.html", tell=str)
    page = opens(tmp_path / "page.html")
    first, *_, last = summary.ranks[0].detail
    page.locator("#track").select_option("0")
    page.locator("#slider").fill(str((first[1] + last[0]) // 2))
    expect(page.locator("#told")).to_contain_text("Summarised: what was true behind event")
    expect(page.locator("#told .place")).to_contain_text("summary of events")
    expect(page.locator("#detail table")).to_contain_text("summaries")
    page.locator("#wanted").fill("full 5")
    page.keyboard.press("Enter")
    expect(page.locator("#panel ol")).to_contain_text("(summarised)")


def test_a_browser_that_cannot_unpack_says_so_and_shows_the_rest(opens: Open, page_file: Path) -> None:
    page = opens(page_file, ready=False, init="delete globalThis.DecompressionStream")
    expect(page.locator("#loading")).to_contain_text("cannot unpack the run")
    expect(page.locator("#verdict .banner")).to_be_visible()
    expect(page.locator("#desk")).to_be_hidden()
