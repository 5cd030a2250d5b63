# SPDX-License-Identifier: Apache-2.0
"""LeRobot datasets, version 3: tables in Parquet, and MP4 files with many episodes each.

`info` reads ``meta/info.json``, `tables` Parquet files, `episodes` determines the records and the
part of a video of each episode, `selection` the features to read, and `dataset` combines them.
"""

from headrace.sources.lerobot.dataset import lerobot
from headrace.sources.lerobot.stats import lerobot_stats

__all__ = ["lerobot", "lerobot_stats"]
