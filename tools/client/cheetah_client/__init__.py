"""Programs that work on a server as its clients: how they connect, and what they say."""
