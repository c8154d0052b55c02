-- States copied from elsewhere: a request goes on from a slot that its node does not have at that moment.
--
-- Its answer would continue somebody else's text. The slot's last move says who has it (B77).
-- kind: check
SELECT
    state_copies.run, state_copies.rank, state_copies.epoch, state_copies.seq, state_copies.request, state_copies.node, source,
    moved.seq AS moved_seq, moved.event, to_kind AS owner_kind, to_holder AS owner
FROM state_copies
ASOF LEFT JOIN (FROM pages WHERE pool = 'recurrent') AS moved
    ON state_copies.run = moved.run AND state_copies.rank = moved.rank AND state_copies.epoch = moved.epoch
    AND source = page AND state_copies.seq > moved.seq
JOIN books ON books.run = state_copies.run AND books.rank = state_copies.rank AND books.epoch = state_copies.epoch
WHERE (moved.seq IS NOT NULL OR (opened_seq IS NOT NULL AND gaps IS NULL))
    AND (to_kind IS DISTINCT FROM 'tree' OR to_holder IS DISTINCT FROM state_copies.node)
ORDER BY state_copies.run, state_copies.rank, state_copies.seq
