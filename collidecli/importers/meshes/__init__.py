"""Mesh files, and approximations of meshes by other libraries."""
