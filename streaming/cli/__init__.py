"""The command `slackwater`: one file per group of commands, and the output functions."""
