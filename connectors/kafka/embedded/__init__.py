"""An embedded broker, for tests and demonstrations: open, or behind TLS and logins."""
