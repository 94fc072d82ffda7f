"""Follows a channel with the library `websockets`: resumes with `since`, and tells what it got, line by line.

Reads the hub's address from stdin, one per line; a new one stands for a hub that was started again.
"""

import asyncio
import json
import sys

import websockets

KEY = sys.argv[1]


def tell(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


async def follow(base, seen):
    url = base.replace("http://", "ws://") + "/api/v1/channels/connect"
    if seen["seq"] is not None:
        url += f"?since={seen['seq']}"
    async with websockets.connect(url, additional_headers={"X-API-Key": KEY}, proxy=None) as socket:
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] == "message":
                seen["seq"] = frame["data"]["seq"]
                tell("message", seq=frame["data"]["seq"], content=frame["data"]["content"])
            elif frame["type"] == "init":
                tell("open")


async def main():
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    seen, task = {"seq": None}, None
    while line := (await reader.readline()).decode().strip():
        if task:
            task.cancel()

        async def again(base):
            while True:
                try:
                    await follow(base, seen)
                except (OSError, websockets.WebSocketException):
                    pass
                await asyncio.sleep(0.1)

        task = asyncio.create_task(again(line))


asyncio.run(main())
