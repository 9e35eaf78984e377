"""Tests of comments on pull requests, with imitations of GitHub and GitLab."""
