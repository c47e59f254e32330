"""How is kb reached from outside? A server over HTTP or its socket, the homes here by a program."""
