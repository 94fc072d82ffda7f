"""What a client tells the test: one JSON object per line. Standard library only."""

import json
import sys


def tell(event, **fields):
    print(json.dumps({"event": event, **fields}, ensure_ascii=True), flush=True)


def arguments():
    """The simulator's URL, a file and a picture to send, and a folder to save into."""
    base_url, file, image, folder = sys.argv[1:]
    return base_url, file, image, folder


def tell_text(message):
    """Tells of the text of a message as the network writes it, if it has one, and returns it."""
    text = "".join(item.get("text_item", {}).get("text", "") for item in message["item_list"])
    if text:
        tell(
            "received",
            message_id=str(message["message_id"]),
            user_id=message["from_user_id"],
            text=text,
            context_token=message["context_token"],
        )
    return text
