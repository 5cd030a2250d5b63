# SPDX-License-Identifier: Apache-2.0
"""``python -m headrace``: the command line; torchrun starts it in this way, too."""

from headrace.cli import main

if __name__ == "__main__":
    main()
