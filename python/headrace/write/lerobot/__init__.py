# SPDX-License-Identifier: Apache-2.0
"""Writes LeRobot datasets, version 3.0, for ``headrace convert --to lerobot``.

`options` has the options, `features` decides what each field of a source becomes, `episodes` finds
the episodes, `stats` computes the statistics, `videos` and `tables` write files, `dataset` combines
them, and `verification` reads the result back.
"""
