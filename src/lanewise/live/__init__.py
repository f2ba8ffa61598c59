"""A run watched in the browser while it runs: frames, feed, server, page."""
