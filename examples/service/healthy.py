"""Whether a proxy in this container is well, for Docker: exit status 0, or 1 where it listens and does not answer.

One that serves a client on stdin and stdout listens nowhere; when it ends, the container does.
"""

import os
import ssl
import sys
import urllib.error
import urllib.request

where = os.environ.get("DRAGOMAN_HEALTH", "http://127.0.0.1:8080/healthz")
trusting = ssl._create_unverified_context()  # it is ourselves whom we ask, by a name that no certificate has
try:
    urllib.request.urlopen(where, timeout=4, context=trusting).close()
except urllib.error.URLError as error:
    if not isinstance(error.reason, ConnectionRefusedError):
        sys.exit(f"{where}: {error}")
except OSError as error:
    sys.exit(f"{where}: {error}")
