-- Mappings without an owner: the nonzero mappings are not as many as the SWA tokens that tree and requests hold (R169).
--
-- Counted are whole pages, so the slack of partly filled ones is held too, and what callers without a row hold.
-- Ranks whose journal begins at a snapshot are not asked.
-- kind: check
WITH owned AS (
    SELECT
        ledgers.run, ledgers.rank, ledgers.epoch, ledgers.seq, phase, mapping_nonzero_count,
        swa_tree_evictable, swa_tree_protected, swa_request_owned, swa_reserved_page_slack,
        coalesce(pages_out, 0) * page_size AS outside
    FROM ledgers
    JOIN runs USING (run, rank, epoch)
    ASOF LEFT JOIN (FROM outside_pages WHERE pool = 'swa') AS lent
        ON ledgers.run = lent.run AND ledgers.rank = lent.rank AND ledgers.epoch = lent.epoch AND ledgers.seq > lent.seq
)
SELECT
    run, rank, epoch, seq, phase, mapping_nonzero_count,
    swa_tree_evictable + swa_tree_protected + swa_request_owned + swa_reserved_page_slack + outside AS swa_owned,
    swa_tree_evictable, swa_tree_protected, swa_request_owned, swa_reserved_page_slack, outside
FROM owned
WHERE mapping_nonzero_count <> swa_owned
ORDER BY run, rank, seq
