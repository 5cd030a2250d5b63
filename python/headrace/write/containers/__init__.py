# SPDX-License-Identifier: Apache-2.0
"""The containers that ``headrace convert`` writes: one module each, with a record named WRITER.
Modules are found by their presence here.
"""
