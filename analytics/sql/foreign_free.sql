-- Foreign frees: a page was given back by an account that did not hold it (J22).
--
-- The giver is the one that the event names; the owner is whom the previous event of that page gave it to.
-- kind: check anywhere
SELECT
    run, rank, epoch, pool, page, seq, event, cause, request,
    from_kind AS giver_kind,
    from_holder AS giver,
    previous_kind AS owner_kind,
    previous_holder AS owner,
    previous_seq AS owner_since
FROM unlawful_moves
WHERE page <> 0 AND to_kind IN ('free', 'pending') AND previous_kind NOT IN ('free', 'pending')
ORDER BY run, rank, seq, pool, page
