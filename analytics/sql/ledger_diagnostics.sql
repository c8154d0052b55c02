-- Ledger diagnostics: invalid or duplicate mappings, pages in two rows, or in a row and the tree; each has to be 0 (R155).
-- kind: check
SELECT
    run, rank, epoch, seq, phase,
    mapping_invalid_count,
    mapping_duplicate_count,
    full_duplicate_request_owner_count,
    swa_duplicate_request_owner_count,
    full_request_tree_overlap_count,
    swa_request_tree_overlap_count
FROM ledgers
WHERE mapping_invalid_count <> 0
    OR mapping_duplicate_count <> 0
    OR full_duplicate_request_owner_count <> 0
    OR swa_duplicate_request_owner_count <> 0
    OR full_request_tree_overlap_count <> 0
    OR swa_request_tree_overlap_count <> 0
ORDER BY run, rank, seq
