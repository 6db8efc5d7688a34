"""The command `slackwater`: what all its commands share."""
