"""What `deploy/` has, rendered, validated and run as far as it can be without a cluster."""
