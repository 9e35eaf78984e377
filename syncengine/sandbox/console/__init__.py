"""The sandbox's console page, which shows the team's data in a browser and posts time as a user does."""
