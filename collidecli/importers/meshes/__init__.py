"""Meshes: files that a user names, and what other libraries make of triangles."""
