"""Viewer of contact sets in a browser: shapes as meshes, contacts as points and arrows."""
