"""Errors: what is not an expected outcome."""


class HubError(Exception):
    """The base of all of Slackwater's errors; its text states what is wrong and what to do."""


class ConfigError(HubError):
    """The configuration cannot be used as it is."""


class FunctionError(HubError):
    """A conflict function is unknown, lacks its argument, or cannot be loaded."""


class OvertakenError(HubError):
    """Another hub has taken over the state; this one must exit and publish nothing more."""


class StateError(HubError):
    """The stored state contradicts itself or was written by a newer format."""


class SourceError(HubError):
    """A topic is missing, has the wrong shape, or delivered other offsets than it should."""


class PublishError(HubError):
    """A record could not be delivered to an updates topic; nothing after it was sent."""


class WireError(HubError):
    """A record does not follow the wire format; the text names the field."""


class CsnError(HubError):
    """A text is not a CSN, or a CSN is too far ahead of the clock to follow."""


class RuvError(HubError):
    """A text is not an element of a RUV."""


class QuestionError(HubError):
    """What is asked of the history cannot be answered: no such hub epoch, CSN, time or row."""
