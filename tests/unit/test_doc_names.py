"""Names in backticks of the pages and records, and modules and files of the package in every text,
exist."""

import re
from pathlib import Path

import pytest

from tests.support import doc_names
from tests.support.doc_names import (
    FIRST_CELL,
    ROOT,
    SPAN,
    WORD,
    missing,
    missing_of_package,
    pages,
    texts,
    without_other_systems,
)

ELSEWHERE = {
    # Placeholders of names that a reader chooses or that have no fixed value.
    *("NN_name/", "NNNN", "EPS"),
    # Other programs: Slurm, NFS and the C library, QEMU, OpenUSD's viewer, browsers and shells.
    *("requeue", "scancel", "scontrol", "flock", "nolock", "malloc", "qemu", "EPYC", "usdview"),
    *("NO_COLOR", "chrome", "tmp"),
    # Variables of tests/gpu/first.sh, attributes of CUDA's kernels.
    *("PREBUILD", "SECONDS_OF_RUN", "__launch_bounds__", "__maxnreg__"),
    # Fields of Kubernetes' and Argo's manifests, an option of DuckDB.
    *("backoffLimitPerIndex", "retryStrategy", "union_by_name"),
    # Names of LeRobot's robots and of models of them, of ManiSkill's actors.
    *("use_degrees", "so101_new_calib", "so101_old_calib", "goal_site"),
    # Functions of Hugging Face's datasets, Ray, Pebble, Newton, Isaac Lab, Warp and MuJoCo's C.
    *(
        "datasets.load_dataset",
        "load_dataset",
        "max_errored_blocks",
        "ProcessPool",
        "pool/process.py",
    ),
    *(
        "maybe_stop_worker",
        "mc_edge_clamp_min",
        "filter_collisions",
        "add_builtin",
        "register_count",
    ),
    *("mju_makeFrame", "mj_contactParam", "sensorPeriod"),
    # Packages that others need, a robot of gymnasium-robotics, the tag of a wheel.
    *("absl", "etils", "importlib_resources", "typing_extensions", "zipp", "websockets"),
    *("adroit_hand/F2.stl", "py3"),
    # Names of the scenes and topics that a page's sentence is about.
    "camera/image_raw",
    *("ee_x", "ee_qw", "cube_qw"),
    *("box_on_plane", "minus3", "__Prototype_1", "p_TX"),
    *("World/Env_0", "World/Env_1"),
    # Titles of columns of the reader's tables, readers of BVH that were not chosen.
    *("q_knee", "dq_knee"),
    *("pos_elbow", "q_elbow", "elbow_dof", "elbow_meas", "elbow_vel", "effort_elbow", "imu_"),
    *("elbow_cmd", "target_elbow", "elbow_rad", "finger", "timestamp_ns", "base_qw"),
    *("root_translateX", "bvhio", "pybvh"),
    # Elements of URDF of other programs, a schema of OpenUSD, a way that was not chosen.
    *("gazebo", "ros2_control", "UsdGeomSubset", "trigger_contacts"),
}


@pytest.mark.rest
def test_every_name_of_the_pages_exists():
    texts = [(path, path.read_text(encoding="utf-8")) for path in pages()]
    named = [(path, without_other_systems(path, text)) for path, text in texts]
    found = [(path, *each) for path, text in named for each in missing(text)]
    absent = [
        f"{path.relative_to(ROOT)}:{line}: `{word}` exists nowhere"
        for path, line, word in found
        if word not in ELSEWHERE
    ]
    assert not absent, "\n".join(absent)
    unused = ELSEWHERE.difference(word for _, _, word in found)
    assert not unused, f"exceptions that no page needs: {sorted(unused)}"


@pytest.mark.rest
def test_names_of_newton_are_those_of_the_installed_newton():
    newton = pytest.importorskip("newton")
    sources = Path(newton.__file__).parent.rglob("*.py")
    words = {word for path in sources for word in WORD.findall(path.read_text(encoding="utf-8"))}
    page = (ROOT / "docs/reference/from-newton.md").read_text(encoding="utf-8")
    current, _, _ = page.partition("\n## Names of older documents")
    cells = [span[2] for cell in FIRST_CELL.findall(current) for span in SPAN.finditer(cell)]
    named = {word for cell in cells for word in WORD.findall(cell)}
    assert len(named) > 60
    assert not named - words


INVENTED = {"collidecli.engine.test", "collidecli.no_such_name"}
"""Names of tests of what happens with such a name."""


@pytest.mark.rest
def test_every_module_that_a_text_names_exists():
    read = [(path, path.read_text(encoding="utf-8")) for path in texts()]
    found = [(path, *each) for path, text in read for each in missing_of_package(text)]
    absent = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path, line, name in found
        if name not in INVENTED and path != Path(__file__)
    ]
    assert len(read) > 1000
    assert not absent, "\n".join(absent)


GONE = """
python -m collidecli.engine.build_kernels, collidecli.engine.runtime.loader
import_module("collidecli.pages.several_inputs.list_table"), "collidecli.pages.several_inputs.list_tables"
collidecli.ContactSet.open, collidecli.ContactSet.shut_all, collidecli.Contactset
collidecli.engine.*, collidecli/engine/pipeline.py, collidecli/engine/kernel_sums.py
collidecli/verbs/run, collidecli/houses, see collidecli.wording.
"""


def test_names_of_the_package_that_do_not_exist_are_found():
    assert missing_of_package(GONE) == [
        (2, "collidecli.engine.runtime.loader"),
        (3, "collidecli.pages.several_inputs.list_tables"),
        (4, "collidecli.ContactSet.shut_all"),
        (4, "collidecli.Contactset"),
        (5, "collidecli/engine/kernel_sums.py"),
        (6, "collidecli/houses"),
    ]


STALE = """# A page

`collide` has `engine/geometry/hulls.py`, `HullFaces.nothing` and `kernel_sums.py`.
`sweep_and_prune.lanes_that_overlap` is in another module, `collidecli/engine/contacts/` is
no folder, `NUDGED_BY` no constant, and `collide_sphere_<shape>` begins a name.

```
collidecli/
  engine/   runtime/ contacts/, lane_overlaps
```

```python
made_by_the_example = 1
```

`made_by_the_example` is the page's own.
"""


def test_names_that_exist_nowhere_are_found_with_their_lines():
    assert missing(STALE) == [
        (3, "HullFaces.nothing"),
        (3, "kernel_sums.py"),
        (4, "collidecli/engine/contacts/"),
        (4, "sweep_and_prune.lanes_that_overlap"),
        (5, "NUDGED_BY"),
        (9, "contacts/"),
        (9, "lane_overlaps"),
    ]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/explanation/architecture.md"])
def test_a_layout_has_every_folder(page):
    blocks = doc_names.BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    (layout,) = (body for _, body in blocks if "collidecli/\n" in body)
    for folder in ("collidecli", "tests"):
        for path in (ROOT / folder).iterdir():
            if path.is_dir() and path.name not in doc_names.GENERATED:
                assert re.search(rf"\b{path.name}/", layout), path.name
