"""What a replay answers: counts, effects of another rule, one HTML file."""
