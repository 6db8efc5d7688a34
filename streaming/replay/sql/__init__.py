"""SQL over all tables as of a hub epoch: by DuckDB, or by Spark."""
