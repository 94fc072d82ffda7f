"""Verifies deliveries with the Python library of Standard Webhooks: one JSON object per line in, "verified" or the
reason of the refusal out."""

import json
import sys

from standardwebhooks import Webhook

for line in sys.stdin:
    delivery = json.loads(line)
    try:
        Webhook(delivery["secret"]).verify(delivery["body"], delivery["headers"])
        print("verified")
    except Exception as error:
        print(error)
