"""An S3 service of other authors (moto) on loopback, with one empty bucket, until standard input ends.

Prints where it is as a line of JSON. `argv[1]` is the name of the bucket, `argv[2]` a port, or 0 for any.
"""

import json
import logging
import sys
import urllib.request

from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[2]), verbose=False)
server.start()
host, port = server.get_host_and_port()
url = f"http://{host}:{port}"
request = urllib.request.Request(f"{url}/{sys.argv[1]}", data=b"", method="PUT")
urllib.request.urlopen(request, timeout=30).close()
print(json.dumps({"url": url}), flush=True)
sys.stdin.read()
server.stop()
