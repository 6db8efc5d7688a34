"""The bounds of what is answered at once, with an application that answers when it is told."""

import asyncio

from starlette.types import Message, Receive, Scope, Send

from streaming.http.guard import REQUESTS_MAX, REQUESTS_OF_ADDRESS_MAX, Bounds


class Slow:
    """Answers when `go` is set."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def __call__(self, _: Scope, __: Receive, send: Send) -> None:
        """Answer 200."""
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def _asked(bounds: Bounds, path: str, address: str) -> int:
    """The status of the answer."""
    found = list[int]()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.append(message["status"])

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": path, "client": (address, 1), "method": "GET", "headers": []}
    await bounds(scope, receive, send)
    return found[0]


async def _counted(asked: int, addresses: int, path: str = "/status") -> tuple[int, Bounds]:
    """How many of so many requests at once are refused, spread over so many addresses."""
    slow = Slow()
    bounds = Bounds(slow)
    tasks = [
        asyncio.create_task(_asked(bounds, path, f"10.0.0.{number % addresses}"))
        for number in range(asked)
    ]
    await asyncio.sleep(0)
    slow.go.set()
    return (await asyncio.gather(*tasks)).count(503), bounds


def test_one_address_gets_its_share() -> None:
    """Others are answered while it asks for more."""
    refused, bounds = asyncio.run(_counted(REQUESTS_OF_ADDRESS_MAX + 7, 1))

    assert refused == 7
    assert not bounds.under_way


def test_all_together_get_no_more_than_the_hub_can_answer() -> None:
    """Its threads work for the hub too."""
    refused, bounds = asyncio.run(_counted(REQUESTS_MAX + 5, 3))

    assert refused == 5
    assert not bounds.under_way


def test_whether_it_lives_is_answered_beside_all_bounds() -> None:
    """A supervisor restarts a process that does not say so."""
    refused, _ = asyncio.run(_counted(10 * REQUESTS_MAX, 1, "/livez"))

    assert refused == 0
