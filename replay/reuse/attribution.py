"""From the past of a prompt's path to what became of its tokens: which were lost to which event, and why the rest missed.

Pure: `judge` gathers the past while it folds, `misses` says what the kinds mean. Rule: lengths here are pages, in what is
returned tokens.
"""

from msgspec import Struct
from msgspec.structs import replace

from radixledger.journal.causes import label
from radixledger.journal.events import Admitted, Matched
from radixledger.replay.reuse.misses import KINDS, Lost, Miss, Stretch, stop_text
from radixledger.replay.reuse.stays import Loss, Needs, Piece, Pressure, Stay, reach

MOMENTS = 512
"""So many losses of one path are asked about, the latest; a path has as many as it has nodes, or a few more."""


class Looked(Struct, frozen=True):
    """A match, and where it stands."""

    event: Matched
    seq: int
    time_ns: int
    step: int
    epoch: int


class Asked(Struct):
    """A request whose miss is not judged yet. Lengths in pages.

    seq: of its admission. at: the event behind which its hit was measured. known: how much of its path is, of the `wanted` that it asked for;
    pieces: the past of that, from a window before the hit. evicted: as in `Memory`, when it was admitted. blind: whether it was matched
    or admitted where the state is not known, so that nothing but its hit is.
    """

    looked: Looked
    admitted: Admitted
    seq: int
    at: int
    known: int
    pieces: list[Piece]
    evicted: tuple[int, int]
    wanted: int
    blind: bool = False


def judged(
    held: Asked,
    rank: int,
    ended: str,
    page_size: int,
    needs: Needs,
    *,
    tree: bool,
    live: bool,
    cut: bool = False,
) -> Miss:
    """What became of a request's prompt. ended: how it ended, empty if it did not; tree: whether the route has one.

    live: the journal ends before the request does, and before its key is known. cut: events are missing before that.
    """
    admitted, looked, event = held.admitted, held.looked, held.looked.event
    hit = admitted.prefix // page_size
    drops, reached, forced = ([], hit, hit) if held.blind else _drops(held, hit, needs)
    lost = [_lost(held, page_size, *drop) for drop in drops]
    stretches = _stretches(held, hit, reached, forced, page_size, tree=tree)
    if tree and (cut or held.blind):
        stretches = [replace(each, kind="not_known") if each.kind == "untold" else each for each in stretches]
    kinds = dict.fromkeys(KINDS, 0) | {"hit": int(admitted.prefix)}
    kinds["lost"] = sum(each.tokens for each in lost)
    for stretch in stretches:
        kinds[stretch.kind] += stretch.stop - stretch.start
    return Miss(
        rank=rank, request=admitted.request, rid=admitted.rid, seq=looked.seq, time_ns=looked.time_ns,
        step=looked.step, prompt=admitted.prompt, asked=event.asked, full_hit=event.full_hit,
        hit=admitted.prefix, host_hit=event.host_hit, stop=stop_text(event.stop), node=admitted.node,
        ended=ended, known=held.known * page_size, kinds=kinds, lost=lost, stretches=stretches,
        epoch=looked.epoch, admitted_seq=held.seq, open=live,
    )  # fmt: skip


def _lost(held: Asked, page_size: int, start: int, stop: int, loss: Loss) -> Lost:
    stays = [stay for piece in held.pieces if piece.start < stop for stay in piece.stays]
    stay = next((stay for stay in stays if loss in stay.losses()), None)
    pressure, evicted, now = loss.pressure or Pressure(), loss.evicted, held.evicted
    also = _also(stays, loss, held.at)
    copy = stay.copy_dropped if stay is not None else None
    return Lost(
        start=start * page_size, stop=stop * page_size, seq=loss.seq, time_ns=loss.time_ns, step=loss.step,
        event=loss.event, cause=label(loss.cause), what=_WHAT.get(loss.event, "prefix"), node=loss.node,
        cached_by=stay.rid if stay is not None else "", cached_seq=stay.born if stay is not None else 0,
        pressed=loss.pressure is not None, wanted_by=list(pressure.takers),
        wanted_by_count=pressure.taker_count, wanted_seq=pressure.took_seq,
        asked_full=pressure.asked[0], asked_swa=pressure.asked[1], asked_states=pressure.asked[2],
        evicted_full=now[0] - evicted[0], evicted_swa=now[1] - evicted[1],
        also_seq=also.seq if also is not None else 0,
        also_cause=label(also.cause) if also is not None else "",
        also_evicted_full=now[0] - also.evicted[0] if also is not None else 0,
        copy=f"dropped by event {copy.seq}, {label(copy.cause)}" if copy is not None else "",
    )  # fmt: skip


def _also(stays: list[Stay], loss: Loss, at: int) -> Loss | None:
    """The first event behind a loss, and not behind `at`, that took FULL pages of the same stays."""
    later = [
        other
        for stay in stays
        for other in (stay.end, *(mark.loss for mark in stay.full))
        if other is not None and loss.seq < other.seq <= at and stay.born < loss.seq
    ]
    return min(later, key=lambda other: other.seq, default=None)


_WHAT = {
    "Gap": "everything",
    "Tombstoned": "window",
    "StateFreed": "state",
    "Demoted": "prefix on the device",
    "Opened": "everything",
}
"""What an event takes that is a loss; others take the prefix."""


def _drops(held: Asked, hit: int, needs: Needs) -> tuple[list[tuple[int, int, Loss]], int, int]:
    """Pages [start, stop) that were lost, with the event that did; how far the prompt ever hit; how far it could now.

    Backwards in time from the match: whatever the prompt would have hit just before a loss and not since, that loss took.
    """
    forced = max(hit, reach(held.pieces, hit, held.at, needs))
    losses = {loss.seq: loss for piece in held.pieces for stay in piece.stays for loss in stay.losses()}
    reached, drops = forced, []
    for seq in sorted((seq for seq in losses if seq <= held.at), reverse=True)[:MOMENTS]:
        if reached >= held.known:
            break
        before = reach(held.pieces, hit, seq - 1, needs)
        if before > reached:
            drops.append((reached, before, losses[seq]))
            reached = before
    return drops, reached, forced


def _stretches(
    held: Asked, hit: int, reached: int, forced: int, page_size: int, *, tree: bool
) -> list[Stretch]:
    """What was not lost: told not to hit, never reached, not known, too short."""
    out: list[Stretch] = []
    if forced > hit:
        out.append(Stretch(hit * page_size, forced * page_size, "forced"))
    for piece in held.pieces:
        start = max(piece.start, reached)
        if start < piece.stop:
            _add(out, _never(piece, held, start * page_size, piece.stop * page_size))
    known, wanted = max(held.known, reached), held.wanted
    if wanted > known:
        _add(out, Stretch(known * page_size, wanted * page_size, "untold"))
    asked = max(wanted, known) * page_size if tree else 0
    if held.admitted.prompt > asked and tree:
        _add(out, Stretch(asked, held.admitted.prompt, "too_short"))
    elif not tree:
        out = [Stretch(0, held.admitted.prompt, "untold")]
    return out


def _never(piece: Piece, held: Asked, start: int, stop: int) -> Stretch:
    """Why pages that no match of this prompt would ever have reached were not reached."""
    before = [stay for stay in piece.stays if stay.born <= held.at]
    if before and held.known < held.wanted:
        return Stretch(start, stop, "untold")  # whether a window stood behind it, nobody knows
    if before:
        return _because(
            before[-1].given_back, Stretch(start, stop, "not_usable", before[-1].rid, before[-1].born)
        )
    others = [stay for stay in piece.stays if stay.request != held.admitted.request]
    if others:
        return Stretch(start, stop, "concurrent", others[0].rid, others[0].born)
    return _because(_vetoed_before(piece, held), Stretch(start, stop, "never_cached"))


def _vetoed_before(piece: Piece, held: Asked) -> Loss | None:
    """Where pages of another request that came behind the same prefix were not kept."""
    ends = [
        stay
        for each in held.pieces
        if each.stop == piece.start
        for stay in each.stays
        if stay.stop == each.stop
    ]
    return next((stay.vetoed for stay in ends if stay.vetoed and stay.vetoed.seq <= held.at), None)


def _because(loss: Loss | None, stretch: Stretch) -> Stretch:
    if loss is None:
        return stretch
    return replace(stretch, seq=loss.seq, event=loss.event, cause=label(loss.cause))


def _add(out: list[Stretch], more: Stretch) -> None:
    """A stretch behind the others; two that say the same, one behind the other, become one.

    What was never cached says nothing of its own, and belongs to the stretch before it.
    """
    if not out or out[-1].stop != more.start:
        out.append(more)
        return
    last, there = (replace(each, start=0, stop=0) for each in (out[-1], more))
    if last == there or (last.kind == "never_cached" and there == Stretch(0, 0, "never_cached")):
        out[-1] = replace(out[-1], stop=more.stop)
    else:
        out.append(more)
