"""Read and compile a project's rules and their tests, and judge each change of a plan by the rules."""
