"""Grafana's dashboards as code: each module says what a board shows, `render` makes its JSON."""
