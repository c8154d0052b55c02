-- Admissions out of line: a request that is live was admitted again, has nothing to compute, or starts on a path it does not lock.
--
-- One token of a prompt at least is left to compute (E9), and the lock of the path is the next event (R137, R144).
-- kind: check
WITH lives AS (
    SELECT
        run, rank, epoch, request, rid, admitted_seq, ended_seq,
        lag(coalesce(ended_seq, 9223372036854775807)) OVER (PARTITION BY run, rank, epoch, rid ORDER BY admitted_seq) AS before_ended_seq
    FROM requests
), unlocked AS (
    SELECT admissions.run, admissions.rank, admissions.epoch, admissions.seq, admissions.request, admissions.rid
    FROM admissions
    LEFT JOIN lock_changes
        ON lock_changes.run = admissions.run AND lock_changes.rank = admissions.rank
        AND lock_changes.seq = admissions.seq + 1 AND lock_changes.node = admissions.node
        AND lock_changes.request = admissions.request AND lock_changes.event = 'Locked'
    WHERE admissions.node <> 0 AND lock_changes.seq IS NULL
)
SELECT run, rank, epoch, admitted_seq AS seq, request, rid, 'live already' AS fault FROM lives WHERE before_ended_seq > admitted_seq
UNION ALL
SELECT run, rank, epoch, seq, request, rid, 'nothing to compute' FROM admissions WHERE prefix >= prompt
UNION ALL
SELECT run, rank, epoch, seq, request, rid, 'its path is not locked' FROM unlocked
ORDER BY run, rank, seq
