-- Where nodes end: how many pages the path to each node has. A node keeps its end as long as it lives, whatever is cut.
--
-- Nodes over others from before the journal begins have no row.
-- kind: view 3
WITH RECURSIVE made AS (
    SELECT run, rank, epoch, node, arg_min(parent, seq) AS parent, arg_min(full_delta, seq) AS pages
    FROM node_changes
    GROUP BY run, rank, epoch, node
    HAVING arg_min(full_delta, seq) > 0
), ends AS (
    SELECT run, rank, epoch, node, pages AS end_pages FROM made WHERE parent = 0
    UNION ALL
    SELECT made.run, made.rank, made.epoch, made.node, end_pages + pages
    FROM made
    JOIN ends ON ends.run = made.run AND ends.rank = made.rank AND ends.epoch = made.epoch AND ends.node = made.parent
)
FROM ends
