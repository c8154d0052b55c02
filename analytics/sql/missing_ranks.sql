-- Missing ranks: an `Opened` says that its run has more ranks than are here, so that nothing is known of the others.
--
-- The likeliest way to overlook what is wrong: the journals of one host were not collected, or not loaded. `missing_rank` is not here, and
-- event `seq` of `rank` says that it should be. A number that no run has is not believed; `opening_out_of_bounds` may tell of it.
-- kind: check anywhere
WITH told AS (
    SELECT run, ranks, rank AS told_by, epoch, seq
    FROM openings
    WHERE ranks BETWEEN 1 AND 65536
    QUALIFY row_number() OVER (PARTITION BY run ORDER BY ranks DESC, rank, seq) = 1
), expected AS (
    SELECT run, unnest(range(ranks::BIGINT)) AS rank, ranks, told_by, epoch, seq
    FROM told
)
SELECT run, rank AS missing_rank, ranks, told_by AS rank, epoch, seq
FROM expected
ANTI JOIN loads USING (run, rank)
ORDER BY run, missing_rank
