"""A contact set to look at: shapes as meshes, contacts as points and arrows, in a browser."""
