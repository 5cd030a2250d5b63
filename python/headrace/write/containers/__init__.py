# SPDX-License-Identifier: Apache-2.0
"""The containers that ``headrace convert`` writes: a module each, whose record is WRITER.

Nothing lists them: a module that is there is found.
"""
