# SPDX-License-Identifier: Apache-2.0
"""What people see: text, a page, a trace."""
