"""Tests with several machines on one state, and of the files in docs/deployment."""
