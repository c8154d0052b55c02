-- Unread pages given up: the FULL pages of a node went while a backup had still to read them on the device.
--
-- What is read afterwards is somebody else's, and lands on the host under the wrong key (B19). The backup is the last
-- one that began for the node; from `Gathered` on its FULL pages may go.
-- kind: check
WITH given AS (
    SELECT run, rank, epoch, node, seq, event, cause
    FROM node_changes
    WHERE event IN ('Demoted', 'Removed') AND full_delta < 0
), begun AS (
    SELECT run, rank, epoch, node, transfer, seq AS begun_seq
    FROM copies
    WHERE event = 'BackupBegun'
), gathered AS (
    SELECT run, rank, epoch, transfer, min(seq) AS gathered_seq
    FROM copies
    WHERE event IN ('Gathered', 'BackupEnded')
    GROUP BY ALL
)
SELECT given.run, given.rank, given.epoch, given.node, given.seq, given.event, given.cause, begun.transfer, begun_seq, gathered_seq
FROM given
ASOF JOIN begun
    ON given.run = begun.run AND given.rank = begun.rank AND given.epoch = begun.epoch AND given.node = begun.node
    AND given.seq > begun.begun_seq
LEFT JOIN gathered
    ON gathered.run = begun.run AND gathered.rank = begun.rank AND gathered.epoch = begun.epoch
    AND gathered.transfer = begun.transfer
WHERE coalesce(gathered_seq > given.seq, true)
ORDER BY given.run, given.rank, given.seq
