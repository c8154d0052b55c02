-- Reserved page freed: page 0, the padding sink, went to the free pages (J22, R51, B05).
-- kind: check anywhere
SELECT run, rank, epoch, pool, page, seq, event, cause, request, from_kind AS giver_kind, from_holder AS giver
FROM pages
WHERE page = 0 AND to_kind IN ('free', 'pending')
ORDER BY run, rank, seq, pool
