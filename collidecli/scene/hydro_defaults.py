"""Defaults and limits of hydroelastic contacts."""

DEFAULT_STIFFNESS = 1.0e10
"""Of shapes without their own; Newton's default [N/m^3]."""
DEFAULT_RESOLUTION = 64
"""Voxels along the longest side of a shape."""
LEAST_RESOLUTION = 4
RESOLUTION_LIMIT = 512
VOXELS_ACROSS = 4.0
"""Voxels across the shortest side of a shape's box, or more."""
HALVINGS_OF_MESHES = 4
"""Halvings of a voxel of meshes and heightfields, whose bounds are loose, where many blocks are left."""
