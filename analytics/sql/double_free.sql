-- Double frees: a page was given back although the event before it had given it back already (J22).
--
-- Found by the previous event of the same page, not by a count: with each finding come the event that handed
-- the page out last, the first free, the second free, and whom the page goes to next, who will share it.
-- A free group that is flushed twice is one too.
-- kind: check anywhere
WITH second AS (
    SELECT
        run, rank, epoch, pool, page, seq AS second_seq, event AS second_event, cause AS second_cause,
        request AS second_request, from_kind AS giver_kind, from_holder AS giver, previous_seq AS first_seq
    FROM unlawful_moves
    WHERE page <> 0 AND to_kind IN ('free', 'pending') AND previous_kind IN ('free', 'pending')
), life AS (
    SELECT
        run, rank, epoch, pool, page, seq, event, cause, to_kind, to_holder,
        from_kind = 'free' AS handed_out,
        to_kind IN ('free', 'pending') AS given_back
    FROM pages
)
SELECT
    run, rank, epoch, second_seq AS seq, pool, page,
    max(seq) FILTER (handed_out AND seq < first_seq) AS alloc_seq,
    arg_max(to_holder, seq) FILTER (handed_out AND seq < first_seq) AS alloc_request,
    first_seq,
    coalesce(any_value(event::VARCHAR) FILTER (given_back AND seq = first_seq), 'Opened') AS first_event,
    any_value(cause) FILTER (given_back AND seq = first_seq) AS first_cause,
    second_seq, second_event, second_cause, second_request, giver_kind, giver,
    min(seq) FILTER (handed_out AND seq > second_seq) AS next_seq,
    arg_min(to_kind, seq) FILTER (handed_out AND seq > second_seq) AS next_owner_kind,
    arg_min(to_holder, seq) FILTER (handed_out AND seq > second_seq) AS next_owner
FROM second
JOIN life USING (run, rank, epoch, pool, page)
GROUP BY ALL
ORDER BY run, rank, second_seq, pool, page
