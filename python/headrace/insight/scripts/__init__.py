# SPDX-License-Identifier: Apache-2.0
"""Training scripts as they are, run and ended from inside of their loaders, and kept from harm."""
