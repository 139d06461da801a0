"""What a worker shows to people: the data behind its web page, gathered in bounded memory, and the routes to it."""
