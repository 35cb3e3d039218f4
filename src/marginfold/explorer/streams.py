"""Calls as streams of frames: progress, then the answer."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor

from marginfold.explorer.answers import Answer, answered
from marginfold.explorer.frames import frame
from marginfold.explorer.jobs import Job

THREADS = 16
"""Calls that are answered at once; fits among them wait for a worker."""


class Streams:
    """Calls in progress, each in a thread, each listened to by one stream."""

    def __init__(self) -> None:
        self._jobs: set[Job] = set()
        self._threads = ThreadPoolExecutor(THREADS)

    async def frames(self, work: Callable[[Job], Answer]) -> AsyncIterator[bytes]:
        """Yield progress and the answer, each with its length; who stops listening cancels."""
        loop = asyncio.get_running_loop()
        inbox: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()

        def say(content: bytes, last: bool) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(inbox.put_nowait, (content, last))

        def tell(stage: str, done: int, total: int | None) -> None:
            say(frame("progress", {"stage": stage, "done": done, "total": total}), False)

        job, last = Job(tell), False
        self._jobs.add(job)
        try:
            self._threads.submit(lambda: say(answered(lambda: work(job)), True))
            while not last:
                content, last = await inbox.get()
                yield struct.pack("<I", len(content)) + content
        finally:
            job.cancel()
            self._jobs.discard(job)

    def cancel(self) -> None:
        """Cancel whatever runs."""
        for job in list(self._jobs):
            job.cancel()

    def close(self) -> None:
        """Wait until what was cancelled has ended."""
        self._threads.shutdown(wait=True, cancel_futures=True)
