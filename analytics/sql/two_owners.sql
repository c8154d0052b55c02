-- Two owners: a page was handed to a request, a node or a copy under way while somebody else held it, or without being allocated.
--
-- Both will think that it is theirs (J22, B14). The owner is whom the previous event of that page gave it to.
-- So a page that an account gave up while another had it (foreign_free) is free to the events behind, and no row here.
-- kind: check anywhere
SELECT
    run, rank, epoch, pool, page, seq, event, cause, request,
    to_kind AS new_owner_kind,
    to_holder AS new_owner,
    previous_kind AS owner_kind,
    previous_holder AS owner,
    previous_seq AS owner_since
FROM unlawful_moves
WHERE to_kind IN ('request', 'tree', 'in_flight') AND NOT (from_kind = 'free' AND previous_kind = 'pending')
ORDER BY run, rank, seq, pool, page
