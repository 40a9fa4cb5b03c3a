"""LeRobot's data sets, version v3.0: a row for each frame, features of one size; those of size 1
are plain values.

The layout is that of `lerobot.datasets` 0.4 (`utils.py`, `lerobot_dataset.py`). Its reader finds
episode k in row k of the table of episodes, and wants the episodes 0 to total_episodes - 1.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.exporters.parquet_parts import ParquetParts
from collidecli.storage.flat_tables import require_pyarrow

FILES_PER_CHUNK = 1000
"""LeRobot's DEFAULT_CHUNK_SIZE."""
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
RATE_TOLERANCE = 1e-3
"""Relative difference of frame rates that are equal."""
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
ONE_JOB = "choose a job by --job"


class LeRobotWriter:
    """A data set in a folder, which `close` completes. names: of the components of a feature."""

    def __init__(self, folder: str, names: Mapping[str, Sequence[str]]) -> None:
        self._folder = folder
        self._names = names
        self._pa = require_pyarrow("--to lerobot")
        self._parts = ParquetParts(self._path_of)
        self._tasks: dict[str, int] = {}
        self._first = ""
        self._rate = 0.0
        self._frames = 0
        self._features: dict[str, Any] = {}
        self._statistics: dict[str, dict[str, np.ndarray]] = {}
        self._episodes: list[dict[str, Any]] = []

    def add(
        self,
        task: str,
        time: np.ndarray,
        rows: Iterable[Mapping[str, np.ndarray]],
        about: Mapping[str, Any],
        label: str,
    ) -> None:
        """Appends an episode.

        Args:
            time: float64[n] [s] of its frames. rows: each feature [k] or [k, width] of some frames,
                in order.
            about: further columns of its row in the table of episodes. label: of the episode in
                messages.
        Raises InputError for other features or another frame rate than those of the first episode.
        """
        self._first = self._first or label
        step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
        rate = 1.0 / step if step > 0.0 else 0.0
        if rate and self._rate and abs(rate / self._rate - 1.0) > RATE_TOLERANCE:
            what = f"has {rate:g} frames per second, and {self._first} has {self._rate:g}"
            raise InputError(what, label, f"a LeRobot data set has one rate: {ONE_JOB}")
        self._rate = self._rate or rate
        chunk, file = divmod(self._parts.number, FILES_PER_CHUNK)
        episode = len(self._episodes)
        first = self._frames
        done = 0
        whole = {
            "episode_index": episode,
            "task_index": self._tasks.setdefault(task, len(self._tasks)),
        }
        for values in rows:
            frames = done + np.arange(len(next(iter(values.values()))))
            place = {
                "index": first + frames,
                "frame_index": frames,
                "timestamp": np.float32(time[frames] - time[0]),
            }
            place |= {
                name: np.full(len(frames), number, np.int64) for name, number in whole.items()
            }
            self._append({**place, **values}, label)
            done += len(frames)
        self._parts.end_episode()
        self._frames += done
        places = {"data/chunk_index": chunk, "data/file_index": file}
        places |= {"dataset_from_index": first, "dataset_to_index": self._frames}
        places |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
        self._episodes.append(
            {"episode_index": episode, "tasks": [task], "length": done, **places, **about}
        )

    def _write(self, name: str, table: Any) -> None:
        path = os.path.join(self._folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._pa.parquet.write_table(table, path, compression="zstd")

    def _path_of(self, number: int) -> str:
        chunk, file = divmod(number, FILES_PER_CHUNK)
        return os.path.join(self._folder, DATA_PATH.format(chunk_index=chunk, file_index=file))

    def _append(self, features: Mapping[str, np.ndarray], label: str) -> None:
        columns = {}
        described = dict[str, Any]()
        for name, values in features.items():
            flat = self._pa.array(values.reshape(-1))
            width = values.size // len(values)
            columns[name] = (
                flat if width == 1 else self._pa.FixedSizeListArray.from_arrays(flat, width)
            )
            described[name] = {
                "dtype": values.dtype.name,
                "shape": [width],
                "names": self._names.get(name),
            }
            new = statistics_of(values)
            self._statistics[name] = (
                joined_statistics(self._statistics[name], new) if name in self._statistics else new
            )
        self._features = self._features or described
        if described != self._features:
            every = {**described, **self._features}
            names = [name for name in every if described.get(name) != self._features.get(name)]
            raise InputError(
                f"differs from {self._first} in the columns {', '.join(names)}", label, ONE_JOB
            )
        self._parts.append(self._pa.RecordBatch.from_pydict(columns))

    def close(self, shapes: Mapping[str, Any]) -> None:
        """Completes the data and writes meta. shapes: columns of meta/shapes.parquet."""
        self._parts.close()
        self._write("meta/shapes.parquet", self._pa.table(dict(shapes)))
        self._write(
            "meta/episodes/chunk-000/file-000.parquet", self._pa.Table.from_pylist(self._episodes)
        )
        # As pandas writes it, with the task as its index: LeRobot reads it by pandas.
        tasks = self._pa.table(
            {"task_index": list(self._tasks.values()), "task": list(self._tasks)}
        )
        kinds = (("task_index", "int64"), ("task", "unicode"))
        about = {
            "index_columns": ["task"],
            "column_indexes": [],
            "columns": [
                {"name": n, "field_name": n, "pandas_type": kind, "numpy_type": kind}
                for n, kind in kinds
            ],
        }
        self._write(
            "meta/tasks.parquet", tasks.replace_schema_metadata({"pandas": json.dumps(about)})
        )
        stats = {
            name: {key: value.tolist() for key, value in of.items()}
            for name, of in self._statistics.items()
        }
        for name, value in (("info", self._info()), ("stats", stats)):
            with open(
                os.path.join(self._folder, "meta", f"{name}.json"), "w", encoding="utf-8"
            ) as file:
                json.dump(value, file, indent=4)

    def _info(self) -> dict[str, Any]:
        whole = round(self._rate)
        episodes = len(self._episodes)
        near = whole and abs(self._rate / whole - 1.0) <= RATE_TOLERANCE
        return {
            **{
                "codebase_version": "v3.0",
                "robot_type": None,
                "fps": whole if near else self._rate,
            },
            **{
                "total_episodes": episodes,
                "total_frames": self._frames,
                "total_tasks": len(self._tasks),
            },
            **{
                "chunks_size": FILES_PER_CHUNK,
                "data_files_size_in_mb": 100,
                "video_files_size_in_mb": 200,
            },
            **{"splits": {"train": f"0:{episodes}"}, "data_path": DATA_PATH, "video_path": None},
            "features": self._features,
        }


def statistics_of(values: np.ndarray) -> dict[str, np.ndarray]:
    """LeRobot's statistics of a feature, [width] each: of the rows of `values`, [n] or [n, width],
    n > 0."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    figures = {name: getattr(rows, name)(axis=0) for name in ("min", "max", "mean", "std")}
    quantiles = np.quantile(rows, list(QUANTILES.values()), axis=0)
    return {
        **figures,
        **dict(zip(QUANTILES, quantiles, strict=True)),
        "count": np.array([len(rows)]),
    }


def joined_statistics(
    first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Statistics of the rows of both; quantiles are weighted means, as of LeRobot's
    `aggregate_stats`."""
    total = first["count"] + second["count"]
    share = second["count"] / total
    means = {
        name: first[name] + (second[name] - first[name]) * share for name in ("mean", *QUANTILES)
    }
    variance = first["std"] ** 2 * (1.0 - share) + second["std"] ** 2 * share
    variance += (second["mean"] - first["mean"]) ** 2 * share * (1.0 - share)
    ends = {
        "min": np.minimum(first["min"], second["min"]),
        "max": np.maximum(first["max"], second["max"]),
    }
    return {**means, **ends, "std": np.sqrt(variance), "count": total}
