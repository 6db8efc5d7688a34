"""Java and Spark's session: found, started, and reached beyond PySpark's public interface."""
