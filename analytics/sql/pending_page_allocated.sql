-- Pending pages allocated: a page that an open free group had queued was handed out before the group was flushed (J22).
-- kind: check anywhere
SELECT
    run, rank, epoch, pool, page, seq, event, cause, request,
    to_kind AS new_owner_kind,
    to_holder AS new_owner,
    previous_seq AS pending_since
FROM unlawful_moves
WHERE to_kind IN ('request', 'tree', 'in_flight') AND from_kind = 'free' AND previous_kind = 'pending'
ORDER BY run, rank, seq, pool, page
