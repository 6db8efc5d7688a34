"""The past: judged again, compared with what was recorded, and written back."""
