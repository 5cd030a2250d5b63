# SPDX-License-Identifier: Apache-2.0
"""Reports: text, a page, a trace."""
