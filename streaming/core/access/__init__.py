"""Who may reach what: ports, rights on topics, secrets, and where a state is."""
