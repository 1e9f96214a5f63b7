"""Start the proxy before the server that a person named in the settings of the bundle."""

import os
import sys

from dragoman.cli import main

arguments = ["proxy", "--url", os.environ["BUNDLE_URL"]]
authorization = os.environ.get("BUNDLE_AUTHORIZATION", "")
if authorization and not authorization.startswith("${"):  # which some clients leave in place of an empty setting
    arguments += ["--header", "Authorization=$BUNDLE_AUTHORIZATION"]  # by name: command lines can be seen

sys.exit(main(arguments))
