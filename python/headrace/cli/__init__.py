# SPDX-License-Identifier: Apache-2.0
"""The command line, `headrace`. One command, one file; docs/tools/cli.md describes them all.

Exit codes: 0 success, 1 a problem was found, 2 usage error, 3 data error, 4 environment error.
"""

from __future__ import annotations

import sys

EXIT_ENVIRONMENT = 4


def main() -> None:
    """Runs the command line on sys.argv and exits with the command's exit code."""
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
