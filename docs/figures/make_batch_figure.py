"""Makes batch.svg beside this file, from a simulation of some minutes: `python -m
docs.figures.make_batch_figure`."""

from __future__ import annotations

from docs.figures.make_figures import GREY, PLAIN, A, B, plt, save
from tests.bench.cluster_simulation import SHARDS_PER_SLOT, results


def batch() -> None:
    """Duration over ideal by the number of shards of a slot, for both ways of work, without and
    with losses."""
    figure, axis = plt.subplots(figsize=(5.2, 3.2))
    for (static, losses), outcomes in results().items():
        label = (
            f"{'static slots' if static else 'Dask'},"
            f" {'1 % of nodes lost an hour' if losses else 'no loss'}"
        )
        style = {
            "color": A if static else B,
            "linestyle": "-" if losses else "--",
            "marker": "o",
            "markersize": 3,
        }
        axis.plot(SHARDS_PER_SLOT, [one.overhead for one in outcomes], label=label, **style)
    axis.axhline(1.0, color=GREY, lw=0.8)
    axis.set_xscale("log", base=2)
    axis.set_xticks(SHARDS_PER_SLOT, [str(count) for count in SHARDS_PER_SLOT])
    axis.set_xlabel("shards a slot")
    axis.set_ylabel("duration over ideal")
    axis.legend(frameon=False)
    save(figure, "batch")


if __name__ == "__main__":
    with plt.rc_context(PLAIN):
        batch()
