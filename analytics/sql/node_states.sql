-- Node states: what each node was from `seq` until before `until_seq` (NULL: to the end).
--
-- A path is followed upwards by `parent`, at one sequence number. `full_pages` 0 is a node that has left, or, with
-- `host_pages`, a FULL tombstone. HOST pages count from the beginning of their copy on.
-- kind: view 2
SELECT
    run, rank, epoch, node, seq,
    lead(seq) OVER life AS until_seq,
    last_value(parent IGNORE NULLS) OVER so_far AS parent,
    sum(full_delta) OVER so_far AS full_pages,
    sum(swa_delta) OVER so_far AS swa_pages,
    sum(host_delta) OVER so_far AS host_pages
FROM node_changes
WINDOW
    life AS (PARTITION BY run, rank, epoch, node ORDER BY seq),
    so_far AS (life ROWS UNBOUNDED PRECEDING)
