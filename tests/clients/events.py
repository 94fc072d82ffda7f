"""What a client tells the test: one JSON object per line. Standard library only."""

import json
import sys


def tell(event, **fields):
    print(json.dumps({"event": event, **fields}, ensure_ascii=True), flush=True)


def arguments():
    """The simulator's URL, a file and a picture to send, and a folder to save into."""
    base_url, file, image, folder = sys.argv[1:]
    return base_url, file, image, folder
