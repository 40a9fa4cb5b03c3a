"""Importer of MJCF, URDF and SRDF with MuJoCo's compiler; `scene.add_mjcf` is the entry point."""
