-- One page's life: every event that moved it, from whom to whom, and why.
-- kind: report
-- set page INTEGER: the page's number
-- set pool VARCHAR = full: full, swa or host
-- set rank INTEGER = 0: the rank that the page belongs to
SELECT
    run, rank, epoch, seq, step, event, cause,
    from_kind, from_holder, to_kind, to_holder, partner, request, rid
FROM pages
LEFT JOIN (SELECT run, rank, epoch, request, rid FROM admissions) USING (run, rank, epoch, request)
WHERE page = getvariable('page') AND pool = getvariable('pool') AND rank = getvariable('rank')
ORDER BY run, rank, seq, place
