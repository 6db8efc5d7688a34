"""What a hub shows of itself: page and metrics, log, traces, lineage, and the watchdog."""
