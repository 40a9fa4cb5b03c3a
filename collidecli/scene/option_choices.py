"""The values of a run's options, separate from `run_options` so that the command line lists them without NumPy."""

BROAD_PHASES = ("auto", "nxn", "sap", "explicit")
PIPELINES = ("standard", "unified")
NARROW_PHASES = ("gjk", "mpr")
GAP_RULES = ("max", "sum")
CONTACT_FORMATS = (1, 2)
"""Major versions of the contact set format; the first is the default."""
COMPRESSIONS = ("gzip", "none", "lzf", "zstd")
FRAME_MATCHES = ("step", "time", "index")
EVENT_THINGS = ("shapes", "bodies", "particles")
EVENT_COLUMNS = {"shapes": ("shape0", "shape1"), "bodies": ("body0", "body1"), "particles": ("shape", "particle")}
"""Names of the columns that hold the two paths of a pair, by member of EVENT_THINGS."""
LABEL_THINGS = ("bodies", "shapes")
CLEARANCE_THINGS = ("pair", "body", "all")
EVENT_ORDERS = ("begin", "end", "duration", "depth", "contacts")
EXPORT_FORMATS = ("usd", "csv", "parquet", "npz", "newton", "genesis", "dart", "raisim", "mujoco", "jacobian")
GROUP_NAMES = (
    "hydro_patches", "hydro_faces", "soft_contacts", "self_contacts", "sweep", "soft_sweep", "self_sweep", "touches"
)  # fmt: skip
"""Tables of a contact set beside /rigid_contacts."""
SELF_COLLISIONS = ("on", "off")
REDUCE_PAIRS = ("meshes", "all")
DEFAULT_BETAS = (10.0, -0.5)
MOST_BETAS = 8
CHART_KINDS = (
    "contacts", "depth", "pairs", "pair-depths", "depths", "areas", "forces", "pressures", "particles", "stages",
    "phases", "differences", "deviations",
)  # fmt: skip
CHART_FORMATS = ("png", "svg")
CHART_THEMES = ("light", "dark")
HYDRO_CHOICES = ("off", "authored", "all")
HYDRO_FALLBACKS = ("point", "refuse")
SOFT_ELEMENTS = ("vertices", "all")
