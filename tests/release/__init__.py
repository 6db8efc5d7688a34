"""A release, built, installed and run where nothing else is: `make test-release`, not the gate."""
