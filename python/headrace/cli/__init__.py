# SPDX-License-Identifier: Apache-2.0
"""The command line, `headrace`. One command, one file; docs/tools/cli.md describes them all.

Exit codes: 0 good, 1 the question's answer is bad, 2 usage, 3 data, 4 environment.
"""

from __future__ import annotations

import sys

EXIT_ENVIRONMENT = 4


def main() -> None:
    """Runs the command line on sys.argv and exits with the command's code."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.stderr.write(
            f"headrace: the command line needs {error.name}; run: pip install typer rich\n"
        )
        sys.exit(EXIT_ENVIRONMENT)
    from headrace.cli.app import COMMANDS, application

    asked = [name for name in COMMANDS if name in sys.argv[1:2]]
    application(asked or COMMANDS)(prog_name="headrace")
