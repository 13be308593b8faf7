#!/opt/tamis/bin/python
"""Health check of a container: `healthcheck PORT` asks the telemetry port, and fails unless it answers 200.

Only modules that start quickly are imported, since it runs every ten seconds.
"""

import sys
from http.client import HTTPConnection

connection = HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=3)
connection.request("GET", "/healthz")
sys.exit(connection.getresponse().status != 200)
