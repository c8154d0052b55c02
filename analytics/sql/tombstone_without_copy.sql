-- FULL tombstones without a copy: a node that is neither on the device nor on the host stayed in the tree.
--
-- What lies below it can never be reached. `seq` is the event that took its last pages.
-- kind: check
WITH states AS (
    SELECT node_states.*, event, cause, lead(event) OVER life AS next_event
    FROM node_states
    JOIN (SELECT run, rank, epoch, node, seq, event, cause FROM node_changes) USING (run, rank, epoch, node, seq)
    WINDOW life AS (PARTITION BY run, rank, epoch, node ORDER BY seq)
)
SELECT run, rank, epoch, node, states.seq, event, cause
FROM states
JOIN books USING (run, rank, epoch)
WHERE opened_seq IS NOT NULL AND gaps IS NULL AND full_pages <= 0 AND host_pages <= 0
    AND event <> 'Removed' AND next_event IS DISTINCT FROM 'Removed'
ORDER BY run, rank, seq
