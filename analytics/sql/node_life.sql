-- One node's life: every event that made, cut, tombstoned, healed or removed it, with the pages it gained or lost.
-- kind: report
-- set node BIGINT: the node's number
-- set rank INTEGER = 0: the rank that the node belongs to
SELECT run, rank, epoch, seq, step, event, cause, request, parent, full_delta, swa_delta, host_delta
FROM node_changes
WHERE node = getvariable('node') AND rank = getvariable('rank')
ORDER BY run, rank, seq
