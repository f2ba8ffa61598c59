"""From the final IR to source text: one file a target."""
