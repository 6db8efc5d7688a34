"""Headers of packets as tests need them: right in every member, each member to be replaced."""

from hypothesis import strategies as st

from connectors.packets.header import ChangesHeader, Got, UpdatesHeader

OUTBOX = "7d3f1c52-9f6e-4a53-9a53-0f3b8a3f6d11"
CSN = "65e0f1c0000000020000"
HASH = "3f" * 32

UPDATES = UpdatesHeader(
    replicageneration="5f00",
    hub=9,
    agreement="to-lisbon",
    rid=2,
    generation=1,
    session="s1",
    number=12,
    row_before={"berlin": 912, "lisbon": 504},
    row_after={"berlin": 950, "lisbon": 504},
    first_prev=40,
    last_hub_epoch=44,
    got=Got(OUTBOX, 17, CSN, 3, 8),
)
CHANGES = ChangesHeader("5f00", "lisbon", 2, OUTBOX, 17, 17, HASH, opno=504, covers=44)

names = st.text(min_size=1, max_size=20)
numbers = st.integers(0, 2**63 - 1)
rows = st.dictionaries(names, numbers, max_size=5)
gots = st.builds(Got, names, numbers, st.sampled_from(["", CSN]), numbers, numbers)
updates = st.builds(
    UpdatesHeader,
    *(names, numbers, names, numbers, numbers, st.none() | names, numbers, rows, rows),
    *(st.none() | numbers, st.none() | numbers, st.none() | gots),
)
changes = st.builds(
    lambda generation, replica, rid, outbox, base, opno, covers: ChangesHeader(
        generation, replica, rid, outbox, base, base, HASH if base else None, opno, covers
    ),
    *(st.none() | names, names, numbers, names, st.integers(0, 2**40), numbers, numbers),
)
