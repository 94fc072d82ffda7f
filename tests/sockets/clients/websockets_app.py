"""An app with the library `websockets`: tells what it was told, line by line, and answers commands over its socket.

Takes the whole address of its socket, and connects again whenever it was lost.
"""

import asyncio
import json
import sys

import websockets

URL = sys.argv[1]


def tell(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


async def serve():
    async with websockets.connect(URL, proxy=None) as socket:
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] != "event":
                tell(frame["type"])
                continue
            event = frame["event"]
            data = event["data"]
            if event["type"] == "command":
                answer = {"type": "send", "req_id": event["id"], "to": data["sender"]["id"]}
                await socket.send(json.dumps(answer | {"content": f"{data['command']} in {data['text']}"}))
            else:
                tell("told", text=data["content"])


async def main():
    while True:
        try:
            await serve()
        except (OSError, websockets.WebSocketException):
            pass
        await asyncio.sleep(0.1)


asyncio.run(main())
