"""Rules of a project and their tests: files → compiled rules, and what they say of each change of a plan."""
