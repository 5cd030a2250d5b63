# SPDX-License-Identifier: Apache-2.0
"""One file a topic; importing it registers its translations."""

from headrace.migrate.translations import choices, colors, dtypes, geometry, noise, structure

__all__ = ["choices", "colors", "dtypes", "geometry", "noise", "structure"]
