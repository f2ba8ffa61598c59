"""A run watched in the browser while it goes on: frames, feed, server, page."""
