"""Ways to move bytes between Dragoman and a peer. Nothing here knows what the bytes mean."""
