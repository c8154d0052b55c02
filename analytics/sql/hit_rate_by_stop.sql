-- Hit rate by the reason why matches ended: end of the key, no child, diverged, a dead window, a forced miss.
--
-- `lost_to_window` are tokens that FULL had and the window behind them did not (R73, W19).
-- kind: report
SELECT
    run, rank, stop,
    count(*) AS requests,
    sum(prompt)::BIGINT AS prompt_tokens,
    sum(cached_prefix)::BIGINT AS cached_tokens,
    round(sum(cached_prefix) / sum(prompt), 4) AS hit_rate,
    sum(full_hit - hit)::BIGINT AS lost_to_window
FROM requests
GROUP BY ALL
ORDER BY run, rank, requests DESC, stop
