"""`python -m codegen`: the maintenance commands, which nox calls. Here lives only the way to them."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from codegen.errors import CodegenError
from codegen.maintain import diff_command, pull, regen
from codegen.names import line


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


def guarded(argv: list[str] | None = None) -> int:
    """As `main`, for a shell: what nobody foresaw is one line with the place and what to do next, and gives 70.

    Tests call `main`, which hides nothing.
    """
    try:
        return main(argv)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        ours = Path(__file__).resolve().parent
        frames = [
            frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(ours)
        ]
        place = f"{Path(frames[-1].filename).relative_to(ours.parent).as_posix()}:{frames[-1].lineno}"
        print(
            f"codegen: {type(error).__name__} at {place}: {line(str(error))[:500]}. A schema or an overlay says what "
            "the generator does not foresee: see what changed in them last. The whole trace: "
            "python -c 'import codegen.__main__ as it; it.main()' and the arguments.",
            file=sys.stderr,
        )
        return 70


if __name__ == "__main__":  # pragma: no cover - tests call main() and guarded()
    sys.exit(guarded())
