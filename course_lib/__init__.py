"""Lockstep: how large language models are trained in parallel, run for real on a laptop."""
