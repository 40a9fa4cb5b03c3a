"""Trajectories of our own format: header, writer, motion, checks."""
