"""Five machines at once on one event loop, each removed as soon as its command has ended."""

import asyncio

import holt


async def factorise(number: int) -> str:
    async with await holt.AsyncMachine.create(persistent=False) as machine:
        return (await machine.exec(["factor", str(number)], timeout=60)).text.strip()


async def main() -> None:
    for answer in await asyncio.gather(*(factorise(2**exponent + 1) for exponent in range(60, 65))):
        print(answer)


if __name__ == "__main__":
    asyncio.run(main())
