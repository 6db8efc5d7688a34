"""Random tracked rows: few tables, incarnations and keys, so that they meet often."""

from hypothesis import strategies as st

from streaming.core.tracking.entry import HubPosition, TrackedRow

positions = st.builds(HubPosition, st.integers(1, 12), st.integers(0, 2))
tracked_rows = st.builds(
    TrackedRow,
    st.sampled_from(("t", "u")),
    st.integers(1, 2),
    st.sampled_from(('{"k":"a"}', '{"k":"b"}', '{"k":"c"}')),
    positions,
)
logs_of_rows = st.lists(tracked_rows, max_size=12).map(tuple)
