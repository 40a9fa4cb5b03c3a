"""MJCF, URDF and SRDF through MuJoCo's compiler; `scene` is the door."""
