"""Values of the options of all verbs: choices, defaults, limits. It imports nothing."""

BROAD_PHASES = ("auto", "nxn", "sap", "explicit")
GAP_RULES = ("max", "sum")
DEFAULT_GAP = 0.1
"""Gap of shapes without an own one [m]."""
CONTACT_FORMATS = (1, 2)
"""Major versions of the contact set format; the first is the default."""
COMPRESSIONS = ("gzip", "none", "lzf", "zstd")
FRAME_MATCHES = ("step", "time", "index")
EVENT_THINGS = ("shapes", "bodies", "particles")
EVENT_COLUMNS = {
    "shapes": ("shape0", "shape1"),
    "bodies": ("body0", "body1"),
    "particles": ("shape", "particle"),
}
"""Names of the columns that hold the two paths of a pair, by member of EVENT_THINGS."""
LABEL_THINGS = ("bodies", "shapes")
CLEARANCE_THINGS = ("pair", "body", "all")
EVENT_ORDERS = ("begin", "end", "duration", "depth", "contacts")
LOG_FORMATS = ("mujoco", "newton", "dart", "genesis", "raisim")
IMPORT_SOURCES = ("rows", *LOG_FORMATS)
GROUP_NAMES = (
    "hydro_patches",
    "hydro_faces",
    "soft_contacts",
    "self_contacts",
    "sweep",
    "soft_sweep",
    "self_sweep",
    "touches",
    "candidates",
)
"""Tables of a contact set beside /rigid_contacts."""
SELF_COLLISIONS = ("on", "off")
LEGACY_MARGIN = "legacy"
MJCF_MARGINS = ("included", LEGACY_MARGIN)
"""Meanings of MuJoCo's margin and gap, see `importers.mujoco_margins`."""
SDF_MESH = "sdf"
MESH_COLLIDERS = ("exact", "hull", "parts", SDF_MESH)
"""Colliders of a mesh that `meshes` chooses, see `scene.mesh_choices`."""
DEFAULT_BETAS = (10.0, -0.5)
MOST_BETAS = 8
CHART_KINDS = (
    "contacts",
    "depth",
    "pairs",
    "pair-depths",
    "depths",
    "areas",
    "forces",
    "pressures",
    "particles",
    "stages",
    "phases",
    "differences",
    "deviations",
)
SENSOR_CHARTS = ("touching", "count", "distance", "force")
"""What a chart of sensors shows."""
CHART_FORMATS = ("png", "svg")
CHART_THEMES = ("light", "dark")
HYDRO_CHOICES = ("off", "authored", "all")
HYDRO_FALLBACKS = ("point", "refuse")
DEFAULT_STIFFNESS = 1.0e10
"""Of hydroelastic shapes without their own; Newton's default [N/m^3]."""
DEFAULT_RESOLUTION = 64
"""Voxels along the longest side of a hydroelastic shape."""
LEAST_RESOLUTION = 4
RESOLUTION_LIMIT = 512


GROUND = "ground"
"""Name of the plane that the option `ground` adds."""
DEFAULT_CACHE_LIMIT = 1 << 30
DEFAULT_RINGS = 1
MOST_RINGS = 16
DEFAULT_SWEEP_TOLERANCE = 1e-6
