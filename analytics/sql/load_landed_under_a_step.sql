-- Loads landed under a running step: pages were written on the device while a step could read or write the pools.
-- kind: check
SELECT
    copies.run, copies.rank, copies.epoch, copies.seq, transfer, node, number AS running_step, began_seq
FROM copies
JOIN steps
    ON steps.run = copies.run AND steps.rank = copies.rank AND steps.epoch = copies.epoch
    AND began_seq < copies.seq AND (ended_seq IS NULL OR ended_seq > copies.seq)
WHERE copies.event = 'LoadEnded' AND landed
ORDER BY copies.run, copies.rank, copies.seq
