"""Style of charts: colours by role, two widths, output as SVG of a page or as files. Matplotlib is
optional."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from collidecli.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDE = 920
NARROW = 320
ROLES = ("ink", "muted", "grid", "paper", "accent", "warm", "third")
_COLOURS = {
    "light": ("#1b2530", "#5b6876", "#e2e7ec", "#ffffff", "#2b6cb0", "#c05621", "#2f855a"),
    "dark": ("#e8edf2", "#9fadbb", "#2d3742", "#151b22", "#63a4e6", "#ed9160", "#68c392"),
}
THEMES = {
    theme: dict[str, str](zip(ROLES, colours, strict=True)) for theme, colours in _COLOURS.items()
}
PAGE = {role: f"#0000{n:02x}" for n, role in enumerate(ROLES, 1)}
"""Placeholders that a page replaces by CSS variables, so that one chart has a light and a dark
theme."""
MAP_COLOUR = (0.25, 0.52, 0.80)
"""Colour of maps on any background; a value is shown by the opacity."""
LEAST_OPACITY = 0.14
"""Least opacity of a field of a map that is not empty."""
DPI = 72.0
"""An inch of the figure is 72 units of its SVG, so that font sizes are pixels of the page."""


@dataclass(frozen=True)
class Hover:
    """A text for a rectangle of a chart. x: range in the data of the axes, None for the labels to
    their left."""

    axes: Axes
    x: tuple[float, float] | None
    y: tuple[float, float]
    text: str

    def element(self, height: float) -> str:
        """A transparent SVG element with the text as its title. height: of the figure [px]."""
        left, right = self.x or (0.0, 0.0)
        (x0, y0), (x1, y1) = self.axes.transData.transform(
            [(left, self.y[0]), (right, self.y[1])]
        ).tolist()
        if self.x is None:
            x0, x1 = 0.0, self.axes.bbox.x0
        low, high = sorted((y0, y1))
        path = f"M{x0:.1f} {height - high:.1f}h{x1 - x0:.1f}v{high - low:.1f}H{x0:.1f}z"
        return f'<path d="{path}"><title>{escape(self.text)}</title></path>'


@dataclass(frozen=True)
class Canvas:
    """Width [px] and colours by role of a chart. hovers: texts that an SVG shows on hover, added
    while it is drawn."""

    width: int
    colours: dict[str, str]
    hovers: list[Hover] = field(default_factory=list)

    @property
    def narrow(self) -> bool:
        """Whether the chart is for a phone."""
        return self.width < 600

    @property
    def in_page(self) -> bool:
        """Whether the chart is on a page, which has a heading for it."""
        return self.colours is PAGE

    @property
    def font(self) -> float:
        """Size of the font [px]."""
        return 11.0 if self.narrow else 12.5

    @property
    def label_length(self) -> int:
        """Longest label of a pair [characters]."""
        return 26 if self.narrow else 44

    def figure(self, height: int) -> Figure:
        """An empty figure of this width and height [px]."""
        from matplotlib.figure import Figure

        return Figure(
            figsize=(self.width / DPI, height / DPI),
            dpi=DPI,
            facecolor="none",
            layout="constrained",
        )

    def axes(self, height: int, grid: str = "y") -> tuple[Figure, Axes]:
        """A figure with one plain pair of axes."""
        figure = self.figure(height)
        axes = figure.add_subplot()
        self.plain(axes, grid)
        return figure, axes

    def plain(self, axes: Axes, grid: str = "y") -> None:
        """Removes the frame and the tick marks; adds a faint grid along one direction."""
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_facecolor("none")
        axes.tick_params(length=0, colors=self.colours["muted"], labelsize=self.font - 1.0, pad=5)
        axes.tick_params(axis="x", pad=8)
        axes.xaxis.label.set_color(self.colours["muted"])
        axes.yaxis.label.set_color(self.colours["muted"])
        if grid:
            axes.grid(axis=grid, color=self.colours["grid"], linewidth=1.0)  # pyright: ignore[reportArgumentType]
        axes.set_axisbelow(True)

    def legend(self, axes: Axes, columns: int) -> None:
        """Adds a legend above the axes; see `above`."""
        place = self.above(axes)
        space = {"handlelength": 1.0, "columnspacing": 1.2, "borderaxespad": 0.0, "borderpad": 0.3}
        text = {"fontsize": self.font - 0.5, "labelcolor": self.colours["muted"]}
        axes.legend(loc="lower left", ncols=columns, frameon=False, **place, **space, **text)

    def above(self, axes: Axes) -> dict[str, Any]:
        """Place of a legend's lower left corner: above the axes at their left; on a phone at the
        left of the figure, to avoid clipping."""
        from matplotlib.transforms import blended_transform_factory

        left = axes.figure.transFigure if self.narrow else axes.transAxes
        return {
            "bbox_to_anchor": (0.0, 1.0),
            "bbox_transform": blended_transform_factory(left, axes.transAxes),
        }

    def hover(
        self, axes: Axes, x: tuple[float, float] | None, y: tuple[float, float], text: str
    ) -> None:
        """Adds a text for a rectangle; see `Hover`. A phone, which has no pointer, gets none."""
        if not self.narrow:
            self.hovers.append(Hover(axes, x, y, text))

    def title(self, axes: Axes, words: str) -> None:
        """Adds a small title above the axes at their left."""
        axes.set_title(
            words, loc="left", fontsize=self.font - 0.5, color=self.colours["muted"], pad=8
        )


@contextmanager
def drawing() -> Iterator[None]:
    """Matplotlib settings for reproducible output, restored at the end. Raises InputError without
    matplotlib."""
    settings = {
        "svg.fonttype": "none",
        "svg.hashsalt": "collide",
        "font.family": ["DejaVu Sans"],
        "font.size": 12.0,
        "text.parse_math": False,
        "axes.unicode_minus": True,
        "path.simplify": True,
    }
    with require_matplotlib().rc_context(settings), warnings.catch_warnings():
        # A browser has other fonts for the characters of an SVG; a PNG has a box for them.
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)
        yield


def require_matplotlib() -> Any:
    """The module matplotlib. Raises InputError with the install command if it is missing."""
    try:
        import matplotlib
    except ImportError as error:
        raise InputError("charts need matplotlib", "", "pip install 'collidecli[plots]'") from error
    return matplotlib


def with_hovers(text: str, figure: Figure, hovers: Sequence[Hover]) -> str:
    """An SVG with elements that show texts on hover."""
    if not hovers:
        return text
    elements = "".join(hover.element(figure.bbox.height) for hover in hovers)
    end = text.rindex("</svg>")
    return f'{text[:end]}<g class="hover" fill="transparent">{elements}</g>{text[end:]}'
