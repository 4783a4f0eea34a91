"""HTTP: connections to the server, and the sockets below them."""
