# SPDX-License-Identifier: Apache-2.0
"""``python -m headrace``: the command line, also as started by torchrun."""

from headrace.cli import main

if __name__ == "__main__":
    main()
