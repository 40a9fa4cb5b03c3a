"""Least signed distances without a cutoff: of pairs of shapes, surfaces of triangles and points."""
