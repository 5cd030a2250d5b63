# SPDX-License-Identifier: Apache-2.0
"""Servers that the tests start on the loopback interface, and stop."""
