-- Pages that differ from growth: a request took more or fewer pages than its new tokens can cross into (R46, B20).
--
-- So many tokens need their number of pages, rounded down or up by where they begin.
-- kind: check anywhere
SELECT run, rank, epoch, seq, request, grown, takings.pages, page_size, cause
FROM takings
JOIN (SELECT run, rank, epoch, page_size FROM runs WHERE page_size IS NOT NULL) AS paged USING (run, rank, epoch)
WHERE abs(takings.pages * page_size - grown) >= page_size
ORDER BY run, rank, seq
