"""The naive model, continued: which SWA pages of the tree may still be read by somebody.

A next request may start where a path ends, where contents part, and where a prompt ended while nobody has gone on behind
its answer. It reads a window back from there; from a prompt's end half a window more, since it may leave the path before.
What lies behind a parting, or behind pages that are gone, wants nothing of what is before it.
"""

from collections.abc import Mapping, Sequence

from .model_tree import Prefix, Tree


def asked(tree: Tree, prefix: Prefix) -> int:
    """How many prompts end here that wait for what will be made of their answers."""
    return [*tree.prompts.values(), *tree.answers.values()].count(prefix)


def somebody_may_read(tree: Tree, prefix: Prefix) -> bool:
    """Whether a request that starts at or behind this prefix may read its page."""
    window, behind = tree.shape.tail, 0
    while True:
        following = [each for each in tree.places if len(each) == len(prefix) + 1 and each[:-1] == prefix]
        if asked(tree, prefix) and behind < window + window // 2:
            return True
        if len(following) != 1 or tree.places[following[0]].swa is None:
            return len(following) != 1 and behind < window
        prefix, behind = following[0], behind + 1
        if behind >= window + window // 2:
            return False


def for_nobody(tree: Tree, end: Prefix) -> int:
    """How many of the first pages of the node that ends here nobody may read."""
    span = tree.span(end)
    return next((at for at, prefix in enumerate(span) if somebody_may_read(tree, prefix)), len(span))


def judge_part(
    tree: Tree, pages: Sequence[int], candidates: Mapping[Prefix, tuple[int, int]]
) -> Prefix | None:
    """The part of a node that these FULL pages are, cut off; None where every candidate is for somebody.

    It must be all that is for nobody in its node, and of such nodes none may be older.
    """
    if tree.shape.victims == "lru":
        return None
    spare = {end: count for end in candidates if (count := for_nobody(tree, end))}
    if not spare:
        return None
    oldest = min(candidates[end] for end in spare)
    for end, count in spare.items():
        part = tree.span(end)[:count]
        if [tree.places[prefix].full for prefix in part] == list(pages):
            assert candidates[end] == oldest, (
                f"part {pages}, used at {candidates[end]}, is not the oldest ({oldest})"
            )
            tree.cut(part[-1])
            return part[-1]
    raise AssertionError(f"{pages} went, {len(spare)} nodes have pages for nobody")
