"""Ways to move frames between Dragoman and a peer. Nothing here knows what the frames mean."""
