-- Capacity drift: a pool's capacity changed while a rank ran, or is not the one it was built with (R163, R170).
-- kind: check
SELECT
    ledger_pools.run, ledger_pools.rank, ledger_pools.epoch, seq, phase, pool, capacity,
    first_value(capacity) OVER (PARTITION BY run, rank, epoch, pool ORDER BY seq) AS first_capacity,
    CASE pool WHEN 'full' THEN full_pages * page_size WHEN 'swa' THEN swa_pages * page_size WHEN 'host' THEN host_pages * page_size ELSE recurrent_slots END AS built_with
FROM ledger_pools
LEFT JOIN runs USING (run, rank, epoch)
QUALIFY capacity <> first_capacity OR capacity <> built_with
ORDER BY run, rank, seq, pool
