"""The colours of the pages that commands write, by what a reader's system prefers."""

COLOURS = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --text: #16222a; --soft: #4c5c66; --line: #b6c2c8; --box: #ffffff;
  --verdict: #fdf3c4; --recorded: #6d8a8f; --replayed: #c4511a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #10181d; --text: #e4ecef; --soft: #a9bac3; --line: #4a5c66; --box: #182329;
    --verdict: #4a3a0c; --recorded: #8fb0b6; --replayed: #f08a4b;
  }
}
body { background: var(--page); color: var(--text); }
"""
"""Custom properties, light and dark, and the page in them."""
