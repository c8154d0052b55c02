-- Totals that went down: evicted, tombstoned and healed totals only grow while a rank runs, over flushes too (R172).
-- kind: check
SELECT
    run, rank, epoch, seq, phase,
    full_evicted_total, lag(full_evicted_total) OVER history AS full_evicted_before,
    swa_evicted_total, lag(swa_evicted_total) OVER history AS swa_evicted_before,
    tombstone_created_total, lag(tombstone_created_total) OVER history AS tombstone_created_before,
    tombstone_healed_total, lag(tombstone_healed_total) OVER history AS tombstone_healed_before
FROM ledgers
WINDOW history AS (PARTITION BY run, rank, epoch ORDER BY seq)
QUALIFY full_evicted_total < full_evicted_before
    OR swa_evicted_total < swa_evicted_before
    OR tombstone_created_total < tombstone_created_before
    OR tombstone_healed_total < tombstone_healed_before
ORDER BY run, rank, seq
