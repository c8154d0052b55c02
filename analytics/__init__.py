"""What it means over many runs: journals as DuckDB tables and Parquet files, and the questions in SQL.

Rule: a second opinion is worth something only if it shares no code with the first, so this
package imports `journal` and never `cache`.
"""
