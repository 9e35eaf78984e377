"""The long-running connector: reconcile on an interval, deliver posted time, report health, answer probes."""
