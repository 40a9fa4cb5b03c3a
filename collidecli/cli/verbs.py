"""The table of verbs: to remove a verb, delete its folder and its row; to add one, add both."""

from __future__ import annotations

from typing import NamedTuple

COMPUTE = "Compute"
LOOK = "Look"
COMPARE = "Compare"
DATA_SETS = "Data sets"
ENGINES = "Engines"
FILES = "Files"
HELP = "help"
"""The word before a verb in `collide help VERB`; no verb has this name."""


class VerbFolder(NamedTuple):
    """A folder that a verb writes, which stands for its contact sets where files are named.

    file: by which it is recognised. module: of `collidecli.verbs`, with the function
    `contact_sets(folder, warn)`, which returns the files.
    """

    file: str
    module: str


class VerbRow(NamedTuple):
    """A verb.

    name: on the command line. module: of `collidecli.verbs`, with the command `verb`, imported only
    when it is called. group: of VERBS in `collide --help`. summary: one line. folder: that it
    writes.
    """

    name: str
    module: str
    group: str
    summary: str
    folder: VerbFolder | None = None


ROWS = (
    VerbRow(
        "run",
        "run.command",
        COMPUTE,
        "Find every contact of a scene in motion, in every frame of every world.",
    ),
    VerbRow(
        "audit",
        "audit.command",
        COMPUTE,
        "Check the penetrations of a motion against limits; which frames can be used.",
    ),
    VerbRow(
        "clearance",
        "clearance.command",
        COMPUTE,
        "Measure how near shapes come in every frame, without a cutoff.",
    ),
    VerbRow(
        "probe",
        "probe.command",
        COMPUTE,
        "Measure contact maps of bodies, distances of points and rays in every frame.",
    ),
    VerbRow(
        "matrix",
        "matrix.command",
        COMPUTE,
        "Find which links of a robot never, always or at rest touch, and write them as filters.",
    ),
    VerbRow(
        "profile",
        "profile.command",
        COMPUTE,
        "Time every broad phase on one motion, and recommend one.",
    ),
    VerbRow(
        "record",
        "record.command",
        COMPUTE,
        "Simulate an MJCF or URDF scene in MuJoCo and record its motion.",
    ),
    VerbRow(
        "inspect",
        "inspect.command",
        LOOK,
        "Show the contents of a scene, a recording or a contact set.",
    ),
    VerbRow(
        "events",
        "events.command",
        LOOK,
        "List when pairs begin and stop touching, and how deep they get.",
    ),
    VerbRow(
        "report",
        "report.command",
        LOOK,
        "Write an HTML page about a contact set: pairs, depths, timing, differences.",
    ),
    VerbRow("plot", "plot.command", LOOK, "Draw one chart of a contact set, as PNG or SVG."),
    VerbRow(
        "view", "view.command", LOOK, "Show scene, motion and contacts in a browser or in Rerun."
    ),
    VerbRow(
        "diff",
        "diff.command",
        COMPARE,
        "Compare two contact sets: what is missing, extra or changed.",
    ),
    VerbRow(
        "textconv",
        "textconv.command",
        COMPARE,
        "Print a contact set as text, so that git diff shows its changes.",
    ),
    VerbRow(
        "batch",
        "batch.command",
        DATA_SETS,
        "Run many recordings: plan, compute on many processes or machines, gather.",
        VerbFolder("plan.parquet", "batch.set_files"),
    ),
    VerbRow(
        "label",
        "label.command",
        DATA_SETS,
        "List which bodies touch, and write dense labels of every frame: Parquet, NPZ, HDF5.",
    ),
    VerbRow(
        "merge", "merge.command", DATA_SETS, "Merge contact sets of disjoint frames or worlds."
    ),
    VerbRow(
        "import",
        "import_.command",
        ENGINES,
        "Write contacts of another engine, or logged by a simulation, as a contact set.",
    ),
    VerbRow(
        "engine",
        "engine.command",
        ENGINES,
        "Write a motion as a problem for other collision engines: collide engine pack.",
    ),
    VerbRow(
        "fidelity",
        "fidelity.command",
        ENGINES,
        "Hold other engines' contacts of a motion against exact distances.",
    ),
    VerbRow(
        "check",
        "check.command",
        FILES,
        "Check that a contact set or a trajectory is well formed and complete.",
    ),
    VerbRow(
        "export",
        "export.command",
        FILES,
        "Write a contact set for other programs: USD, CSV, Parquet, NPZ, simulator layouts.",
    ),
    VerbRow(
        "traj",
        "traj.command",
        FILES,
        "Convert a recording of any known kind to a trajectory: collide traj convert.",
    ),
    VerbRow(
        "cache",
        "cache.command",
        FILES,
        "Show or clear the cache of signed distance fields, hulls and convex parts.",
    ),
    VerbRow(
        "completion",
        "completion",
        FILES,
        "Print the script that completes verbs and options in bash, zsh or fish.",
    ),
)
VERBS = {row.name: row for row in ROWS}
