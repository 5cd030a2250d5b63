# SPDX-License-Identifier: Apache-2.0
"""One file a topic; importing it registers its translations."""

from headrace.migrate.translations import colors, dtypes, geometry, noise, structure

__all__ = ["colors", "dtypes", "geometry", "noise", "structure"]
