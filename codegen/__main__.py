"""`python -m codegen`: the maintenance commands, which nox calls. Here lives only the way to them."""

from __future__ import annotations

import argparse
import sys

from codegen.errors import CodegenError
from codegen.maintain import diff_command, pull, regen


def main(argv: list[str] | None = None) -> int:
    """Run one command; return 0, or 1 after printing what is wrong and what to do."""
    parser = argparse.ArgumentParser(prog="python -m codegen", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module, summary in (
        ("pull", pull, "fetch a revision's schema, check it, pin it"),
        ("regen", regen, "write generated/ from schema/ and codegen/overlays/"),
        ("diff", diff_command, "list what changed between two pulled schemas, before anything is generated"),
    ):
        subparser = commands.add_parser(name, help=summary, description=module.__doc__)
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except CodegenError as error:
        print(f"codegen {args.command}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":  # pragma: no cover - tests call main()
    sys.exit(main())
