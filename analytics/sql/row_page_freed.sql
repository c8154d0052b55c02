-- Row pages freed: an allocator call took a page that stands in the row of a live request (R4, B12).
--
-- A server that keeps its rows itself may cut one short: then the row is told to end before the page right behind.
-- kind: check
WITH freed AS (
    SELECT pages.run, pages.rank, pages.epoch, pages.seq, pool, page, cause, from_holder AS request
    FROM pages
    JOIN requests
        ON pages.run = requests.run AND pages.rank = requests.rank AND pages.epoch = requests.epoch
        AND from_holder = requests.request
    WHERE from_kind = 'request' AND pages.cause IN ('free/composite', 'free/full_only', 'free/swa_only')
        AND admitted_seq < seq AND (ended_seq IS NULL OR ended_seq > seq)
), others AS (
    SELECT run, rank, epoch, seq, event FROM events WHERE event <> 'Freed'
)
SELECT freed.*
FROM freed
ASOF LEFT JOIN others
    ON freed.run = others.run AND freed.rank = others.rank AND freed.epoch = others.epoch AND freed.seq < others.seq
WHERE others.event IS DISTINCT FROM 'Bound'
ORDER BY freed.run, freed.rank, freed.seq, pool, page
