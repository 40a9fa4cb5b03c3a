"""Colliders in closed form, a file for each type of the first shape."""
