"""A column's value in PostgreSQL and on the wire, and which types can be carried."""
