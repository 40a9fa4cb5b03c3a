"""The section of a report about labels."""

from __future__ import annotations

from typing import Any

from collidecli.pages.parts import columns_table, part, section
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Column
from collidecli.verbs.label.chart import is_of_sensors
from collidecli.verbs.label.sensor_tables import sensor_columns
from collidecli.verbs.label.tables import label_columns, label_rule
from collidecli.wording import plural


def labels_section(result: ResultDict) -> dict[str, Any]:
    """The map of labels over time, and a table of them, of collide.label/1 or collide.sensors/1."""
    options = result["options"]
    per_bin = result["series"]["frames_per_bin"]
    lead = f"{plural(result['labelled'], 'label')}, {label_rule(options)}"
    lead += f"; a column is {plural(per_bin, 'frame')}." if per_bin > 1 else "."
    if is_of_sensors(result):
        if len(result["listed"]) < result["shape"]["sensors"]:
            of_all = plural(result["shape"]["sensors"], "sensor")
            lead += f" The first {len(result['listed'])} of {of_all} are shown."
        table = columns_table("Sensors", sensor_columns(result["options"]), result["listed"])
        parts = [part(table=table)] if result["listed"] else []
        return section("labels", "Sensors", part(chart="labels"), *parts, lead=lead)
    if len(result["listed"]) < result["pairs"]:
        lead += f" {len(result['listed'])} of {plural(result['pairs'], 'pair')} are shown."
    pair: Column = ("pair", "left", lambda label: f"{label['sensor']} and {label['partner']}")
    labelled = columns_table("Labels", [pair, *label_columns(options)], result["listed"])
    parts = [part(table=labelled)] if result["listed"] else []
    return section("labels", "Labels", part(chart="labels"), *parts, lead=lead)
