-- Nodes, one row for each: when it came, was cut, lost and got back its window, and left.
--
-- `created_by` is `Transferred` for a leaf that a request gave, `Split` for the upper part of a node that was cut.
-- Page counts are those of now; `live` says whether the node has its SWA pages.
-- kind: view 2
SELECT
    run, rank, epoch, node,
    min(seq) AS created_seq,
    arg_min(step, seq) AS created_step,
    arg_min(event, seq) AS created_by,
    arg_min_null(request, seq) AS created_for,
    arg_max(parent, seq) AS parent,
    count(*) FILTER (event = 'Split' AND full_delta < 0) AS splits,
    max(seq) FILTER (event = 'Split' AND full_delta < 0) AS split_seq,
    count(*) FILTER (event = 'Tombstoned') AS tombstones,
    max(seq) FILTER (event = 'Tombstoned') AS tombstoned_seq,
    count(*) FILTER (event = 'Healed') AS heals,
    max(seq) FILTER (event = 'Healed') AS healed_seq,
    max(seq) FILTER (event = 'Removed') AS removed_seq,
    max(step) FILTER (event = 'Removed') AS removed_step,
    arg_max(cause, seq) FILTER (event = 'Removed') AS removed_cause,
    sum(full_delta)::BIGINT AS full_pages,
    sum(swa_delta)::BIGINT AS swa_pages,
    sum(host_delta)::BIGINT AS host_pages,
    sum(swa_delta) > 0 AS live
FROM node_changes
GROUP BY ALL
