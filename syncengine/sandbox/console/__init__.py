"""The console page of the sandbox: what a team's console shows, and posting time as a user does."""
