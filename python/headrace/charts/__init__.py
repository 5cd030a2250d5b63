# SPDX-License-Identifier: Apache-2.0
"""What people look at: charts as SVG, self-contained HTML pages, PNG files, grids of pictures.

Made with the standard library and NumPy only; knows nothing of loaders.
"""
