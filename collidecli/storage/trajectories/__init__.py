"""Trajectories of the format collide-trajectory: header, writer, reader, validation."""
