-- Mappings without an owner: the nonzero mappings are not as many as the SWA tokens that tree and requests hold (R169).
--
-- Counted are whole pages, so the slack of partly filled ones is held too.
-- kind: check
SELECT
    run, rank, epoch, seq, phase, mapping_nonzero_count,
    swa_tree_evictable + swa_tree_protected + swa_request_owned + swa_reserved_page_slack AS swa_owned,
    swa_tree_evictable, swa_tree_protected, swa_request_owned, swa_reserved_page_slack
FROM ledgers
WHERE mapping_nonzero_count <> swa_owned
ORDER BY run, rank, seq
