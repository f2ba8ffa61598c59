"""The search for continuous gravitational waves."""
