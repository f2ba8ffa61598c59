"""Pictures of bodies and of how well their energy was kept."""
