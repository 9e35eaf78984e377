"""The sandbox's page in a browser: a team's console, and posting time as a user does."""
