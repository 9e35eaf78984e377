"""Tests of rules and manifests: what was recorded, what is declared now → whether the plan is as expected."""
