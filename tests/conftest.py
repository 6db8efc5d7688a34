"""Settings for all tests."""

from hypothesis import settings

settings.register_profile("slackwater", deadline=None)  # a busy machine is not a failed law
settings.load_profile("slackwater")
